//! `proctor procedure …`

use clap::{Args, Subcommand, ValueEnum};

use super::engine::EngineArgs;

/// Longest value of one `--input`, in bytes. Linux refuses a single variable of 128 KiB; half of it leaves
/// room for what a shell builds from it.
pub const LONGEST_INPUT: usize = 64 * 1024;

/// Run, resume and look after procedures
#[derive(Debug, Subcommand)]
pub enum ProcedureCommand {
    Run(RunArgs),
    Resume(ResumeArgs),
    Rejudge(RejudgeArgs),
    Merge(MergeArgs),
    Status(StatusArgs),
    List(ListArgs),
    Show(ShowArgs),
    Lint(LintArgs),
    Gc(GcArgs),
    Pin(PinArgs),
    Unpin(UnpinArgs),
}

/// List the procedures of this repository
///
/// Cards that can't be read are listed too, with the number of their errors; `proctor procedure lint` shows them.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proctor procedure list --json | jq -r '.procedures[].name'")]
pub struct ListArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Show what a procedure takes and does
///
/// Prints its inputs and its steps with their phases, without running anything.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proctor procedure show release-check")]
pub struct ShowArgs {
    /// Name of the procedure (its card's file name up to `.procedure.card`), or a path to a card
    #[arg(value_name = "NAME|PATH")]
    pub procedure: String,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Check cards without running them
///
/// Checks the named procedures, or all of them. Exits 0 when there is nothing to say and 1 when there are
/// findings, errors and warnings alike.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proctor procedure lint && git commit -m 'Tighten the release check'")]
pub struct LintArgs {
    /// Names or paths; all procedures when absent
    #[arg(value_name = "NAME|PATH")]
    pub procedures: Vec<String>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Run a procedure
///
/// Runs its steps in order in this working tree, commits what each step changed, and stops at the first step
/// that fails. The tree has to be clean; what a step leaves is the step's. A run that stopped is continued by
/// `proctor procedure resume`.
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  proctor procedure run release-check\n  proctor procedure run release-check --input version=1.4.0 --json"
)]
pub struct RunArgs {
    /// Name of the procedure (its card's file name up to `.procedure.card`), or a path to a card
    #[arg(value_name = "NAME|PATH")]
    pub procedure: String,

    /// Free text for the steps, which read it as PROCTOR_DIRECTIVE
    #[arg(long, value_name = "TEXT")]
    pub directive: Option<String>,

    /// Value of a declared input; shells read it as `INPUT_<NAME>`
    #[arg(long = "input", value_name = "NAME=VALUE", value_parser = parse_input)]
    pub inputs: Vec<InputValue>,

    /// Run only this step; the others are recorded as skipped
    #[arg(long, value_name = "ID")]
    pub step: Option<String>,

    /// Start although the tree has changes; they are saved first and never committed
    #[arg(long)]
    pub allow_dirty: bool,

    /// Wait while another run holds this working tree
    #[arg(long)]
    pub wait: bool,

    /// Print the plan and run nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Where the run is recorded, in place of the card's and the settings' choice
    #[arg(long, value_enum, value_name = "WHERE")]
    pub records: Option<RecordsChoice>,

    /// Which engine drives agents.
    #[command(flatten)]
    pub engine: EngineArgs,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `--records` of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RecordsChoice {
    /// In the journal; one commit for each step that changed something.
    State,
    /// Also as run cards in the repository, with a commit for each step.
    Git,
}

/// One `--input name=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputValue {
    /// The declared name.
    pub name: String,
    /// The text after the first `=`.
    pub value: String,
}

fn parse_input(text: &str) -> Result<InputValue, String> {
    let (name, value) = text.split_once('=').ok_or("write name=value")?;
    if name.is_empty() {
        return Err("the name before `=` is empty".to_owned());
    }
    if value.len() > LONGEST_INPUT {
        return Err(format!("the value of `{name}` has {} bytes; at most {LONGEST_INPUT} fit", value.len()));
    }
    Ok(InputValue { name: name.to_owned(), value: value.to_owned() })
}

/// Continue a run that stopped
///
/// Continues the newest unfinished run, or the given one, at its first step that is not done, with the card as
/// it was when the run started. Where only its session is still alive, attaches to it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  proctor procedure resume\n  proctor procedure resume run_8x2 --accept-foreign")]
pub struct ResumeArgs {
    /// A run's id, a unique beginning of it, or its run folder; the newest unfinished run when absent
    #[arg(value_name = "RUN")]
    pub run: Option<String>,

    /// Replace the directive that the run was started with
    #[arg(long, value_name = "TEXT")]
    pub directive: Option<String>,

    /// Use the card as it is now; steps already done are kept by their ids
    #[arg(long)]
    pub new_definition: bool,

    /// Go on although there are commits or changes since that are not the run's
    #[arg(long)]
    pub accept_foreign: bool,

    /// Which engine drives agents.
    #[command(flatten)]
    pub engine: EngineArgs,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Judge again what a review left open
///
/// Takes a run that ended as inconclusive: every review that reached no verdict is made again, on the work as it was
/// then, and the run ends anew by what the judges say.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proctor procedure rejudge run_8x2")]
pub struct RejudgeArgs {
    /// A run's id, a unique beginning of it, or its run folder
    #[arg(value_name = "RUN")]
    pub run: String,

    /// Which engine drives the judges.
    #[command(flatten)]
    pub engine: EngineArgs,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Merge the branch of an isolated run
///
/// Takes a run with `isolation: worktree` that is parked because its branch could not be merged, or that is
/// inconclusive. Merges only into a clean checkout of the branch that the run was started from.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proctor procedure merge run_8x2")]
pub struct MergeArgs {
    /// A run's id, a unique beginning of it, or its run folder
    #[arg(value_name = "RUN")]
    pub run: String,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Show how a run stands
///
/// Shows the newest run, or the given one: what happened in each step and, for a failed one, its phase, exit
/// code and the end of what it printed.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proctor procedure status run_8x2")]
pub struct StatusArgs {
    /// A run's id, a unique beginning of it, or its run folder; the newest run when absent
    #[arg(value_name = "RUN")]
    pub run: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Remove runs whose time has come
///
/// Completed runs are kept 30 days and failed ones 90 days, unless their card or record says otherwise. The
/// newest run of each procedure, runs that are going on and pinned runs stay.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proctor procedure gc --dry-run")]
pub struct GcArgs {
    /// Print what would be removed and remove nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Keep a run until it is unpinned
///
/// Sets the run's `expires` to `never`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proctor procedure pin run_8x2")]
pub struct PinArgs {
    /// A run's id, a unique beginning of it, or its run folder
    #[arg(value_name = "RUN")]
    pub run: String,
}

/// Let a pinned run expire again
///
/// Sets the run's `expires` to what its procedure says, counted from the run's end.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proctor procedure unpin run_8x2")]
pub struct UnpinArgs {
    /// A run's id, a unique beginning of it, or its run folder
    #[arg(value_name = "RUN")]
    pub run: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_split_at_its_first_equals_sign() {
        assert_eq!(parse_input("a=b=c"), Ok(InputValue { name: "a".to_owned(), value: "b=c".to_owned() }));
        assert_eq!(parse_input("a="), Ok(InputValue { name: "a".to_owned(), value: String::new() }));
    }

    #[test]
    fn an_input_without_a_name_or_too_long_is_refused() {
        assert!(parse_input("a").is_err());
        assert!(parse_input("=b").is_err());
        assert!(parse_input(&format!("a={}", "x".repeat(LONGEST_INPUT))).is_ok());
        assert!(parse_input(&format!("a={}", "x".repeat(LONGEST_INPUT + 1))).is_err());
    }
}
