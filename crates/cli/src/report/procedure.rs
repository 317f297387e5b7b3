//! What people are told when a run is refused or can't be driven.

use proctor_domain::procedure::HaltReason;
use proctor_domain::{Branch, RepoPath};
use proctor_engine::agent::EngineKind;
use proctor_orchestrator::UnknownEngine;
use proctor_orchestrator::procedure::{ProcedureError, Refusal};

use super::{Kind, Report};
use crate::printer::visible_line;
use crate::run_text::{counted, local_time};

/// No more paths are listed.
const LISTED: usize = 20;

impl From<ProcedureError> for Report {
    fn from(error: ProcedureError) -> Self {
        match error {
            ProcedureError::Refused(refusal) => refusal.into(),
            ProcedureError::Stopped { run, source } => Self::from(*source).resumable(run.as_str()),
            ProcedureError::Card(findings) => Self::from_findings("the card has errors", findings),
            ProcedureError::NotCommitted { .. } => {
                Self::failed_to(Kind::Environment, &error).hint("mend what stands in the way of that commit, then give this command again")
            }
            ProcedureError::UnknownInput { ref nearest, .. } => {
                let hints = nearest.iter().map(|name| format!("did you mean `--input {name}=…`?")).collect::<Vec<_>>();
                Self::failed_to(Kind::User, &error).hints(hints)
            }
            ProcedureError::MissingInput(ref name) => {
                let hint = format!("give it with `--input {name}=…`");
                Self::failed_to(Kind::User, &error).hint(hint)
            }
            ProcedureError::UnknownStep { ref known, .. } => {
                let names: Vec<String> = known.iter().map(ToString::to_string).collect();
                Self::failed_to(Kind::User, &error).hint(format!("its steps are {}", names.join(", ")))
            }
            ProcedureError::InvalidInput(ref invalid) => Self::new(Kind::User, invalid.to_string()),
            ProcedureError::InputTooLong { .. } => {
                Self::failed_to(Kind::User, &error).hint("write long text to a file and give its path as the input")
            }
            ProcedureError::NothingToResume => Self::new(Kind::User, "there is no run to resume in this working tree")
                .hint("`proctor runs` lists the runs of this repository"),
            ProcedureError::DamagedRun { ref run, .. }
            | ProcedureError::EmptyRun { ref run }
            | ProcedureError::LostDefinition { ref run, .. } => {
                let hint = format!("`proctor doctor` says what is damaged; other runs are not affected by {run}");
                Self::failed_to(Kind::Environment, &error).hint(hint)
            }
            ProcedureError::Resolve(error) => error.into(),
            ProcedureError::Journal(error) | ProcedureError::Append(proctor_journal::AppendError::Journal(error)) => error.into(),
            ProcedureError::ReadRun(error) => error.into(),
            ProcedureError::Append(ref conflict) => Self::failed_to(Kind::Internal, conflict),
            ProcedureError::Workspace(error) => error.into(),
            ProcedureError::OutsideWorkTree { .. } => Self::failed_to(Kind::Environment, &error).hint("remove the link"),
            ProcedureError::Confine(_) => Self::failed_to(Kind::Environment, &error)
                .hint("`proctor doctor` says which boxes can be made here")
                .hint("`confine = \"auto\"` takes the strongest that there is"),
            ProcedureError::Read { .. }
            | ProcedureError::Encode { .. }
            | ProcedureError::Write { .. }
            | ProcedureError::Chance(_)
            | ProcedureError::Signals(_)
            | ProcedureError::Identity(_)
            | ProcedureError::Lock(_)
            | ProcedureError::Durable(_) => Self::failed_to(Kind::Environment, &error)
                .hint("once that is mended, `proctor procedure resume` goes on with an unfinished run"),
            ProcedureError::Host(ref host) => Self::failed_to(Kind::Environment, host).hint("`proctor doctor` checks what sessions need"),
        }
    }
}

impl From<UnknownEngine> for Report {
    fn from(error: UnknownEngine) -> Self {
        Self::failed_to(Kind::User, &error).hint("`proctor engines` lists what can drive agents here")
    }
}

impl From<Refusal> for Report {
    fn from(refusal: Refusal) -> Self {
        let message = format!("refused to {refusal}");
        let report = Self::new(Kind::Refused, message);
        match refusal {
            Refusal::Busy { holder } => report.hint(format!("wait for it with `--wait`, or end it with `proctor stop {holder}`")),
            Refusal::Nested { .. } => {
                report.hint("run it in another working tree: `git worktree add ../other`, then `proctor -C ../other …`")
            }
            Refusal::Live { run } => report.hint(format!("`proctor log {run} --follow` watches it, `proctor stop {run}` ends it")),
            Refusal::Dirty { paths, left_by } => {
                let report = report
                    .listing(&paths)
                    .hint("commit the changes, put them away with `git stash -u`, or start with `--allow-dirty`, which leaves them alone");
                match left_by {
                    Some(run) => report.hint(format!("if {run} left them, `proctor procedure resume {run}` goes on with it")),
                    None => report,
                }
            }
            Refusal::Unusable { .. } => report.hint("resolve or commit it first"),
            Refusal::Operation { operation } => {
                report.hint(format!("finish it or end it first: `git {operation} --continue` or `git {operation} --abort`"))
            }
            Refusal::Halted { run, reason, foreign } => report.halted(&run.to_string(), &reason).listing(&foreign),
            Refusal::OtherWorktree { worktree, .. } => report.hint(format!("`proctor -C '{worktree}' procedure resume`")),
            Refusal::NoEngine { kind: EngineKind::Scripted, .. } => report
                .hint("name one with `--script FILE`, or `script` under `[engines.scripted]` in proctor.toml")
                .hint("`proctor engines` lists what is found"),
            Refusal::NoEngine { engine, .. } => report
                .hint(format!("install it, or name its program under `[engines.{engine}]` in your settings"))
                .hint("`proctor engines` lists what is found; `--engine scripted --script FILE` tries a card without a model"),
            Refusal::NoBranchToMerge => report.hint("`git switch BRANCH` first, or set `isolation: in-place`"),
            Refusal::NotAsking { run } => report.hint(format!("`proctor show {run}` says how it stands")),
            Refusal::WantsWords { run } => report.hint(format!("`proctor answer {run} -m 'your answer' --resume`")),
            Refusal::WantsDecision { run } => report
                .hint(format!("`proctor answer {run} approve --resume` goes on, `proctor answer {run} reject --resume` fails the step")),
            Refusal::NothingToJudge { run } => {
                report.hint(format!("`proctor procedure resume {run}` goes on with a run that has not ended"))
            }
            Refusal::NothingToMerge { run } => report.hint(format!("`proctor show {run}` says how it stands")),
            Refusal::NotMerged { run, branch, .. } => report
                .hint(format!("its work is on the branch `{branch}`"))
                .hint(format!("once that is mended: `proctor procedure merge {run}`")),
            Refusal::MidStep { run, .. } => report.hint(format!("finish the step first: `proctor procedure resume {run}`")),
        }
    }
}

impl Report {
    /// The same with what stands in the way of a run, and the ways out.
    #[must_use]
    pub fn halted(mut self, run: &str, reason: &HaltReason) -> Self {
        self.causes.push(halt_sentence(reason));
        let resume = format!("`proctor procedure resume {run}`");
        match reason {
            HaltReason::Interrupted => self.hint(format!("go on with {resume}")),
            HaltReason::ForeignChanges(paths) => self
                .listing(paths)
                .hint(format!("commit them, put them away with `git stash push -u -- PATH…`, or take them into the run with `proctor procedure resume {run} --accept-foreign`")),
            HaltReason::ForeignCommits(commits) => {
                let names: Vec<&str> = commits.iter().take(LISTED).map(proctor_domain::Oid::short).collect();
                self.hint(format!("look at them with `git show {}`", names.join(" ")))
                    .hint(format!("go on after them with `proctor procedure resume {run} --accept-foreign`"))
            }
            // A branch of ours is checked out in the run's own worktree, and must not be switched to elsewhere.
            HaltReason::BranchMoved { expected: Branch::Named(name), .. } if name.starts_with("proctor/") => {
                self.hint(format!("`proctor show {run}` names its worktree; there: `git switch {name}`, then {resume}"))
            }
            HaltReason::BranchMoved { expected, .. } => self.hint(format!("`git switch {expected}`, then {resume}")),
            HaltReason::HistoryRewritten { expected } => self
                .hint(format!("`git log {}` shows where the run was; to go on from here: `proctor procedure resume {run} --accept-foreign`", expected.short())),
            HaltReason::Operation(name) => self.hint(format!("finish it or end it (`git {name} --continue` or `git {name} --abort`), then {resume}")),
            HaltReason::HookChanged { paths, .. } => self
                .listing(paths)
                .hint(format!("commit or discard what the hook changed, then {resume}")),
            HaltReason::RecordRefused { .. } => self.hint(format!("mend that, then {resume}")),
            HaltReason::HostsLost(_) => self.hint("`proctor doctor` checks what sessions need").hint(format!("then {resume}")),
            HaltReason::Approval { .. } => self.hint(format!(
                "`proctor answer {run} approve --resume` goes on, `proctor answer {run} reject -m 'why not' --resume` fails the step"
            )),
            HaltReason::Question { .. } => self.hint(format!(
                "`proctor answer {run} -m 'your answer' --resume` goes on with it, `proctor answer {run} reject -m 'why not' --resume` fails the step"
            )),
            HaltReason::Limited { until: Some(_), .. } => self.hint(format!(
                "after that, {resume} goes on where it stopped; waiting counts as no attempt, and `--ignore-limits` asks before"
            )),
            HaltReason::Limited { until: None, .. } => self.hint(format!(
                "most such limits are over within minutes: try {resume} in a while; nothing is lost, and waiting counts as no attempt. Until \
                 then every run leaves the account alone: for a minute at first, for at most half an hour where it goes on"
            )),
            HaltReason::NotMerged { .. } => self.hint(format!("once that is mended: `proctor procedure merge {run}`")),
        }
    }

    /// The same with the command that goes on with a run once this is mended.
    fn resumable(mut self, run: &str) -> Self {
        const ANY: &str = "`proctor procedure resume`";
        let exact = format!("`proctor procedure resume {run}`");
        if self.hints.iter().any(|hint| hint.contains(ANY)) {
            self.hints.iter_mut().for_each(|hint| *hint = hint.replace(ANY, &exact));
            return self;
        }
        self.hint(format!("once that is mended, {exact} goes on with the run"))
    }

    /// The same with paths as causes.
    fn listing(mut self, paths: &[RepoPath]) -> Self {
        self.causes.extend(paths.iter().take(LISTED).map(|path| format!("changed: {path}")));
        if paths.len() > LISTED {
            self.causes.push(format!("and {} more", paths.len() - LISTED));
        }
        self
    }
}

/// Why a run stands still, as one sentence without a full stop.
pub fn halt_sentence(reason: &HaltReason) -> String {
    match reason {
        HaltReason::Interrupted => "it was interrupted".to_owned(),
        HaltReason::ForeignChanges(paths) => format!("{} changed that {} not the run's", counted(paths.len(), "path"), are(paths.len())),
        HaltReason::ForeignCommits(commits) => {
            format!("there {} {} that {} not the run's", are(commits.len()), counted(commits.len(), "commit"), are(commits.len()))
        }
        HaltReason::BranchMoved { expected, found } => format!("it works on {expected}, and HEAD is on {found}"),
        HaltReason::HistoryRewritten { expected } => format!("its newest commit {} is no longer behind HEAD", expected.short()),
        HaltReason::Operation(name) => format!("a {name} is in progress"),
        HaltReason::HookChanged { output, .. } if output.trim().is_empty() => "a git hook changed files during a commit".to_owned(),
        HaltReason::HookChanged { output, .. } => format!("a git hook changed files during a commit; it printed:\n{}", output.trim()),
        HaltReason::RecordRefused { output } => format!("its record could not be committed: {}", output.trim()),
        HaltReason::Approval { step, question } => format!("step `{step}` asks: {}", visible_line(question)),
        HaltReason::Question { step, question } => format!("the agent of step `{step}` asks: {}", visible_line(question)),
        HaltReason::Limited { engine, until: Some(until) } => {
            format!("{engine} is at a limit until {}", local_time(*until))
        }
        HaltReason::Limited { engine, until: None } => format!("{engine} is at a limit, and how long that lasts is not known"),
        HaltReason::NotMerged { branch, reason } => format!("its branch `{branch}` was not merged: {reason}"),
        HaltReason::HostsLost(count) => format!("{count} hosts of its step died one after the other"),
    }
}

fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}
