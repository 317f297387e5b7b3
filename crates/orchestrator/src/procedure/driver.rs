//! The loop: ask the run what it owes, record the decision, carry it out.

use std::time::Duration;

use proctor_domain::procedure::{Definition, Failure, HaltReason, Outcome, Owed, Position, Run, RunEvent, RunStarted, Stage, StepId, Task};
use proctor_domain::retention::expiry_time;
use proctor_domain::session::{SessionEnd, SessionReport};
use proctor_domain::{CardDuration, Clock, ExitCode, Oid, RepoPath, RunId, SessionId, Timestamp};
use proctor_engine::{Attached, Found, Waited};
use proctor_journal::JournalStore;
use proctor_process::confine::ChosenBox;
use proctor_process::killpoint;
use proctor_process::lock::HeldLock;
use proctor_process::{Signal, Signals};
use proctor_recall::advice::Brief;
use proctor_workspace::Status;

use super::known::Showing;
use super::transcript::Transcript;
use super::{Conversation, GoingOn, Notice, Place, ProcedureError, agents};
use crate::limits::AccountLimits;
use crate::{Site, random_bits};

/// This many hosts of one step may die one after the other before the run halts.
const MOST_LOST_HOSTS: u32 = 3;

/// How a driver left its run.
#[derive(Debug)]
pub struct RunEnd {
    /// The run's id.
    pub run_id: RunId,
    /// The run as it stands.
    pub run: Run,
    /// What that means for the caller.
    pub standing: Standing,
}

/// Where a run stands, for those who look at it from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Over.
    Ended(Outcome),
    /// Stopped by a signal or by `stop`, or its driver died; can be resumed.
    Interrupted,
    /// Stopped because of what others did to the tree; can be resumed once that is cleared up.
    Halted(HaltReason),
    /// Its driver or a host is alive.
    Running,
}

impl Standing {
    /// Where a run stands whose driver and hosts are all gone, or that is over.
    pub fn at_rest(run: &Run) -> Self {
        match (&run.position, &run.halt) {
            (Position::Ended(outcome), _) => Self::Ended(*outcome),
            (_, None | Some(HaltReason::Interrupted)) => Self::Interrupted,
            (_, Some(reason)) => Self::Halted(reason.clone()),
        }
    }

    /// The exit code of `procedure run` and `procedure resume`.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Ended(Outcome::Completed) => ExitCode::Done,
            Self::Ended(Outcome::Failed) => ExitCode::Failed,
            Self::Ended(Outcome::Inconclusive) => ExitCode::Inconclusive,
            Self::Ended(Outcome::Skipped) => ExitCode::NothingToDo,
            Self::Interrupted => ExitCode::Interrupted,
            Self::Halted(reason) if reason.is_parked() => ExitCode::Parked,
            Self::Halted(_) => ExitCode::Refused,
            Self::Running => ExitCode::Interrupted,
        }
    }
}

/// How far a driver was asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// It was not.
    No,
    /// After the current step.
    AfterStep,
    /// At once: the current session is ended.
    Now,
    /// It leaves; the session goes on under its host.
    Leave,
}

impl Stop {
    /// What one more Ctrl-C asks for.
    fn further(self) -> Self {
        match self {
            Self::No => Self::AfterStep,
            Self::AfterStep => Self::Now,
            Self::Now | Self::Leave => Self::Leave,
        }
    }

    /// Takes in what arrived since the last look.
    pub(super) fn heed(&mut self, signals: &Signals, notify: &mut dyn FnMut(Notice<'_>)) {
        for signal in signals.pending() {
            let stop = match signal {
                Signal::Interrupt => self.further(),
                Signal::Terminate => Self::Now,
                Signal::Hangup => Self::Leave,
                // Not listened to.
                Signal::Kill | Signal::Stop | Signal::Continue | Signal::FileSize | Signal::WindowChange => *self,
            };
            if stop > *self {
                *self = stop;
                notify(Notice::Heeded(stop));
            }
        }
    }
}

/// When a session that ended as interrupted can have been asked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// Under the driver that started it: the run stops too.
    Now,
    /// Perhaps before this driver took over: whoever resumes the run wants it to go on.
    Before,
}

/// The locks of a driver. Both go when it goes, however it goes.
pub(super) struct DriverLocks {
    pub(super) _run: HeldLock,
    pub(super) _tree: HeldLock,
}

/// What a driver is made of.
pub(super) struct Context<'a> {
    pub(super) site: &'a Site,
    pub(super) journal: &'a mut dyn JournalStore,
    pub(super) clock: &'a dyn Clock,
    pub(super) notify: &'a mut dyn FnMut(Notice<'_>),
}

pub(super) struct Driver<'a> {
    pub(super) context: Context<'a>,
    pub(super) run_id: RunId,
    pub(super) run: Run,
    pub(super) definition: Definition,
    /// Events in the journal.
    pub(super) version: u64,
    /// Events that are decided and not yet in the journal. Nothing is done before they are.
    unsaved: Vec<(Timestamp, RunEvent)>,
    pub(super) signals: Signals,
    pub(super) stop: Stop,
    /// Whether git was left to end a commit by itself, for the next driver to find.
    pub(super) left_commit: bool,
    attached: Option<Attached>,
    /// What the session of an agent that is followed prints.
    transcript: Option<Transcript>,
    /// Whether it was said that memory can't be asked.
    pub(super) told_of_memory: bool,
    /// The kind of box that agents are held in, once this driver has chosen it.
    pub(super) confined: Option<ChosenBox>,
    /// What a resume found of the session that the run was in.
    pub(super) found: Option<Found>,
    /// The last moment at which the dead processes of the run can have changed the tree.
    pub(super) last_activity: Option<Timestamp>,
    /// When the run last showed that it lived, before this driver took it over.
    pub(super) last_sign: Option<Timestamp>,
    /// When an earlier driver recorded its last decision; what it did about that came later.
    pub(super) last_decision: Option<Timestamp>,
    /// What the tree looked like after our last write to it, as long as nothing has run since.
    pub(super) resting: Option<Status>,
    /// What the last survey saw, for the commit that follows it.
    pub(super) surveyed: Option<Status>,
    /// The paths of the last survey that git does not know yet.
    pub(super) untracked: Vec<RepoPath>,
    /// What the foreign paths of `--allow-dirty` held when the current step began.
    pub(super) foreign_snapshot: Option<Oid>,
    _locks: DriverLocks,
}

impl<'a> Driver<'a> {
    pub(super) fn new(context: Context<'a>, locks: DriverLocks, stored: Stored) -> Result<Self, ProcedureError> {
        let signals = Signals::listen(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup])?;
        Ok(Self {
            context,
            run_id: stored.run_id,
            foreign_snapshot: stored.run.started.foreign_snapshot.clone(),
            run: stored.run,
            definition: stored.definition,
            version: stored.version,
            unsaved: Vec::new(),
            signals,
            stop: Stop::No,
            left_commit: false,
            attached: None,
            transcript: None,
            told_of_memory: false,
            confined: None,
            found: None,
            last_activity: None,
            last_sign: None,
            last_decision: None,
            resting: None,
            surveyed: None,
            untracked: Vec::new(),
            _locks: locks,
        })
    }

    /// Drives the run until it owes nothing more, or until a signal says so.
    pub(super) fn drive(mut self) -> Result<RunEnd, ProcedureError> {
        let standing = self.go_on().map_err(|error| self.stopped(error));
        proctor_engine::dismiss_hosts();
        let standing = standing?;
        Ok(RunEnd { run_id: self.run_id, run: self.run, standing })
    }

    /// An error that names the run that can be resumed once it is mended.
    pub(super) fn stopped(&self, error: ProcedureError) -> ProcedureError {
        // A run whose first event was not recorded never was one, and a refusal names its run itself.
        if self.version == 0 || matches!(error, ProcedureError::Refused(_)) {
            return error;
        }
        ProcedureError::Stopped { run: self.run_id.clone(), source: Box::new(error) }
    }

    fn go_on(&mut self) -> Result<Standing, ProcedureError> {
        loop {
            self.heed_signals();
            // Without a session nothing would go on by itself: then leaving is stopping.
            if self.stop == Stop::Leave && self.run.open_session().is_some() {
                return Ok(Standing::Running);
            }
            if self.stop > Stop::No && self.may_stop_here() {
                self.halt(HaltReason::Interrupted)?;
            }
            if self.run.owes() == Owed::Nothing {
                break;
            }
            self.step_once()?;
            if self.left_commit {
                return Ok(Standing::Interrupted);
            }
        }
        self.note_leftovers()?;
        self.save()?;
        self.keep_house();
        Ok(Standing::at_rest(&self.run))
    }

    /// Lets git do the housekeeping that our commits leave out. The run is over and recorded: whether it works is git's
    /// own business, and the next run asks again.
    fn keep_house(&self) {
        if !self.run.commits.is_empty() {
            let _ = self.context.site.repository.maintenance();
        }
    }

    /// Does the one thing that the run owes now.
    pub(super) fn step_once(&mut self) -> Result<(), ProcedureError> {
        match self.run.owes() {
            Owed::MakeWorktree => self.make_worktree(),
            Owed::Begin(index) => self.begin(index),
            Owed::OpenSession(index, task) => self.open_session(index, task),
            Owed::Drive(session) => self.drive_session(&session),
            Owed::Restore(index) => self.restore(index),
            Owed::PlanRetry { failure, pause } => self.plan_retry(failure, pause),
            Owed::Wait(until) => self.wait_until(until),
            Owed::Collect(index) => self.collect(index),
            Owed::Survey(index) => self.survey(index),
            Owed::Park(reason) => self.halt(reason),
            Owed::Propose => self.propose(),
            Owed::Merge => self.merge(),
            Owed::Commit(purpose, paths) => self.commit(purpose, paths),
            Owed::End(outcome) => self.end(outcome),
            Owed::Nothing => Ok(()),
        }
    }

    fn plan_retry(&mut self, failure: Failure, pause: CardDuration) -> Result<(), ProcedureError> {
        (self.context.notify)(Notice::Retrying { failure: &failure, pause });
        // The next attempt starts from the tree as it is; should its host die, the tree goes back to this.
        let changed = self.changed_paths(&self.context.site.repository.status()?);
        self.record_left(changed)?;
        let until = self.context.clock.now().plus_millis(pause.millis());
        self.record(RunEvent::RetryPlanned { failure, until })
    }

    /// The first event of a new run, which the run was made of.
    pub(super) fn record_start(&mut self, started: RunStarted) {
        self.unsaved.push((self.run.started_at, RunEvent::Started(Box::new(started))));
    }

    /// Applies an event. It reaches the journal with the next [`Driver::save`], which every effect calls first.
    pub(super) fn record(&mut self, event: RunEvent) -> Result<(), ProcedureError> {
        let at = self.context.clock.now();
        self.run.apply(at, event.clone()).map_err(|source| ProcedureError::DamagedRun { run: self.run_id.clone(), source })?;
        self.unsaved.push((at, event));
        Ok(())
    }

    /// Makes everything decided so far durable, in one append: a step costs three of them, not one for each event.
    pub(super) fn save(&mut self) -> Result<(), ProcedureError> {
        if self.unsaved.is_empty() {
            return Ok(());
        }
        killpoint::reach("before append");
        self.version = self.context.journal.append(&self.run_id, self.version, &self.unsaved)?;
        self.unsaved.clear();
        killpoint::reach("after append");
        Ok(())
    }

    pub(super) fn halt(&mut self, reason: HaltReason) -> Result<(), ProcedureError> {
        self.record(RunEvent::Halted { reason })
    }

    /// The record of the step with this index, by its id.
    pub(super) fn step_id(&self, index: usize) -> StepId {
        self.run.steps[index].plan.id.clone()
    }

    /// Asked to stop, a driver goes on only where it would leave something half done: a survey, a commit, the end.
    fn may_stop_here(&self) -> bool {
        let owed = self.run.owes();
        if self.stop == Stop::AfterStep {
            return matches!(owed, Owed::Begin(_) | Owed::Wait(_));
        }
        matches!(owed, Owed::Begin(_) | Owed::Wait(_) | Owed::Restore(_) | Owed::OpenSession(..))
    }

    /// A session is opened by recording it; the loop then finds that it owes driving it.
    fn open_session(&mut self, index: usize, task: Task) -> Result<(), ProcedureError> {
        if let Some(reason) = self.held_back(task) {
            return self.halt(reason);
        }
        let session = SessionId::from_bits(random_bits()?);
        (self.context.notify)(Notice::TaskBegan(task));
        let evidence = self.evidence(index, task)?;
        let known = self.known_here(index, task, Showing::Any);
        let shown = known.as_ref().map(|known| known.shown.clone()).unwrap_or_default();
        self.record(RunEvent::SessionOpened { session: session.clone(), phase: task.phase, work: task.work, evidence, known: shown })?;
        self.save()?;
        self.attached = Some(self.start_session(index, session, task, known)?);
        Ok(())
    }

    /// What keeps the account from being asked now: another session was told until when it has to be left alone.
    fn held_back(&self, task: Task) -> Option<HaltReason> {
        let agents = &self.context.site.settings.agents;
        if !task.work.needs_engine() || agents.ignore_limits {
            return None;
        }
        let limits = AccountLimits::beside(&self.context.site.state);
        let until = limits.held_until(&agents.driving(task.work).name, &self.run_id, self.context.clock.now())?;
        Some(HaltReason::Limited { engine: agents.driving(task.work).name.clone(), until: Some(until) })
    }

    fn start_session(&mut self, index: usize, session: SessionId, task: Task, known: Option<Brief>) -> Result<Attached, ProcedureError> {
        let spec = self.session_spec(index, session, task, known.as_ref())?;
        killpoint::reach("before host");
        let mut attached = proctor_engine::start(&spec, &self.context.site.program)?;
        attached.follow();
        killpoint::set_host(attached.host().cloned());
        killpoint::reach("after host");
        Ok(attached)
    }

    /// Follows a session to its end. After a restart it is looked up first: it may be alive, over or lost.
    fn drive_session(&mut self, session: &SessionId) -> Result<(), ProcedureError> {
        let (mut attached, asked) = match self.attached.take() {
            Some(attached) => (attached, Asked::Now),
            None => match self.find_session(session)? {
                Some(attached) => (attached, Asked::Before),
                None => return Ok(()),
            },
        };
        self.transcript = self.open_task().filter(|task| task.work.needs_engine()).map(|task| Transcript::of(self.context.site, task.work));
        loop {
            if self.stop == Stop::Now {
                attached.interrupt();
            }
            let notify = &mut *self.context.notify;
            let transcript = &mut self.transcript;
            let waited = attached.wait(self.signals.fd(), &mut |progress| match transcript {
                Some(transcript) => transcript.follow(&progress, notify),
                None => notify(Notice::Output(progress.bytes)),
            })?;
            match waited {
                Waited::Ended(report) => {
                    killpoint::set_host(None);
                    return self.session_ended(session, report, asked);
                }
                Waited::Lost => {
                    killpoint::set_host(None);
                    return self.session_lost(session);
                }
                Waited::Woken => self.heed_signals(),
            }
            if self.stop == Stop::Leave {
                // The host goes on by itself; `resume` attaches to it.
                return Ok(());
            }
        }
    }

    fn find_session(&mut self, session: &SessionId) -> Result<Option<Attached>, ProcedureError> {
        let state = &self.context.site.state;
        let found = match self.found.take() {
            Some(found) => found,
            None => proctor_engine::find(&state.session(session), &state.session_lock(session))?,
        };
        match found {
            Found::Live(mut attached) => {
                attached.follow();
                killpoint::set_host(attached.host().cloned());
                self.tell_goes_on(GoingOn::Follows);
                Ok(Some(attached))
            }
            Found::Ended(report) => {
                self.tell_goes_on(GoingOn::TakesReport);
                self.session_ended(session, report, Asked::Before).map(|()| None)
            }
            Found::Lost => {
                proctor_engine::fence(&state.session(session), &state.session_lock(session))?;
                self.session_lost(session).map(|()| None)
            }
            // It was recorded and its driver died before it started anything: this is still its first start.
            Found::NeverStarted => {
                let Position::InStep(index, Stage::InSession(_, task)) = self.run.position else { return Ok(None) };
                let known = self.known_again(index, session, task);
                self.start_session(index, session.clone(), task, known).map(Some)
            }
        }
    }

    fn session_ended(&mut self, session: &SessionId, report: SessionReport, asked: Asked) -> Result<(), ProcedureError> {
        self.resting = None;
        let verdict = self.leave_session(session)?.and_then(|task| agents::verdict(task, &report));
        let interrupted = report.end == SessionEnd::Interrupted && (asked == Asked::Now || self.stop > Stop::No);
        let (index, task, cut) = (self.step_index(), self.open_task(), (report.end == SessionEnd::Interrupted, report.killed_by));
        if let Some(agent) = &report.agent {
            // A disk that has no room for it has none for the journal either, which says so.
            let _ = AccountLimits::beside(&self.context.site.state).learn(&agent.engine, &report.end, self.context.clock.now());
        }
        self.record(RunEvent::SessionEnded { session: session.clone(), report: Box::new(report), verdict })?;
        // Judged again, a step is decided at once.
        index.into_iter().for_each(|index| self.tell_if_decided(index));
        if interrupted {
            return self.halt(HaltReason::Interrupted);
        }
        if let (Some(index), Some(task)) = (index, task) {
            self.tell_again(index, task, &|conversation| match cut {
                (true, _) => GoingOn::Interrupted { conversation },
                (false, Some(signal)) => GoingOn::Killed { signal, conversation },
                (false, None) => GoingOn::ForgotConversation,
            });
        }
        Ok(())
    }

    fn session_lost(&mut self, session: &SessionId) -> Result<(), ProcedureError> {
        self.resting = None;
        let task = self.leave_session(session)?;
        let ended_orphans = proctor_engine::ended_orphans(&self.context.site.state.session(session));
        if ended_orphans > 0 {
            (self.context.notify)(Notice::EndedOrphans { count: ended_orphans });
        }
        self.record(RunEvent::SessionLost { session: session.clone(), ended_orphans })?;
        let lost = self.run.current_step().map_or(0, |step| step.sessions.iter().rev().take_while(|one| one.report.is_none()).count());
        let lost = u32::try_from(lost).unwrap_or(u32::MAX);
        if lost.is_multiple_of(MOST_LOST_HOSTS) && lost > 0 {
            return self.halt(HaltReason::HostsLost(lost));
        }
        if let (Some(index), Some(task)) = (self.step_index(), task) {
            self.tell_again(index, task, &|conversation| GoingOn::HostDied { conversation });
        }
        Ok(())
    }

    /// Tells that a session for the same task is opened again, if it is. What shells come to is told when the tree is put back.
    fn tell_again(&mut self, index: usize, task: Task, how: &dyn Fn(Conversation) -> GoingOn) {
        if task.work.needs_engine() && self.run.position == Position::InStep(index, Stage::Opening(task)) {
            self.tell_goes_on(how(self.next_conversation(index, task.work)));
        }
    }

    /// Tells with what the current step goes on.
    pub(super) fn tell_goes_on(&mut self, how: GoingOn) {
        let Position::InStep(index, stage) = &self.run.position else { return };
        let task = match stage {
            Stage::Opening(task) | Stage::InSession(_, task) => Some(*task),
            Stage::Materialising { .. }
            | Stage::Asking { .. }
            | Stage::Questioned { .. }
            | Stage::Limited { .. }
            | Stage::Collecting { .. }
            | Stage::CommittingWork { .. }
            | Stage::Restoring { .. }
            | Stage::Pausing(_)
            | Stage::Settling
            | Stage::Committing { .. } => None,
        };
        (self.context.notify)(Notice::GoesOn { at: place(&self.run, *index), task, how });
    }

    /// What the open session was for. After one of an agent, what git would run is looked at before git is used again.
    fn leave_session(&self, session: &SessionId) -> Result<Option<Task>, ProcedureError> {
        let task = self.open_task();
        if task.is_some_and(Task::is_of_an_agent) {
            agents::mend_programs(self.context.site, session)?;
        }
        Ok(task)
    }

    fn open_task(&self) -> Option<Task> {
        match self.run.position {
            Position::InStep(_, Stage::InSession(_, task)) => Some(task),
            Position::InStep(..) | Position::Between | Position::Closing { .. } | Position::Ended(_) => None,
        }
    }

    /// Waits between two attempts; a signal ends the wait.
    fn wait_until(&mut self, until: Timestamp) -> Result<(), ProcedureError> {
        self.save()?;
        let left = until.millis_since(self.context.clock.now());
        if left > 0 {
            self.signals.wait(Duration::from_millis(left))?;
            return Ok(());
        }
        self.record(RunEvent::RetryBegan)?;
        self.tell_step_began();
        Ok(())
    }

    fn end(&mut self, outcome: Outcome) -> Result<(), ProcedureError> {
        let started = &self.run.started;
        let keep = if matches!(outcome, Outcome::Completed | Outcome::Skipped) { started.run_expiry } else { started.failed_run_expiry };
        let expires = expiry_time(self.context.clock.now(), keep);
        self.clear_worktree(outcome)?;
        let with_warnings = outcome == Outcome::Completed && self.run.has_warnings();
        self.record(RunEvent::Ended { outcome, expires, with_warnings })
    }

    fn heed_signals(&mut self) {
        self.stop.heed(&self.signals, self.context.notify);
    }

    pub(super) fn tell_step_began(&mut self) {
        let Position::InStep(index, Stage::Opening(_) | Stage::Materialising { .. } | Stage::Settling) = self.run.position else { return };
        (self.context.notify)(Notice::StepBegan { at: place(&self.run, index) });
    }
}

/// The step with this index, in its present attempt.
fn place(run: &Run, index: usize) -> Place<'_> {
    let record = &run.steps[index];
    Place { step: &record.plan.id, number: index + 1, of: run.steps.len(), attempt: record.attempts }
}

/// A run as the journal holds it.
pub(super) struct Stored {
    pub(super) run_id: RunId,
    pub(super) run: Run,
    pub(super) definition: Definition,
    pub(super) version: u64,
}
