//! Agents, judges and repairs: what they are given, what they leave, and what they must not touch.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};

use proctor_domain::procedure::{Confinement, Evidence, Failure, RunEvent, StepRecord, Task, Verdict};
use proctor_domain::session::{SessionRecord, SessionReport, Work};
use proctor_domain::{RepoPath, SessionId};
use proctor_engine::agent::{Access, engine, validate_result};
use proctor_engine::{SessionSpec, agent_files, replay_transcript};
use proctor_process::confine::ChosenBox;
use proctor_process::durable::{self, Durability};
use proctor_recall::advice::Brief;
use proctor_workspace::{Programs, Status};
use serde::Deserialize;

use super::driver::Driver;
use super::restore::salvage_prefix;
use super::{Conversation, Notice, ProcedureError};
use crate::Site;
use crate::session::{AgentErrand, SessionOwner, VERDICT_SCHEMA, agent_session, box_rules, choose_box};

/// Bytes of a diff that a judge is given.
const LONGEST_EVIDENCE: usize = 200_000;

impl Driver<'_> {
    /// The session of an agent, a repair or a judge, with its folder made ready for the box.
    pub(super) fn agent_session_spec(
        &mut self,
        index: usize,
        session: SessionId,
        (task, errand): (Task, AgentErrand),
        known: Option<&Brief>,
    ) -> Result<SessionSpec, ProcedureError> {
        make_ready(self.context.site, &session, task.work)?;
        let confined = self.confined(&session, task)?;
        if task.is_of_an_agent() {
            self.remember_programs(&session)?;
        }
        let lost = || ProcedureError::LostDefinition { run: self.run_id.clone(), source: None };
        let step = self.definition.step(&self.run.steps[index].plan.id).ok_or_else(lost)?;
        let record = &self.run.steps[index];
        let owner = SessionOwner { run_id: &self.run_id, run: &self.run, definition: &self.definition, step, record, known };
        // The templates were evaluated when the step began, with the same values.
        agent_session(self.context.site, self.context.clock, &owner, session, (errand, confined)).map_err(|_| lost())
    }

    /// What an agent is to do in this task; `None` when shells do it.
    pub(super) fn errand(&self, index: usize, task: Task) -> Result<Option<AgentErrand>, ProcedureError> {
        let record = &self.run.steps[index];
        Ok(Some(match task.work {
            Work::Shells => return Ok(None),
            Work::Agent(number) => {
                let earlier = earlier_sessions(record, |work| work == task.work);
                AgentErrand::Work { number, interrupted: !earlier.is_empty(), conversation: self.conversation(&earlier) }
            }
            Work::Repair => {
                let earlier = earlier_sessions(record, |work| matches!(work, Work::Agent(_) | Work::Repair));
                let failure = record.repairing.clone().unwrap_or(Failure::Judged { reasoning: String::new() });
                AgentErrand::Repair { failure, conversation: self.conversation(&earlier) }
            }
            Work::Judge(number) => {
                let evidence = record.evidence.as_ref();
                let repository = &self.context.site.repository;
                let text = match evidence {
                    Some(evidence) => repository.evidence(evidence.from.as_ref(), &evidence.to, LONGEST_EVIDENCE)?,
                    None => String::new(),
                };
                AgentErrand::Judge { number, evidence: text }
            }
        }))
    }

    /// The conversation that goes on: that of the newest session, unless its engine did not know it any more.
    fn conversation(&self, earlier: &[&SessionRecord]) -> Option<String> {
        // One that met a limit before it could answer says nothing about the conversation.
        let newest = earlier.iter().rev().find(|session| !session.met_a_limit_unanswered())?;
        match &newest.report {
            Some(report) => report.agent.as_ref().filter(|agent| agent.responded)?.conversation.clone(),
            // Its host died: only what it printed is left.
            None => {
                let site = self.context.site;
                let setup = &site.settings.agents.engine;
                replay_transcript(&site.state.session(&newest.id), setup.name.clone(), setup.kind).and_then(|agent| agent.conversation)
            }
        }
    }

    /// Whether the next session of this work, whose last one was cut off, goes on with its conversation.
    pub(super) fn next_conversation(&self, index: usize, work: Work) -> Conversation {
        let is_meant = |earlier: Work| match work {
            Work::Agent(_) => earlier == work,
            Work::Repair => matches!(earlier, Work::Agent(_) | Work::Repair),
            Work::Judge(_) | Work::Shells => false,
        };
        let sessions: Vec<&SessionRecord> =
            self.run.steps[index].present_sessions().iter().filter(|session| is_meant(session.work)).collect();
        if self.conversation(&sessions).is_some() { Conversation::GoesOn } else { Conversation::Fresh }
    }

    /// The box of this session. Which kind it is, is said and recorded once per run.
    fn confined(&mut self, session: &SessionId, task: Task) -> Result<ChosenBox, ProcedureError> {
        let site = self.context.site;
        let setup = site.settings.agents.driving(task.work);
        site.settings.agents.network_suffices(setup)?;
        let chosen = match &self.confined {
            Some(chosen) => return Ok(chosen.clone()),
            None => {
                let access = if task.is_of_an_agent() { Access::Full } else { Access::ReadOnly };
                choose_box(site, &box_rules(site, setup, session, access))?
            }
        };
        self.confined = Some(chosen.clone());
        let (kind, net) = (chosen.kind().name(), site.settings.agents.net);
        let open = chosen.open_cells(net).iter().map(|cell| cell.name.to_owned()).collect();
        let now = Confinement { kind: kind.to_owned(), net: Some(net.name().to_owned()), open };
        if self.run.confined.as_ref() != Some(&now) {
            (self.context.notify)(Notice::Confined { kind, net: net.name() });
            let Confinement { kind, net, open } = now;
            self.record(RunEvent::Confined { kind, net, open })?;
            self.save()?;
        }
        Ok(chosen)
    }

    /// What a judge looks at: everything that the step changed, as a tree that stays until the run is removed.
    pub(super) fn evidence(&mut self, index: usize, task: Task) -> Result<Option<Evidence>, ProcedureError> {
        let record = &self.run.steps[index];
        // A further try and a rejudgement are of the same work.
        if !matches!(task.work, Work::Judge(1)) || record.rejudge {
            return Ok(None);
        }
        let repository = &self.context.site.repository;
        let status = repository.status()?;
        let to = repository.snapshot(&self.changed_paths(&status))?;
        let reference = format!("{}/judged-{}", salvage_prefix(&self.run_id), record.plan.id);
        let message = format!("What was judged of step {} of {}\n", record.plan.id, self.run_id);
        repository.save(&reference, &to, status.head.as_ref(), &message)?;
        Ok(Some(Evidence { from: record.judged_from.clone().unwrap_or(record.baseline.clone()), to }))
    }

    /// Keeps what git would run, to be compared when the agent is done.
    fn remember_programs(&self, session: &SessionId) -> Result<(), ProcedureError> {
        let programs = self.context.site.repository.programs()?;
        let text = serde_json::to_vec(&programs).map_err(|source| ProcedureError::Encode { source })?;
        Ok(durable::write(&self.context.site.state.git_programs(session), &text, Durability::Synced)?)
    }

    /// Looks at what an agent left in the tree, before anything else runs there.
    pub(super) fn collect(&mut self, index: usize) -> Result<(), ProcedureError> {
        let planted = self.planted(index);
        let status = self.context.site.repository.status()?;
        if let Some(reason) = self.moved(&status) {
            return self.halt(reason);
        }
        let commits = match self.commits_after(self.run.head.clone().as_ref(), &status)? {
            Ok(commits) => commits,
            Err(reason) => return self.halt(reason),
        };
        if !commits.is_empty() {
            self.keep_detached(status.head.as_ref())?;
        }
        let changed = self.changed_paths(&status);
        self.note_untracked(&changed, &status);
        let failure = match planted {
            what if !what.is_empty() => Some(Failure::ChangedGit { what }),
            _ => self.collect_failure(index, &status, &changed)?,
        };
        self.record(RunEvent::Collected { changed, commits, failure })?;
        self.surveyed = Some(status);
        Ok(())
    }

    fn collect_failure(&self, index: usize, status: &Status, changed: &[RepoPath]) -> Result<Option<Failure>, ProcedureError> {
        let touched = self.touched_foreign()?;
        if !touched.is_empty() {
            return Ok(Some(Failure::TouchedForeign { paths: touched }));
        }
        if let Some(head) = &status.head {
            let pointers = self.context.site.repository.new_pointers(self.run.steps[index].baseline.as_ref(), head)?;
            if let Some(path) = pointers.first() {
                let reason = format!("its agent committed {path}, a git repository of its own, whose files no commit here holds");
                return Ok(Some(Failure::Uncommittable { reason }));
            }
        }
        Ok(self.too_much_to_commit(status, changed))
    }

    pub(super) fn note_untracked(&mut self, changed: &[RepoPath], status: &Status) {
        let untracked: BTreeSet<RepoPath> = status.untracked().into_iter().collect();
        self.untracked = changed.iter().filter(|path| untracked.contains(path)).cloned().collect();
    }

    /// What the step's agents changed of what git runs.
    fn planted(&self, index: usize) -> Vec<String> {
        let state = &self.context.site.state;
        let sessions = self.run.steps[index].present_sessions().iter();
        let told = sessions.filter_map(|session| std::fs::read_to_string(state.changed_programs(&session.id)).ok());
        told.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    /// A summary of what agents left uncommitted, for the commit that takes it in.
    pub(super) fn work_subject(step: &str, paths: &[RepoPath]) -> String {
        let what = match paths {
            [] => "uncommitted changes".to_owned(),
            [path] => format!("update {}", path.to_string().rsplit('/').next().unwrap_or_default()),
            paths => format!("update {} files", paths.len()),
        };
        format!("[procedure] {step}: {what}")
    }
}

/// What a judge said, if its result is what it was asked for.
pub(super) fn verdict(task: Task, report: &SessionReport) -> Option<Verdict> {
    #[derive(Deserialize)]
    struct Result {
        passed: bool,
        reasoning: String,
    }
    let (Work::Judge(_), Some(result)) = (task.work, report.agent.as_ref()?.result.as_ref()) else { return None };
    let result = validate_result(VERDICT_SCHEMA, result).ok()?;
    let Result { passed, reasoning } = serde_json::from_value(result).ok()?;
    Some(Verdict { passed, reasoning })
}

/// Compares what git would run with what it was before the agent's session, and puts it back where it differs. Git must
/// not be used between the session's end and this. Safe to repeat: what was found is written down before it is mended.
pub(super) fn mend_programs(site: &Site, session: &SessionId) -> Result<(), ProcedureError> {
    let stored = site.state.git_programs(session);
    let Ok(text) = std::fs::read(&stored) else { return Ok(()) };
    let programs: Programs = serde_json::from_slice(&text).map_err(|source| ProcedureError::Encode { source })?;
    let kept = site.state.planted(session);
    let differences = programs.differences(&site.repository)?;
    if !differences.is_empty() {
        tell_changed(site, session, &differences)?;
        programs.put_back(&site.repository, &kept)?;
    }
    // From here on git may be asked.
    let hiding = programs.hiding(&site.repository)?;
    if !hiding.is_empty() {
        tell_changed(site, session, &hiding)?;
    }
    Ok(programs.uncover(&site.repository, &kept)?)
}

/// Adds to what the session's agent changed, one line each. What stands there was told before a crash, and is mended since.
fn tell_changed(site: &Site, session: &SessionId, changes: &[String]) -> Result<(), ProcedureError> {
    let file = site.state.changed_programs(session);
    let mut told = std::fs::read_to_string(&file).unwrap_or_default();
    for change in changes.iter().map(|change| change.replace(['\n', '\r'], " ")) {
        if !told.lines().any(|line| line == change) {
            told.push_str(&change);
            told.push('\n');
        }
    }
    Ok(durable::write(&file, told.as_bytes(), Durability::Synced)?)
}

/// The sessions since the step was begun whose work is of this kind, but for the one that is open now.
fn earlier_sessions(record: &StepRecord, is_meant: impl Fn(Work) -> bool) -> Vec<&SessionRecord> {
    let sessions = record.present_sessions();
    let earlier = sessions.split_last().map_or(sessions, |(_, earlier)| earlier);
    earlier.iter().filter(|session| is_meant(session.work)).collect()
}

/// A session's folder with what its box names: paths that don't exist can't be made writable.
fn make_ready(site: &Site, session: &SessionId, work: Work) -> Result<(), ProcedureError> {
    let folder = site.state.session(session);
    let setup = site.settings.agents.driving(work);
    let variable = |name: &str| site.engine_variable(setup, name);
    let engines = engine(setup.kind).folders(&variable);
    for folder in [folder.clone(), folder.join("tmp"), folder.join("engine"), site.state.conversations()].into_iter().chain(engines) {
        let made = DirBuilder::new().mode(0o700).recursive(true).create(&folder);
        made.map_err(|source| ProcedureError::Write { path: folder, source })?;
    }
    let files = agent_files(&folder, &site.state.conversations());
    let prepared = engine(setup.kind).prepare(&files, &variable);
    prepared.map_err(|source| ProcedureError::Write { path: files.conversations, source })?;
    for name in ["output", "system.md"] {
        let file = folder.join(name);
        File::options().append(true).create(true).mode(0o600).open(&file).map_err(|source| ProcedureError::Write { path: file, source })?;
    }
    Ok(())
}
