//! How a run stands, for those who want to know what it waits for and how to go on with it.

use proctor_domain::procedure::{Answer, CheckResult, Failure, HaltReason, Outcome, Run, StepId, StepRecord, StepState, Unjudged};
use proctor_domain::{Branch, RunId};
use proctor_orchestrator::procedure::Standing;
use serde::Serialize;

use crate::printer::{Printer, visible_line};
use crate::report::procedure::halt_sentence;
use crate::report::{Kind, Report};
use crate::run_text::utc_time;

/// How a run stands, as JSON.
#[derive(Debug, Serialize)]
pub struct StandingDocument {
    state: &'static str,
    waits_for: Option<&'static str>,
    /// Why it stands still, when it does.
    reason: Option<String>,
    /// When a limit is over, where its provider says so.
    until: Option<String>,
    /// Commands that go on with it, complete.
    go_on: Vec<String>,
}

impl StandingDocument {
    /// Of this run.
    pub fn of(run_id: &RunId, run: &Run, standing: &Standing) -> Self {
        let halt = halt_of(standing);
        Self {
            state: state(standing),
            waits_for: halt.and_then(|reason| waits_for(reason, is_answered(run, reason))),
            reason: why(run, standing),
            until: halt.and_then(|reason| if let HaltReason::Limited { until, .. } = reason { until.map(utc_time) } else { None }),
            go_on: commands(run_id, run, standing),
        }
    }
}

/// The word for how a run stands, whether or not it is over.
pub fn state(standing: &Standing) -> &'static str {
    match standing {
        Standing::Ended(_) => "ended",
        Standing::Interrupted => "interrupted",
        Standing::Halted(reason) if reason.is_parked() => "parked",
        Standing::Halted(_) => "halted",
        Standing::Running => "running",
    }
}

/// What a parked run waits for, as one word.
pub fn waits_for(reason: &HaltReason, answered: bool) -> Option<&'static str> {
    match reason {
        HaltReason::Approval { .. } | HaltReason::Question { .. } if answered => Some("resume"),
        HaltReason::Approval { .. } | HaltReason::Question { .. } => Some("answer"),
        HaltReason::Limited { .. } => Some("reset"),
        HaltReason::NotMerged { .. } => Some("merge"),
        HaltReason::Interrupted
        | HaltReason::ForeignChanges(_)
        | HaltReason::ForeignCommits(_)
        | HaltReason::BranchMoved { .. }
        | HaltReason::HistoryRewritten { .. }
        | HaltReason::Operation(_)
        | HaltReason::HookChanged { .. }
        | HaltReason::RecordRefused { .. }
        | HaltReason::HostsLost(_) => None,
    }
}

/// Whether a person has answered what the run was parked for, and it has not gone on yet.
pub fn is_answered(run: &Run, reason: &HaltReason) -> bool {
    matches!(reason, HaltReason::Approval { .. } | HaltReason::Question { .. }) && run.asks().is_none()
}

/// Why a run stands still, as one sentence without a full stop.
pub fn why(run: &Run, standing: &Standing) -> Option<String> {
    let reason = halt_of(standing)?;
    if let HaltReason::Question { step, .. } = reason
        && is_answered(run, reason)
    {
        return Some(format!("the agent of step `{step}` was answered, and the run has not gone on yet"));
    }
    let HaltReason::Approval { step, .. } = reason else { return Some(halt_sentence(reason)) };
    let said = run.steps.iter().find(|record| record.plan.id == *step).and_then(|record| record.approval.as_ref());
    match said {
        Some(approval) if is_answered(run, reason) => Some(answered(step, approval.answer)),
        Some(_) | None => Some(halt_sentence(reason)),
    }
}

fn answered(step: &StepId, answer: Answer) -> String {
    let word = match answer {
        Answer::Approve => "approved",
        Answer::Reject => "rejected",
    };
    format!("step `{step}` was {word}, and the run has not gone on yet")
}

/// Ways on, each a sentence with the exact command.
pub fn ways_on(run_id: &RunId, run: &Run, standing: &Standing) -> Vec<String> {
    match (standing, halt_of(standing)) {
        (_, Some(reason)) if is_answered(run, reason) => vec![format!("`proctor procedure resume {run_id}` goes on with it")],
        (_, Some(reason)) => Report::new(Kind::Refused, String::new()).halted(run_id.as_str(), reason).hints,
        (Standing::Ended(Outcome::Inconclusive), _) => {
            let merge = branch_to_merge(run)
                .map(|branch| format!("its work is on the branch `{branch}`; `proctor procedure merge {run_id}` merges it as it is"));
            let again = format!("`proctor procedure rejudge {run_id}` judges it again");
            std::iter::once(again).chain(merge).collect()
        }
        (Standing::Ended(_) | Standing::Interrupted | Standing::Halted(_) | Standing::Running, _) => Vec::new(),
    }
}

/// The branch of an isolated run that is not where it came from yet.
pub fn branch_to_merge(run: &Run) -> Option<&Branch> {
    run.awaits_merge().then_some(&run.started.branch)
}

/// Where to look when a step failed because its engine gave no answer: mostly it is not logged in.
pub fn login_hint(run: &Run) -> Option<String> {
    let mute = run.steps.iter().find(|step| matches!(step.state, StepState::Failed(Failure::NoResponse { .. })))?;
    // Whoever resumed the run may have named another engine than it began with.
    let agents = mute.sessions.iter().rev().filter_map(|session| session.report.as_ref()?.agent.as_deref());
    let name = &agents.into_iter().find(|agent| !agent.responded)?.engine;
    Some(format!("`proctor engines` says how {name} is logged in here, and what to do where it is not; the words above are its own"))
}

fn commands(run_id: &RunId, run: &Run, standing: &Standing) -> Vec<String> {
    let resume = || format!("proctor procedure resume {run_id}");
    match standing {
        Standing::Ended(Outcome::Failed) | Standing::Interrupted => vec![resume()],
        Standing::Ended(Outcome::Inconclusive) => {
            let merge = branch_to_merge(run).map(|_| format!("proctor procedure merge {run_id}"));
            std::iter::once(format!("proctor procedure rejudge {run_id}")).chain(merge).collect()
        }
        Standing::Halted(reason @ HaltReason::Approval { .. }) if !is_answered(run, reason) => {
            vec![format!("proctor answer {run_id} approve --resume"), format!("proctor answer {run_id} reject --resume")]
        }
        Standing::Halted(reason @ HaltReason::Question { .. }) if !is_answered(run, reason) => {
            vec![format!("proctor answer {run_id} -m TEXT --resume"), format!("proctor answer {run_id} reject --resume")]
        }
        Standing::Halted(HaltReason::NotMerged { .. }) => vec![format!("proctor procedure merge {run_id}")],
        Standing::Halted(_) => vec![resume()],
        Standing::Ended(Outcome::Completed | Outcome::Skipped) | Standing::Running => Vec::new(),
    }
}

fn halt_of(standing: &Standing) -> Option<&HaltReason> {
    match standing {
        Standing::Halted(reason) => Some(reason),
        Standing::Ended(_) | Standing::Interrupted | Standing::Running => None,
    }
}

/// The steps whose review reached no verdict, and why.
pub fn unjudged(run: &Run) -> impl Iterator<Item = (&StepRecord, Unjudged)> {
    let open = run.steps.iter().filter(|step| step.validate == Some(CheckResult::Inconclusive));
    open.map(|step| (step, step.unjudged.unwrap_or(Unjudged::Unknown)))
}

/// Says on stderr, for each step without a verdict, that it has none. Programs match the whole line, so it is never
/// coloured and never left out.
pub fn tell_inconclusive(printer: &Printer, run: &Run) {
    let name = visible_line(&run.started.procedure);
    for (step, reason) in unjudged(run) {
        printer.insist(&format!("Inconclusive: procedure {name} — review of step {} {reason}; work completed", step.plan.id));
    }
}
