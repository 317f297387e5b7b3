//! `proctor memory`: what works and its trap, and what fails.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use proctor_recall::{Action, Degree, Evidence, Layer, Polarity, Scope, Word};

/// Keep and find what works, with its trap, and what fails
#[derive(Debug, Subcommand)]
pub enum MemoryCommand {
    #[command(subcommand)]
    Add(AddCommand),
    Try(TryArgs),
    List(ListArgs),
    Show(ShowRecordArgs),
    Edit(EditArgs),
    Approve(DecideArgs),
    Reject(DecideArgs),
    Forget(DecideArgs),
    Import(ImportArgs),
    Export(ExportArgs),
    Doctor(MemoryDoctorArgs),
}

/// Record what works, or what fails
///
/// What a session of Proctor records is proposed, and counts once a person approved it. What you record counts at once.
#[derive(Debug, Subcommand)]
pub enum AddCommand {
    /// Record a procedure: what to do, and the trap of doing it otherwise
    #[command(
        after_help = "Example:\n  proctor memory add works --route 'run migrations before the seed' --trap 'the seed passes on an empty schema and fails later'"
    )]
    Works(Box<AddArgs>),
    /// Record a dead end: what was done, and what was seen when it failed
    #[command(
        after_help = "Example:\n  proctor memory add fails --route 'cache the image by tag' --observation 'the old image was used for a week' --action abandon"
    )]
    Fails(Box<AddArgs>),
}

/// What a record says.
#[derive(Debug, Args)]
pub struct AddArgs {
    /// The whole record as a line: `route: … | trap: … | layer: design`
    #[arg(value_name = "LINE", required_unless_present = "route")]
    pub line: Option<String>,

    /// What was, or is to be, done
    #[arg(long, value_name = "TEXT", conflicts_with = "line")]
    pub route: Option<String>,

    /// What goes wrong for who does it otherwise
    #[arg(long, value_name = "TEXT", conflicts_with = "line")]
    pub trap: Option<String>,

    /// What was seen when it failed
    #[arg(long, value_name = "TEXT", conflicts_with = "line")]
    pub observation: Option<String>,

    /// What to try instead
    #[arg(long, value_name = "TEXT", conflicts_with = "line")]
    pub alternative: Option<String>,

    /// A command that shows that it works; it is kept as text, and never run because it stands there
    #[arg(long, value_name = "COMMAND", conflicts_with = "line")]
    pub verify: Option<String>,

    /// What it is about
    #[arg(long, value_name = "LAYER", conflicts_with = "line", value_parser = words::<Layer>())]
    pub layer: Option<String>,

    /// How far it travels
    #[arg(long, value_name = "SCOPE", conflicts_with = "line", value_parser = words::<Scope>())]
    pub scope: Option<String>,

    /// How sure it is that it works
    #[arg(long, value_name = "EVIDENCE", conflicts_with = "line", value_parser = words::<Evidence>())]
    pub evidence: Option<String>,

    /// How sure it is that it fails
    #[arg(long, value_name = "DEGREE", conflicts_with = "line", value_parser = words::<Degree>())]
    pub degree: Option<String>,

    /// What to do about it
    #[arg(long, value_name = "ACTION", conflicts_with = "line", value_parser = words::<Action>())]
    pub action: Option<String>,

    /// A file that it is about, relative to the top of the repository
    #[arg(long = "file", value_name = "PATH")]
    pub files: Vec<String>,

    /// A package that it was seen with, as `name` or `name@version`
    #[arg(long = "dep", value_name = "NAME@VERSION")]
    pub dependencies: Vec<String>,

    /// Who says so
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,

    /// The record that this one replaces
    #[arg(long, value_name = "ID")]
    pub supersedes: Option<String>,

    #[command(flatten)]
    pub place: PlaceArgs,

    #[command(flatten)]
    pub output: ChangeArgs,
}

fn words<T: Word>() -> PossibleValuesParser {
    PossibleValuesParser::new(T::WORDS.iter().map(|(word, _)| *word))
}

/// Which of the two folders of memory is meant.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct PlaceArgs {
    /// The repository's memory, tracked with it in `proctor/memory`
    #[arg(long, conflicts_with = "user")]
    pub project: bool,

    /// Your own memory, for all repositories
    #[arg(long)]
    pub user: bool,
}

/// How a change is carried out and told.
#[derive(Debug, Clone, Copy, Args)]
pub struct ChangeArgs {
    /// Only say what would be changed
    #[arg(long)]
    pub dry_run: bool,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `works` or `fails`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PolarityChoice {
    /// What works, and its trap.
    Works,
    /// What fails.
    Fails,
}

impl PolarityChoice {
    /// The polarity.
    pub fn polarity(self) -> Polarity {
        match self {
            Self::Works => Polarity::Works,
            Self::Fails => Polarity::Fails,
        }
    }
}

/// Ask what memory says about something before you try it
///
/// Names dead ends first, then what works, with its trap. Those of this repository come first; what comes from elsewhere, or may be out of
/// date, says so. No dead end is no approval. Records are compared by words, files and packages.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proctor memory try 'cache the image by its tag' --file ci/build.sh --dep docker")]
pub struct TryArgs {
    /// What you are about to try, in your words
    #[arg(value_name = "APPROACH")]
    pub approach: String,

    /// A file that you are about to change, relative to the top of the repository
    #[arg(long = "file", value_name = "PATH")]
    pub files: Vec<String>,

    /// A package that you are about to use or change
    #[arg(long = "dep", value_name = "NAME")]
    pub dependencies: Vec<String>,

    /// How many dead ends and how many procedures at most; 6 and 4 when it is not given
    #[arg(short = 'k', long = "most", value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub most: Option<u16>,

    #[command(flatten)]
    pub place: PlaceArgs,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// List records
///
/// Lists those that count: approved, and not replaced by another. Where you are in a repository, those of the repository come
/// first and your own follow.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  proctor memory list fails\n  proctor memory list --proposed")]
pub struct ListArgs {
    /// Only what works, or only what fails
    #[arg(value_enum, value_name = "works|fails")]
    pub polarity: Option<PolarityChoice>,

    /// Also what is proposed, rejected, or replaced
    #[arg(long)]
    pub all: bool,

    /// Only what waits for a person to approve it
    #[arg(long, conflicts_with = "all")]
    pub proposed: bool,

    #[command(flatten)]
    pub place: PlaceArgs,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Show all of a record
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proctor memory show mem_4f2")]
pub struct ShowRecordArgs {
    /// The record's id, or a unique beginning of it
    #[arg(value_name = "ID")]
    pub id: String,

    #[command(flatten)]
    pub place: PlaceArgs,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Edit a record in `$VISUAL`, or `$EDITOR`, or `vi`
///
/// The record is checked before it is kept. If it does not pass, what you wrote stays in a file that is named.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proctor memory edit mem_4f2")]
pub struct EditArgs {
    /// The record's id, or a unique beginning of it
    #[arg(value_name = "ID")]
    pub id: String,

    #[command(flatten)]
    pub place: PlaceArgs,

    #[command(flatten)]
    pub output: ChangeArgs,
}

/// Let records count, turn them down, or forget them
///
/// Sessions of Proctor can't do this: it speaks for a person. What is rejected is kept, so that it is not proposed again; what
/// is forgotten is gone from the files.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  proctor memory list --proposed\n  proctor memory approve mem_4f2 mem_8x0\n  proctor memory forget mem_77a --dry-run"
)]
pub struct DecideArgs {
    /// Ids of records, or unique beginnings of them
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,

    #[command(flatten)]
    pub place: PlaceArgs,

    #[command(flatten)]
    pub output: ChangeArgs,
}

/// Take in records from a vault of Logos, another folder of memory, or a list
///
/// Of a vault, procedures and dead ends are taken in; other memories are counted and left. A list has a record a line.
/// What is there already is not added again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  proctor memory import ~/logos --user --dry-run\n  proctor memory import dead-ends.md --as fails")]
pub struct ImportArgs {
    /// The vault, the folder, or the file
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub path: PathBuf,

    /// What the lines of a list are; without it a line with a trap is what works, and any other what fails
    #[arg(long = "as", value_enum, value_name = "works|fails")]
    pub polarity: Option<PolarityChoice>,

    #[command(flatten)]
    pub place: PlaceArgs,

    #[command(flatten)]
    pub output: ChangeArgs,
}

/// Give records out, as a vault of Logos or as a list
///
/// Every record goes out that counts. Files that are there already are never overwritten.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  proctor memory export ~/vault\n  proctor memory export --list > records.md")]
pub struct ExportArgs {
    /// The folder of the vault, which is made
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath, required_unless_present = "list")]
    pub path: Option<PathBuf>,

    /// Print a list of lines instead, as `import` reads it
    #[arg(long, conflicts_with = "path")]
    pub list: bool,

    /// Also what is proposed, rejected, or replaced
    #[arg(long)]
    pub all: bool,

    #[command(flatten)]
    pub place: PlaceArgs,

    #[command(flatten)]
    pub output: ChangeArgs,
}

/// Look for what is wrong in the files of memory
///
/// Names each problem with its file and line: files that git could not merge or that were cut off, lines that are no record,
/// words that nobody understands, ids that are there twice, characters that can't be seen, what looks like a secret.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proctor memory doctor")]
pub struct MemoryDoctorArgs {
    #[command(flatten)]
    pub place: PlaceArgs,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
