//! What is recorded about a run. Stored as JSON: a change of shape needs an upcaster in the journal.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Definition, Failure, Proposal, Records, RetrySpec, Severity, StepId, Task, Verdict};
use crate::session::{EngineName, Phase, SessionReport, Work};
use crate::{Branch, Expiry, Oid, RecordId, RepoPath, SessionId, Timestamp};

use super::run::Outcome;

/// One recorded fact or decision of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum RunEvent {
    /// The run exists.
    Started(Box<RunStarted>),
    /// A step won't run.
    StepSkipped {
        /// Which.
        step: StepId,
        /// Why.
        reason: SkipReason,
    },
    /// The first attempt of a step begins.
    StepBegan {
        /// Which.
        step: StepId,
        /// HEAD when it began; `None` where the repository has no commit yet.
        baseline: Option<Oid>,
    },
    /// The step can't be begun (an expression or template that can't be evaluated).
    StepRejected {
        /// Which.
        step: StepId,
        /// Why.
        failure: Failure,
    },
    /// A session is about to be started for the current step.
    SessionOpened {
        /// Its id, and that of its folder.
        session: SessionId,
        /// The phase it serves.
        phase: Phase,
        /// What it does in it.
        #[serde(default)]
        work: Work,
        /// What is judged, for a judge.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<Evidence>,
        /// The records of memory that it is shown.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        known: Vec<RecordId>,
    },
    /// The host reported.
    SessionEnded {
        /// Which session.
        session: SessionId,
        /// What its host saw.
        report: Box<SessionReport>,
        /// What a judge said, where its result is what it was asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verdict: Option<Verdict>,
    },
    /// The host is gone and left no report.
    SessionLost {
        /// Which session.
        session: SessionId,
        /// Processes of it that were still there and were ended.
        #[serde(default, skip_serializing_if = "is_zero")]
        ended_orphans: u32,
    },
    /// What a lost session had changed is about to be put back.
    RestorePlanned {
        /// Where it was saved; `None` when it had changed nothing.
        salvage: Option<String>,
        /// The paths that are put back to the step's baseline.
        paths: Vec<RepoPath>,
    },
    /// The work tree is back at the step's baseline and the next attempt may begin.
    Restored,
    /// A failed attempt is repeated on the tree as it is.
    RetryPlanned {
        /// What failed.
        failure: Failure,
        /// When the next attempt may begin.
        until: Timestamp,
    },
    /// The pause before a further attempt is over.
    RetryBegan,
    /// A person answered what the step asks before it does its work.
    Answered {
        /// Which step.
        step: StepId,
        /// What they said.
        answer: Answer,
        /// In their words.
        message: Option<String>,
    },
    /// What the step's agents left in the work tree, before anything else of the step runs.
    Collected {
        /// Changed, new and deleted paths.
        changed: Vec<RepoPath>,
        /// Commits that the agents made themselves, oldest first.
        commits: Vec<Oid>,
        /// Why the work can't be taken.
        failure: Option<Failure>,
    },
    /// The agents of the run are held in this kind of box.
    Confined {
        /// Its name; `none` when there is no box.
        kind: String,
        /// What they reach of the network, where that was recorded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        net: Option<String>,
        /// What such a box is to keep them from and this one does not, by name.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        open: Vec<String>,
    },
    /// A person wants the checks that reached no verdict judged again.
    RejudgeAsked,
    /// The worktree of an isolated run exists.
    WorktreeMade,
    /// The branch of an isolated run is in the branch that it was started from.
    Merged {
        /// HEAD of that branch then.
        commit: Oid,
    },
    /// What the step left in the work tree.
    Surveyed {
        /// Changed, new and deleted paths.
        changed: Vec<RepoPath>,
        /// Commits that the step made itself, oldest first.
        commits: Vec<Oid>,
        /// Why the step can't count as done although its phases passed.
        failure: Option<Failure>,
    },
    /// A commit is about to be made.
    CommitPlanned {
        /// What for.
        purpose: CommitPurpose,
        /// The commit it goes on top of.
        parent: Option<Oid>,
    },
    /// A planned commit was made.
    Committed {
        /// What for.
        purpose: CommitPurpose,
        /// Its name.
        commit: Oid,
    },
    /// Git, a hook or the signing program refused a planned commit.
    CommitRefused {
        /// What for.
        purpose: CommitPurpose,
        /// Who refused and what they printed.
        failure: Failure,
    },
    /// What stays uncommitted in the work tree when the run stops, so that a resume can tell
    /// the run's own leftovers from what somebody did since.
    LeftInTree {
        /// The paths.
        paths: Vec<RepoPath>,
        /// A tree object that holds their contents.
        snapshot: Oid,
    },
    /// The run stops here and can be resumed.
    Halted {
        /// Why.
        reason: HaltReason,
    },
    /// A person goes on with a halted, failed or dead run.
    Resumed {
        /// HEAD at that moment.
        head: Option<Oid>,
        /// Foreign changes that the person accepted, now or in an earlier resume, and that no step has taken in yet.
        accepted: Vec<RepoPath>,
        /// A tree object that holds their contents.
        #[serde(default)]
        snapshot: Option<Oid>,
        /// A new directive; the earlier one stays when absent.
        directive: Option<String>,
        /// When the run last showed that it lived, where its driver died without a word.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_sign: Option<Timestamp>,
    },
    /// From here on the run follows another version of its card.
    Redefined {
        /// Hash of the stored card text.
        snapshot: String,
        /// Its steps.
        steps: Vec<StepPlan>,
    },
    /// Memory was told what the run taught.
    Proposed {
        /// What became of each lesson.
        records: Vec<Proposal>,
        /// Why memory could not be told, where it could not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        obstacle: Option<String>,
    },
    /// The run is over.
    Ended {
        /// How.
        outcome: Outcome,
        /// When `gc` may remove it; `None` for never.
        expires: Option<Timestamp>,
        /// Whether a step of it counts as done with a warning ([`Run::has_warnings`](super::Run::has_warnings)).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        with_warnings: bool,
    },
    /// A person changed how long the run is kept.
    Retained {
        /// When `gc` may remove it; `None` for never.
        expires: Option<Timestamp>,
    },
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// What is known when a run starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStarted {
    /// The procedure's name.
    pub procedure: String,
    /// Its card, relative to the top of the work tree, or absolute where it lies outside.
    pub card: RepoPath,
    /// Hash of the stored card text.
    pub snapshot: String,
    /// What the state machine needs to know of its steps.
    pub steps: Vec<StepPlan>,
    /// Where the run is recorded.
    pub records: Records,
    /// The one free text a caller may give.
    pub directive: Option<String>,
    /// The inputs, defaults filled in.
    pub inputs: BTreeMap<String, String>,
    /// The only step to run, when the caller chose one.
    pub only: Option<StepId>,
    /// Top of the working tree, absolute; bytes quoted like a [`RepoPath`].
    pub worktree: RepoPath,
    /// Where shells run: the folder of `proctor.toml`, relative to the top; empty for the top itself.
    pub card_root: RepoPath,
    /// What HEAD pointed at.
    pub branch: Branch,
    /// The commit HEAD was at.
    pub head: Option<Oid>,
    /// The run's folder in the repository, where records are kept in git.
    pub folder: Option<RepoPath>,
    /// Paths that were dirty at the start and are left alone (`--allow-dirty`).
    pub foreign: Vec<RepoPath>,
    /// A tree object with the contents of `foreign`, kept under a salvage ref.
    pub foreign_snapshot: Option<Oid>,
    /// How long a completed run is kept.
    pub run_expiry: Expiry,
    /// How long a failed or inconclusive run is kept.
    pub failed_run_expiry: Expiry,
    /// Where the work goes in the end, when the run has a worktree and branch of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolated: Option<Isolated>,
    /// What drives its agents, where it has any: whoever goes on with it gets the same unless they say otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<RunEngine>,
}

/// What drives the agents of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEngine {
    /// The engine.
    pub name: EngineName,
    /// The script that the scripted engine follows, absolute; bytes quoted like a [`RepoPath`].
    pub script: Option<RepoPath>,
    /// The engine of its judges, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<EngineName>,
}

/// Where the work of an isolated run comes from and goes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolated {
    /// Top of the working tree that it was started in, absolute.
    pub origin: RepoPath,
    /// The branch it is merged into.
    pub into: Branch,
}

/// What a judge looks at: the step's whole work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The commit before the step; `None` where there was none.
    pub from: Option<Oid>,
    /// The tree after it.
    pub to: Oid,
}

/// What a person says to a step that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Go on.
    Approve,
    /// Don't; the step fails.
    Reject,
}

/// What the state machine needs to know of one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepPlan {
    /// The step's id.
    pub id: StepId,
    /// The phases that have shells, in order.
    pub phases: Vec<Phase>,
    /// How many agents its run phase has.
    #[serde(default)]
    pub agents: u32,
    /// Whether a model judges its work.
    #[serde(default)]
    pub judged: bool,
    /// What a person is asked before it does its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve: Option<String>,
    /// What a negative check does.
    pub severity: Severity,
    /// Further attempts after a failed shell.
    pub retry: Option<RetrySpec>,
}

impl StepPlan {
    /// The plans of all steps of a definition.
    pub fn of(definition: &Definition) -> Vec<Self> {
        definition
            .steps
            .iter()
            .map(|step| {
                let has = |phase: Option<&super::PhaseSpec>| phase.is_some_and(|phase| !phase.shells.is_empty());
                let present = [
                    (Phase::Precheck, has(step.precheck.as_ref().map(|precheck| &precheck.phase))),
                    (Phase::Run, has(step.run.as_ref())),
                    (Phase::Validate, has(step.validate.as_ref().map(|validate| &validate.phase))),
                ];
                Self {
                    id: step.id.clone(),
                    phases: present.into_iter().filter_map(|(phase, there)| there.then_some(phase)).collect(),
                    agents: step.run.as_ref().map_or(0, |run| u32::try_from(run.agents.len()).unwrap_or(u32::MAX)),
                    judged: step.validate.as_ref().is_some_and(|validate| !validate.phase.instructions.is_empty()),
                    approve: step.approve.clone(),
                    severity: step.validate.as_ref().map_or(Severity::Warn, |validate| validate.severity),
                    retry: step.retry,
                }
            })
            .collect()
    }

    /// The sessions of a step that goes well, in order: a repair and a judge's further tries are not among them.
    pub fn tasks(&self) -> Vec<Task> {
        let shells = |phase: Phase| self.phases.contains(&phase).then_some(Task { phase, work: Work::Shells });
        let mut tasks: Vec<Task> = shells(Phase::Precheck).into_iter().collect();
        tasks.extend((1..=self.agents).map(|number| Task { phase: Phase::Run, work: Work::Agent(number) }));
        tasks.extend(shells(Phase::Run));
        tasks.extend(shells(Phase::Validate));
        tasks.extend(self.judged.then_some(Task { phase: Phase::Validate, work: Work::Judge(1) }));
        tasks
    }

    /// Whether anything checks the step's work.
    pub fn is_checked(&self) -> bool {
        self.judged || self.phases.contains(&Phase::Validate)
    }
}

/// Why a step did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// Its precheck exited 75.
    Precheck,
    /// Its `when` is false.
    Condition,
    /// The caller chose another step.
    NotSelected,
}

impl SkipReason {
    /// The word used in JSON, in run cards and in text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Precheck => "precheck",
            Self::Condition => "condition",
            Self::NotSelected => "not-selected",
        }
    }
}

/// What a commit of Proctor's is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommitPurpose {
    /// `Start procedure: NAME`, before the first step that is not skipped.
    Start,
    /// What the agents of a step left uncommitted, before its shells run.
    Work(StepId),
    /// A step's files and, where records are in git, its record.
    Step(StepId),
    /// `Complete procedure: NAME` or `Failed procedure: NAME`.
    End,
}

/// Why a run stopped although it is not over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HaltReason {
    /// A signal or `proctor stop`.
    Interrupted,
    /// Somebody else changed the work tree between steps.
    ForeignChanges(Vec<RepoPath>),
    /// Somebody else committed between steps.
    ForeignCommits(Vec<Oid>),
    /// HEAD is not where the run was started.
    BranchMoved {
        /// Where the run was started.
        expected: Branch,
        /// Where HEAD is now.
        found: Branch,
    },
    /// The newest commit of the run is no longer behind HEAD.
    HistoryRewritten {
        /// The commit that is missing.
        expected: Oid,
    },
    /// A merge, rebase, cherry-pick or bisect is in progress; its name.
    Operation(String),
    /// A hook changed files while a commit was made, and left them uncommitted.
    HookChanged {
        /// Which.
        paths: Vec<RepoPath>,
        /// What git and the hooks printed.
        output: String,
    },
    /// The commit that begins or ends the run's record in git was refused.
    RecordRefused {
        /// By whom, and what they printed.
        output: String,
    },
    /// The hosts of this many sessions died one after the other.
    HostsLost(u32),
    /// A step asks a person before it does its work.
    Approval {
        /// Which step.
        step: StepId,
        /// What it asks.
        question: String,
    },
    /// An agent asks a person something that it can't go on without.
    Question {
        /// Which step's.
        step: StepId,
        /// What it asks, in its words.
        question: String,
    },
    /// The provider of an engine wants to be left alone for a while.
    Limited {
        /// The engine.
        engine: EngineName,
        /// Until when, where the provider says so.
        until: Option<Timestamp>,
    },
    /// The branch of an isolated run could not be merged.
    NotMerged {
        /// The run's branch.
        branch: Branch,
        /// One sentence about why.
        reason: String,
    },
}

impl HaltReason {
    /// Whether the run waits for a person or a reset, and nothing is wrong.
    pub fn is_parked(&self) -> bool {
        match self {
            Self::Approval { .. } | Self::Question { .. } | Self::Limited { .. } | Self::NotMerged { .. } => true,
            Self::Interrupted
            | Self::ForeignChanges(_)
            | Self::ForeignCommits(_)
            | Self::BranchMoved { .. }
            | Self::HistoryRewritten { .. }
            | Self::Operation(_)
            | Self::HookChanged { .. }
            | Self::RecordRefused { .. }
            | Self::HostsLost(_) => false,
        }
    }
}
