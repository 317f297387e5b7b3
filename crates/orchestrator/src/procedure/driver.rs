//! The loop: ask the run what it owes, record the decision, carry it out.

use std::time::Duration;

use proctor_domain::procedure::{Definition, Failure, HaltReason, Outcome, Owed, Position, Run, RunEvent, RunStarted, Stage, StepId};
use proctor_domain::retention::expiry_time;
use proctor_domain::session::{Phase, SessionEnd, SessionReport};
use proctor_domain::{CardDuration, Clock, ExitCode, Oid, RepoPath, RunId, SessionId, Timestamp};
use proctor_engine::{Attached, Found, Waited};
use proctor_journal::JournalStore;
use proctor_process::killpoint;
use proctor_process::lock::HeldLock;
use proctor_process::{Signal, Signals};
use proctor_workspace::Status;

use super::{Notice, ProcedureError};
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
    signals: Signals,
    pub(super) stop: Stop,
    attached: Option<Attached>,
    /// What a resume found of the session that the run was in.
    pub(super) found: Option<Found>,
    /// The last moment at which the dead processes of the run can have changed the tree.
    pub(super) last_activity: Option<Timestamp>,
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
            attached: None,
            found: None,
            last_activity: None,
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
            Owed::Begin(index) => self.begin(index),
            Owed::OpenSession(index, phase) => self.open_session(index, phase),
            Owed::Drive(session) => self.drive_session(&session),
            Owed::Restore(index) => self.restore(index),
            Owed::PlanRetry { failure, pause } => self.plan_retry(failure, pause),
            Owed::Wait(until) => self.wait_until(until),
            Owed::Survey(index) => self.survey(index),
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
    fn open_session(&mut self, index: usize, phase: Phase) -> Result<(), ProcedureError> {
        let session = SessionId::from_bits(random_bits()?);
        (self.context.notify)(Notice::PhaseBegan(phase));
        self.record(RunEvent::SessionOpened { session: session.clone(), phase })?;
        self.save()?;
        self.attached = Some(self.start_session(index, session, phase)?);
        Ok(())
    }

    fn start_session(&mut self, index: usize, session: SessionId, phase: Phase) -> Result<Attached, ProcedureError> {
        let spec = self.session_spec(index, session, phase)?;
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
        loop {
            if self.stop == Stop::Now {
                attached.interrupt();
            }
            let notify = &mut *self.context.notify;
            let waited = attached.wait(self.signals.fd(), &mut |progress| notify(Notice::Output(progress.bytes)))?;
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
                (self.context.notify)(Notice::Attached);
                Ok(Some(attached))
            }
            Found::Ended(report) => self.session_ended(session, report, Asked::Before).map(|()| None),
            Found::Lost => {
                proctor_engine::fence(&state.session(session), &state.session_lock(session))?;
                self.session_lost(session).map(|()| None)
            }
            // It was recorded and its driver died before it started anything: this is still its first start.
            Found::NeverStarted => {
                let Position::InStep(index, Stage::InSession(_, phase)) = self.run.position else { return Ok(None) };
                self.start_session(index, session.clone(), phase).map(Some)
            }
        }
    }

    fn session_ended(&mut self, session: &SessionId, report: SessionReport, asked: Asked) -> Result<(), ProcedureError> {
        self.resting = None;
        let interrupted = report.end == SessionEnd::Interrupted && (asked == Asked::Now || self.stop > Stop::No);
        self.record(RunEvent::SessionEnded { session: session.clone(), report: Box::new(report) })?;
        if interrupted {
            self.halt(HaltReason::Interrupted)?;
        }
        Ok(())
    }

    fn session_lost(&mut self, session: &SessionId) -> Result<(), ProcedureError> {
        self.resting = None;
        self.record(RunEvent::SessionLost { session: session.clone() })?;
        let lost = self.run.current_step().map_or(0, |step| step.sessions.iter().rev().take_while(|one| one.report.is_none()).count());
        let lost = u32::try_from(lost).unwrap_or(u32::MAX);
        if lost.is_multiple_of(MOST_LOST_HOSTS) && lost > 0 {
            self.halt(HaltReason::HostsLost(lost))?;
        }
        Ok(())
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
        self.record(RunEvent::Ended { outcome, expires })
    }

    fn heed_signals(&mut self) {
        for signal in self.signals.pending() {
            let stop = match signal {
                Signal::Interrupt => self.stop.further(),
                Signal::Terminate => Stop::Now,
                Signal::Hangup => Stop::Leave,
                // Not listened to.
                Signal::Kill | Signal::Stop | Signal::Continue | Signal::FileSize | Signal::WindowChange => self.stop,
            };
            if stop > self.stop {
                self.stop = stop;
                (self.context.notify)(Notice::Heeded(stop));
            }
        }
    }

    pub(super) fn tell_step_began(&mut self) {
        let Position::InStep(index, Stage::Opening(_) | Stage::Materialising { .. } | Stage::Settling) = self.run.position else { return };
        let record = &self.run.steps[index];
        (self.context.notify)(Notice::StepBegan {
            step: &record.plan.id,
            number: index + 1,
            of: self.run.steps.len(),
            attempt: record.attempts,
        });
    }
}

/// A run as the journal holds it.
pub(super) struct Stored {
    pub(super) run_id: RunId,
    pub(super) run: Run,
    pub(super) definition: Definition,
    pub(super) version: u64,
}
