//! Proctor's own commits: made once, found again after a restart.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use proctor_domain::procedure::{CommitPurpose, Failure, HaltReason, Outcome, Owed, Position, Records, RunEvent, Stage, StepState};
use proctor_domain::session::Phase;
use proctor_domain::{Branch, Oid, RepoPath, RunId};
use proctor_process::{Watch, killpoint};
use proctor_workspace::{CommitEnd, CommitFacts, CommitRequest, Hooks, Status};

use super::driver::{Driver, Stop};
use super::{Notice, ProcedureError, record};

/// How long a resume waits for a git of the dead driver before it ends it. Slow hooks may take their time.
pub(super) const EFFECT_PATIENCE: Duration = Duration::from_secs(40);

/// How long a driver that was asked to go waits for git and its hooks. It is to be gone within ten seconds; a commit without
/// slow hooks ends in far less than this.
const HOOK_PATIENCE: Duration = Duration::from_secs(4);

impl Driver<'_> {
    /// Makes the commit that the run owes, or finds the one that an earlier driver made.
    pub(super) fn commit(&mut self, purpose: CommitPurpose, paths: Vec<RepoPath>) -> Result<(), ProcedureError> {
        if self.run.commit_was_planned() {
            if let Some(commit) = self.find_own_commit(&purpose, &paths)? {
                return self.committed(purpose, commit);
            }
        } else {
            self.record(RunEvent::CommitPlanned { purpose: purpose.clone(), parent: self.run.head.clone() })?;
        }
        self.save()?;
        let mut all_paths = paths.clone();
        if let Some(card) = self.write_record(&purpose)? {
            if purpose == CommitPurpose::Start {
                self.untracked.push(card.clone());
            }
            all_paths.push(card);
        }
        let request = CommitRequest {
            message: self.message(&purpose),
            // A commit that holds only Proctor's record is no work of the user's for hooks to judge.
            hooks: if paths.is_empty() { Hooks::Skip } else { Hooks::Run },
            untracked: std::mem::take(&mut self.untracked),
            paths: all_paths,
            limit: None,
            marker: self.marker(&purpose),
            log: self.context.site.state.git_log(&self.run_id),
        };
        killpoint::reach("before commit");
        let Some(end) = self.watch_commit(&request)? else {
            self.left_commit = true;
            return Ok(());
        };
        killpoint::reach("after commit");
        match end {
            CommitEnd::Committed(commit) => {
                let hooked = request.hooks == Hooks::Run && self.context.site.repository.has_commit_hooks()?;
                self.committed(purpose, commit.clone())?;
                if hooked {
                    return self.check_hooks_left_nothing(&request);
                }
                self.resting = self.surveyed.take().map(|status| after_commit(status, commit, &request.paths));
                Ok(())
            }
            CommitEnd::NothingToCommit => self.nothing_to_commit(purpose),
            CommitEnd::HookRefused { output } => self.refused(purpose, Failure::HookRefused { output }),
            CommitEnd::SigningFailed { output } => self.refused(purpose, Failure::Signing { output }),
            CommitEnd::Refused { output } => self.refused(purpose, Failure::Git { output }),
        }
    }

    /// Waits for git, but not for a slow hook once the driver was asked to go: then the commit is for a resume to find.
    fn watch_commit(&mut self, request: &CommitRequest) -> Result<Option<CommitEnd>, ProcedureError> {
        let (signals, stop, notify) = (&self.signals, &mut self.stop, &mut *self.context.notify);
        let mut patience = || {
            stop.heed(signals, notify);
            (*stop >= Stop::Now).then_some(HOOK_PATIENCE)
        };
        let mut watch = Watch { wake: signals.fd(), patience: &mut patience };
        Ok(self.context.site.repository.commit_watched(request, Some(&mut watch))?)
    }

    /// After a restart: records the commit that an earlier driver planned and made, so that it is not taken for
    /// somebody else's.
    pub(super) fn adopt_own_commit(&mut self) -> Result<(), ProcedureError> {
        let Owed::Commit(purpose, paths) = self.run.owes() else { return Ok(()) };
        if !self.run.commit_was_planned() {
            return Ok(());
        }
        (self.context.notify)(Notice::LookingForCommit { patience: EFFECT_PATIENCE });
        match self.find_own_commit(&purpose, &paths)? {
            Some(commit) => self.committed(purpose, commit),
            None => Ok(()),
        }
    }

    fn committed(&mut self, purpose: CommitPurpose, commit: Oid) -> Result<(), ProcedureError> {
        self.keep_detached(Some(&commit))?;
        (self.context.notify)(Notice::Committed { purpose: &purpose, commit: &commit });
        let index = self.step_index();
        self.record(RunEvent::Committed { purpose: purpose.clone(), commit })?;
        if let (CommitPurpose::Step(_), Some(index)) = (purpose, index) {
            self.tell_if_decided(index);
        }
        Ok(())
    }

    /// On a detached HEAD no branch holds what the run commits, and a `git switch` would leave it to git's
    /// housekeeping: a reference of the run's own holds it until `gc` removes the run.
    pub(super) fn keep_detached(&self, head: Option<&Oid>) -> Result<(), ProcedureError> {
        match (&self.run.started.branch, head) {
            (Branch::Detached, Some(head)) => Ok(self.context.site.repository.set_ref(&detached_reference(&self.run_id), head)?),
            (Branch::Detached | Branch::Named(_), _) => Ok(()),
        }
    }

    pub(super) fn step_index(&self) -> Option<usize> {
        match self.run.position {
            Position::InStep(index, _) => Some(index),
            Position::Between | Position::Closing { .. } | Position::Ended(_) => None,
        }
    }

    /// The paths turned out to be as HEAD has them (a filter or an attribute made them equal): there is nothing
    /// of the step's to keep, which HEAD itself says.
    fn nothing_to_commit(&mut self, purpose: CommitPurpose) -> Result<(), ProcedureError> {
        match self.run.head.clone() {
            Some(head) => self.committed(purpose, head),
            None => self.refused(purpose, Failure::Git { output: "there is nothing to commit".to_owned() }),
        }
    }

    fn refused(&mut self, purpose: CommitPurpose, failure: Failure) -> Result<(), ProcedureError> {
        if matches!(purpose, CommitPurpose::Start | CommitPurpose::End) {
            // No step failed; the record alone is missing. The run waits until git takes it.
            return self.halt(HaltReason::RecordRefused { output: failure.to_string() });
        }
        let index = self.step_index();
        self.record(RunEvent::CommitRefused { purpose, failure })?;
        if let Some(index) = index {
            self.tell_if_decided(index);
        }
        Ok(())
    }

    /// A hook that edits files after they were staged leaves work that no check has seen.
    fn check_hooks_left_nothing(&mut self, request: &CommitRequest) -> Result<(), ProcedureError> {
        let status = self.context.site.repository.status()?;
        let paths = self.foreign_changes(&status)?;
        self.resting = Some(status);
        if paths.is_empty() || self.run.halt.is_some() {
            return Ok(());
        }
        let output = last_output(&request.log);
        self.halt(HaltReason::HookChanged { paths, output })
    }

    /// Looks for a commit that an earlier driver made: first lets its git end, then goes by the trailers,
    /// then, where a hook has stripped those, by what the commit on top of the recorded parent holds.
    fn find_own_commit(&mut self, purpose: &CommitPurpose, paths: &[RepoPath]) -> Result<Option<Oid>, ProcedureError> {
        let repository = &self.context.site.repository;
        repository.wait_for_or_end_effects(&self.marker(purpose), EFFECT_PATIENCE)?;
        self.clear_own_locks()?;
        let message = self.message(purpose);
        let subject = message.lines().next().unwrap_or_default();
        let since = repository.commits_since(self.run.head.as_ref())?;
        let trailers = self.trailers(purpose);
        let marked = |commit: &&CommitFacts| trailers.iter().all(|trailer| commit.trailers.contains(trailer)) && commit.subject == subject;
        let found = match since.iter().find(marked) {
            Some(commit) => Some(commit),
            None => self.find_by_contents(&since, subject, paths)?,
        };
        let Some(commit) = found.map(|commit| commit.oid.clone()) else { return Ok(None) };
        // Its git may have been killed between the commit and the index.
        repository.settle_index(&commit)?;
        Ok(Some(commit))
    }

    /// The commit on top of the recorded parent whose message a hook or a person rewrote: with our subject, or with
    /// exactly the tree that ours would have. Only the record may differ, for it carries the time.
    fn find_by_contents<'a>(
        &self,
        since: &'a [CommitFacts],
        subject: &str,
        paths: &[RepoPath],
    ) -> Result<Option<&'a CommitFacts>, ProcedureError> {
        let Some(next) = since.iter().find(|commit| commit.parents.first() == self.run.head.as_ref()) else { return Ok(None) };
        if next.subject == subject {
            return Ok(Some(next));
        }
        let repository = &self.context.site.repository;
        let planned = repository.tree_with(self.run.head.as_ref(), paths)?;
        let differing = repository.differing(&planned, &next.tree)?;
        let holds_ours = !paths.is_empty() || !differing.is_empty();
        Ok(Some(next).filter(|_| holds_ours && differing.iter().all(|path| self.is_own_record(path))))
    }

    /// Removes the locks that a git of this run left when it was killed together with its driver. Those that were
    /// made before the earlier driver decided to use git are somebody else's and stay.
    pub(super) fn clear_own_locks(&self) -> Result<(), ProcedureError> {
        let Some(decided) = self.last_decision else { return Ok(()) };
        let since = UNIX_EPOCH + Duration::from_millis(u64::try_from(decided.0).unwrap_or_default());
        self.context.site.repository.clear_own_stale_locks(&format!("{}/", self.run_id), since)?;
        Ok(())
    }

    /// Writes the run card as it will be true once the commit exists.
    ///
    /// What agents left is committed without it: a judge must not take it for their work.
    fn write_record(&self, purpose: &CommitPurpose) -> Result<Option<RepoPath>, ProcedureError> {
        if matches!(purpose, CommitPurpose::Work(_)) {
            return Ok(None);
        }
        let (Records::Git, Some(folder)) = (self.run.started.records, &self.run.started.folder) else { return Ok(None) };
        let text = record::card(&self.run_id, &self.run, self.context.clock.now());
        record::write(&self.context.site.repository.work_tree, folder, &text).map(Some)
    }

    fn message(&self, purpose: &CommitPurpose) -> String {
        let subject = self.subject(purpose);
        let trailers: Vec<String> = self.trailers(purpose).into_iter().map(|(key, value)| format!("{key}: {value}")).collect();
        format!("{subject}\n\n{}\n", trailers.join("\n"))
    }

    fn subject(&self, purpose: &CommitPurpose) -> String {
        let procedure = single_line(&self.run.started.procedure);
        match (purpose, &self.run.position) {
            (CommitPurpose::Start, _) => format!("Start procedure: {procedure}"),
            (CommitPurpose::Work(step), Position::InStep(_, Stage::CommittingWork { paths, .. })) => {
                Self::work_subject(step.as_str(), paths)
            }
            (CommitPurpose::Work(step), _) => Self::work_subject(step.as_str(), &[]),
            (CommitPurpose::Step(step), Position::InStep(index, _)) => match &self.run.steps[*index].state {
                StepState::Failing(failure) if failure.phase() == Some(Phase::Precheck) => {
                    format!("[procedure] Failed step: {step} (precheck)")
                }
                StepState::Failing(_) => format!("[procedure] Failed step: {step}"),
                StepState::Pending
                | StepState::Running
                | StepState::Skipping
                | StepState::Completed
                | StepState::Skipped(_)
                | StepState::Failed(_) => format!("[procedure] Complete step: {step}"),
            },
            (CommitPurpose::Step(step), _) => format!("[procedure] Complete step: {step}"),
            (CommitPurpose::End, Position::Closing { outcome: Outcome::Failed, .. }) => format!("Failed procedure: {procedure}"),
            (CommitPurpose::End, _) => format!("Complete procedure: {procedure}"),
        }
    }

    fn trailers(&self, purpose: &CommitPurpose) -> Vec<(String, String)> {
        let mut trailers =
            vec![("Procedure".to_owned(), single_line(&self.run.started.procedure)), ("Run".to_owned(), self.run_id.to_string())];
        if let (CommitPurpose::Step(step) | CommitPurpose::Work(step), Position::InStep(index, _)) = (purpose, &self.run.position) {
            let record = &self.run.steps[*index];
            trailers.push(("Step".to_owned(), step.to_string()));
            trailers.push(("Attempt".to_owned(), record.attempts.to_string()));
            if let (CommitPurpose::Work(_), Some(session)) = (purpose, record.sessions.last()) {
                trailers.push(("Commit-Source".to_owned(), "procedure-fallback".to_owned()));
                trailers.push(("Session".to_owned(), session.id.to_string()));
            }
        }
        trailers
    }

    /// What the environment of the git that makes this commit carries, so that a later driver finds it alive.
    fn marker(&self, purpose: &CommitPurpose) -> String {
        let (step, attempt) = match (purpose, &self.run.position) {
            (CommitPurpose::Step(step) | CommitPurpose::Work(step), Position::InStep(index, _)) => {
                (step.as_str(), self.run.steps[*index].attempts)
            }
            (CommitPurpose::Start, _) => ("start", 1),
            (CommitPurpose::Step(_) | CommitPurpose::Work(_) | CommitPurpose::End, _) => ("end", 1),
        };
        let effect = if matches!(purpose, CommitPurpose::Work(_)) { "work" } else { "commit" };
        format!("{}/{step}/{attempt}/{effect}", self.run_id)
    }
}

/// Holds the commits of a run that works on a detached HEAD.
pub(super) fn detached_reference(run: &RunId) -> String {
    format!("refs/proctor/runs/{run}")
}

/// The tree after a commit without hooks: as it was surveyed, without what was committed.
///
/// Asking git again would cost a step a tenth of its time. What somebody changes while git commits is then seen by the
/// next step's survey, and counts as that step's like anything that changes while a step is at work.
fn after_commit(surveyed: Status, commit: Oid, paths: &[RepoPath]) -> Status {
    let paths: BTreeSet<&RepoPath> = paths.iter().collect();
    let changes = surveyed.changes.into_iter().filter(|change| !paths.contains(&change.path)).collect();
    Status { head: Some(commit), changes, ..surveyed }
}

/// The last lines that git and the hooks wrote to the log.
fn last_output(log: &Path) -> String {
    const KEPT: usize = 4 * 1024;
    let text = std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(KEPT)..]).into_owned());
    text.unwrap_or_default()
}

/// A name from a card as part of a commit's subject or trailer.
pub(super) fn single_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
