//! How the sessions of agents and judges change a run.

use super::apply::UnexpectedEvent;
use super::run::{Position, QuestionAnswer, Run, Stage, StepRecord, StepState};
use super::{Answer, Approval, CheckResult, Failure, HaltReason, Severity, Task, Unjudged, Verdict};
use crate::session::{SessionEnd, SessionRecord, SessionReport, Work};
use crate::{Oid, RecordId, RepoPath, SessionId, Timestamp};

impl Run {
    /// A session of the step begins, in its present attempt.
    pub(super) fn session_opened(&mut self, at: Timestamp, index: usize, (id, known): (SessionId, Vec<RecordId>), task: Task) {
        let record = &mut self.steps[index];
        record.sessions.push(SessionRecord {
            id,
            phase: task.phase,
            work: task.work,
            attempt: record.attempts,
            opened_at: at,
            known,
            ended_at: None,
            orphans_of_lost: 0,
            report: None,
        });
    }

    /// The provider wants to be left alone: the run waits and nothing is counted.
    pub(super) fn limited(task: Task, report: &SessionReport) -> Option<Stage> {
        let (SessionEnd::RateLimited { until } | SessionEnd::UsageLimit { until }) = &report.end else { return None };
        let engine = report.agent.as_ref()?.engine.clone();
        Some(Stage::Limited { task, reason: HaltReason::Limited { engine, until: *until } })
    }

    /// An agent whose host died or that was interrupted goes on where it was: its tree and its conversation are kept.
    pub(super) fn open_again(&mut self, index: usize, task: Task) -> Result<(), UnexpectedEvent> {
        self.steps[index].attempts += 1;
        self.stay(index, Stage::Opening(task))
    }

    /// How an agent's session ended gates nothing by itself where a check looks at its work. Without any answer of the
    /// model, the step's shells still run, which may finish or tidy up what is there, and then the step fails.
    pub(super) fn agent_ended(&mut self, index: usize, number: u32, report: &SessionReport) -> Result<(), UnexpectedEvent> {
        let task = Task { phase: crate::session::Phase::Run, work: Work::Agent(number) };
        let record = &mut self.steps[index];
        if !responded(report) && record.may_begin_afresh(task.work) || record.was_killed_once(task.work) {
            return self.open_again(index, task);
        }
        if !responded(report) {
            record.state = StepState::Failing(no_response(task.work, report));
            let shells = Task::shells(task.phase);
            let then = record.plan.tasks().contains(&shells).then_some(shells);
            return self.stay(index, Stage::Collecting { then });
        }
        if let Some(question) = question(report) {
            return self.stay(index, Stage::Questioned { task, question });
        }
        let cut_short = matches!(report.end, SessionEnd::Timeout | SessionEnd::Silent | SessionEnd::Crashed { .. } | SessionEnd::NoResult);
        let blocked = report.agent.as_ref().and_then(|agent| agent.told.blocked.clone());
        let failure = match (&report.output_error, blocked) {
            (Some(reason), _) => Some(Failure::Outputs { reason: reason.clone() }),
            (None, _) if record.plan.is_checked() => None,
            (None, Some(reason)) => Some(Failure::Blocked { agent: number, reason }),
            (None, None) => cut_short.then(|| Failure::Agent { agent: number, end: report.end.name().to_owned() }),
        };
        if let Some(failure) = failure {
            record.state = StepState::Failing(failure);
            return self.stay(index, Stage::Settling);
        }
        match record.task_after(task) {
            Some(next) if next.is_of_an_agent() => self.stay(index, Stage::Opening(next)),
            then => self.stay(index, Stage::Collecting { then }),
        }
    }

    /// What the repair made of it is for the checks to say, all of them again.
    pub(super) fn repair_ended(&mut self, index: usize, report: &SessionReport) -> Result<(), UnexpectedEvent> {
        let record = &mut self.steps[index];
        if !responded(report) && record.may_begin_afresh(Work::Repair) || record.was_killed_once(Work::Repair) {
            return self.open_again(index, Task::REPAIR);
        }
        if !responded(report) {
            record.validate = Some(CheckResult::Fail);
            record.state = StepState::Failing(no_response(Work::Repair, report));
            return self.stay(index, Stage::Settling);
        }
        record.collected = false;
        if let Some(question) = question(report) {
            return self.stay(index, Stage::Questioned { task: Task::REPAIR, question });
        }
        let then = record.task_after(Task::REPAIR);
        self.stay(index, Stage::Collecting { then })
    }

    pub(super) fn judge_ended(
        &mut self,
        at: Timestamp,
        index: usize,
        number: u32,
        report: &SessionReport,
        verdict: Option<Verdict>,
    ) -> Result<(), UnexpectedEvent> {
        let record = &mut self.steps[index];
        if let (Some(verdict), Some(session)) = (&verdict, record.sessions.last()) {
            record.verdicts.push((session.id.clone(), verdict.clone()));
        }
        if !responded(report) && record.rejudge {
            // The work is not worse than it was: it is still unjudged, and can be judged again.
            record.validate = Some(CheckResult::Inconclusive);
            record.unjudged = Some(Unjudged::Unknown);
            return self.judged(at, index);
        }
        if !responded(report) {
            // No check said no: it fails because nobody looked.
            record.validate = Some(CheckResult::Inconclusive);
            record.unjudged = Some(Unjudged::Unknown);
            record.state = StepState::Failing(no_response(Work::Judge(number), report));
            return self.judged(at, index);
        }
        match verdict {
            None if number == 1 => return self.stay(index, Stage::Opening(Task::judge(2))),
            // A check that reached no verdict hides a warning: it is the weaker statement about the work.
            None => {
                record.validate = Some(CheckResult::Inconclusive);
                record.unjudged = Some(Unjudged::of(&report.end, number));
            }
            Some(Verdict { passed: true, reasoning }) => {
                record.reasoning = Some(reasoning);
                record.unjudged = None;
                record.validate = Some(if record.warning.is_some() { CheckResult::Warn } else { CheckResult::Pass });
            }
            Some(Verdict { passed: false, reasoning }) => {
                record.reasoning = Some(reasoning.clone());
                record.unjudged = None;
                if self.found_wanting(index, Failure::Judged { reasoning }) {
                    return self.stay(index, Stage::Opening(Task::REPAIR));
                }
            }
        }
        self.judged(at, index)
    }

    fn judged(&mut self, at: Timestamp, index: usize) -> Result<(), UnexpectedEvent> {
        if std::mem::take(&mut self.steps[index].rejudge) {
            // Nothing has worked on the tree, so there is nothing to settle in it.
            self.step_over(at, index);
            return Ok(());
        }
        self.stay(index, Stage::Settling)
    }

    /// Notes what a negative check does to the step. `true` when its only agent is to repair it, which it may once.
    pub(super) fn found_wanting(&mut self, index: usize, failure: Failure) -> bool {
        let record = &mut self.steps[index];
        match record.plan.severity {
            Severity::Warn => {
                record.validate = Some(CheckResult::Warn);
                record.warning = Some(failure);
                false
            }
            Severity::Review if record.plan.agents == 1 && record.repairing.is_none() && !record.rejudge => {
                record.validate = None;
                record.warning = None;
                record.reasoning = None;
                record.repairing = Some(failure);
                true
            }
            Severity::Review | Severity::Abort => {
                record.validate = Some(CheckResult::Fail);
                record.state = StepState::Failing(failure);
                false
            }
        }
    }

    /// What the agents of a step left is known.
    pub(super) fn collect(
        &mut self,
        index: usize,
        then: Option<Task>,
        (changed, commits): (Vec<RepoPath>, Vec<Oid>),
        failure: Option<Failure>,
    ) -> Result<(), UnexpectedEvent> {
        if let Some(newest) = commits.last() {
            self.head = Some(newest.clone());
        }
        let record = &mut self.steps[index];
        record.commits.extend(commits);
        if let Some(failure) = failure {
            record.state = StepState::Failing(failure);
            return self.stay(index, Stage::Settling);
        }
        if changed.is_empty() {
            return self.collected(index, then);
        }
        self.stay(index, Stage::CommittingWork { paths: changed, planned: false, then })
    }

    /// What the agents did is committed; what follows them may run.
    pub(super) fn collected(&mut self, index: usize, then: Option<Task>) -> Result<(), UnexpectedEvent> {
        self.steps[index].collected = true;
        let stage = self.stage_before(index, then);
        self.stay(index, stage)
    }

    /// A person has answered a step that asks.
    pub(super) fn answer(&mut self, index: usize, then: Option<Task>, approval: Approval) -> Result<(), UnexpectedEvent> {
        let record = &mut self.steps[index];
        let then = match approval.answer {
            Answer::Approve => then,
            Answer::Reject => {
                record.state = StepState::Failing(Failure::Rejected { message: approval.message.clone() });
                None
            }
        };
        record.approval = Some(approval);
        let stage = self.stage_before(index, then);
        self.stay(index, stage)
    }

    /// A person has answered an agent, which goes on with it, or has told it to stop.
    pub(super) fn answer_agent(&mut self, index: usize, task: Task, question: String, said: Approval) -> Result<(), UnexpectedEvent> {
        let record = &mut self.steps[index];
        match said.answer {
            Answer::Approve => {
                let answer = said.message.unwrap_or_default();
                record.answers.push(QuestionAnswer { question, answer, at: said.at });
                self.stay(index, Stage::Opening(task))
            }
            Answer::Reject => {
                record.state = StepState::Failing(Failure::Rejected { message: said.message });
                self.stay(index, Stage::Settling)
            }
        }
    }

    /// Every check without a verdict is judged again, on the evidence that was recorded.
    pub(super) fn rejudge(&mut self, at: Timestamp) {
        for record in &mut self.steps {
            if record.validate == Some(CheckResult::Inconclusive) && record.plan.judged {
                let rested = record.ended_at.map_or(0, |ended| at.millis_since(ended));
                record.rested_millis = record.rested_millis.saturating_add(rested);
                record.rejudge = true;
                record.state = StepState::Running;
                record.validate = None;
                record.unjudged = None;
                record.ended_at = None;
            }
        }
        self.ended_at = None;
        self.expires = None;
        self.has_proposed = false;
        self.position = Position::Between;
        self.judge_next();
    }

    /// The step that a run goes on with was not worked on since the run stopped, or its driver died.
    pub(super) fn count_rest(&mut self, at: Timestamp, last_sign: Option<Timestamp>) {
        let stopped = self.ended_at.or(self.halted_at.take()).or(last_sign).unwrap_or(self.newest_at);
        let goes_on = match self.position {
            Position::InStep(index, _) => Some(index),
            Position::Ended(super::Outcome::Failed) => self.steps.iter().position(|step| matches!(step.state, StepState::Failed(_))),
            Position::Between | Position::Closing { .. } | Position::Ended(_) => None,
        };
        if let Some(step) = goes_on.and_then(|index| self.steps.get_mut(index)) {
            step.rested_millis = step.rested_millis.saturating_add(at.millis_since(stopped.max(step.started_at.unwrap_or(stopped))));
        }
    }

    /// Whether the only failed step failed because its judge gave no answer. Where records are in git, the record of the
    /// failure is in the history by then, and the step is begun again.
    pub(super) fn lacks_only_its_verdict(&self, index: usize) -> bool {
        let failed = |step: &StepRecord| matches!(step.state, StepState::Failed(_));
        let mute = matches!(self.steps[index].state, StepState::Failed(Failure::NoResponse { work: Work::Judge(_), .. }));
        mute && !self.keeps_cards() && self.steps.iter().filter(|step| failed(step)).count() == 1
    }

    /// Asks the judge again, who alone gave no answer: the step's work is finished, and nobody has touched it since.
    pub(super) fn judge_anew(&mut self, index: usize) {
        let record = &mut self.steps[index];
        record.state = StepState::Running;
        record.attempts += 1;
        record.validate = record.warning.is_some().then_some(CheckResult::Warn);
        record.unjudged = None;
        record.ended_at = None;
        self.position = Position::InStep(index, Stage::Opening(Task::judge(1)));
    }

    /// Goes to the next step that is to be judged again; `false` when there is none.
    pub(super) fn judge_next(&mut self) -> bool {
        let next = self.steps.iter().position(|record| record.rejudge);
        if let Some(index) = next {
            self.position = Position::InStep(index, Stage::Opening(Task::judge(1)));
        }
        next.is_some()
    }
}

impl StepRecord {
    /// Whether the program of the session that just ended was killed, for the first time in this work: then its
    /// conversation goes on, once. What kills it again may be what it does.
    fn was_killed_once(&self, work: Work) -> bool {
        let of_this_work = self.present_sessions().iter().rev().filter(|session| session.work == work);
        let mut killed = of_this_work.map(SessionRecord::was_killed);
        killed.next() == Some(true) && !killed.any(|killed| killed)
    }

    /// Whether the last session of this work was interrupted.
    pub fn was_interrupted(&self, work: Work) -> bool {
        let last = self.present_sessions().iter().rev().find(|session| session.work == work);
        last.and_then(|session| session.report.as_ref()).is_some_and(|report| report.end == SessionEnd::Interrupted)
    }

    /// Whether the session that just ended without an answer went on with a conversation that its engine may not know any
    /// more: then one without it is tried, once.
    fn may_begin_afresh(&self, work: Work) -> bool {
        let is_of_the_agent = |earlier: Work| earlier == work || (work == Work::Repair && matches!(earlier, Work::Agent(_)));
        let mut earlier = self.present_sessions().iter().rev().skip(1).filter(|session| is_of_the_agent(session.work));
        earlier.next().is_some_and(|session| session.report.as_ref().is_none_or(responded))
    }
}

/// What the agent asks a person. The next session of the same conversation goes on from there.
fn question(report: &SessionReport) -> Option<String> {
    report.agent.as_ref()?.told.question.clone()
}

impl SessionRecord {
    /// Whether it is of a judge that gave no answer at all.
    pub fn is_of_a_mute_judge(&self) -> bool {
        matches!(self.work, Work::Judge(_)) && self.report.as_ref().is_some_and(|report| !responded(report))
    }

    /// Whether somebody else killed the agent's program after the model had answered: it was as well as one whose host died.
    pub fn was_killed(&self) -> bool {
        self.report.as_ref().is_some_and(|report| report.killed_by.is_some() && responded(report))
    }
}

/// Whether the model gave any answer in this session.
fn responded(report: &SessionReport) -> bool {
    report.agent.as_ref().is_some_and(|agent| agent.responded)
}

fn no_response(work: Work, report: &SessionReport) -> Failure {
    let said = report.agent.as_ref().and_then(|agent| agent.error.clone());
    let reason = match (&report.end, said) {
        (SessionEnd::Crashed { reason }, _) => reason.clone(),
        // Proctor ended it, whatever its program said on the way.
        (SessionEnd::Timeout, _) => "it reached its time limit".to_owned(),
        (SessionEnd::Silent, _) => "it was silent for too long".to_owned(),
        (_, Some(said)) => said,
        (end, None) => format!("its session ended with `{}`", end.name()),
    };
    // A program that could not do its job says why on standard error.
    let complaint = report.stderr.text().lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
    let reason = complaint.map_or(reason.clone(), |complaint| format!("{reason}; it printed: {}", shortened(&complaint)));
    Failure::NoResponse { work, reason }
}

/// The beginning of a line that is quoted in a sentence.
fn shortened(line: &str) -> String {
    const LONGEST: usize = 200;
    let mut characters = line.chars();
    let shown: String = characters.by_ref().take(LONGEST).collect();
    if characters.next().is_none() { shown } else { format!("{shown}…") }
}
