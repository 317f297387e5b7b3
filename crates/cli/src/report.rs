//! The one place that turns errors into what people and programs see: a kind, a message with its causes, hints
//! and an exit code.

mod demo;
mod journal;
mod memory;
pub mod procedure;

use std::error::Error;
use std::io::{self, ErrorKind};

use proctor_cards::{FindError, Finding};
use proctor_domain::ExitCode;
use proctor_workspace::WorkspaceError;
use serde::Serialize;

use crate::args::Format;
use crate::commands::CommandError;
use crate::printer::{Printer, Stream, Style, visible, visible_line};
use crate::settings::SettingsError;
use crate::settings::trust::TrustError;
use crate::state::StateError;

/// Who has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The person who typed the command.
    User,
    /// Whoever wrote a card or a settings file.
    Config,
    /// Whoever keeps this machine.
    Environment,
    /// We.
    Internal,
    /// Nobody made a mistake; it can't be done now.
    Refused,
}

impl Kind {
    /// The exit code of errors of this kind.
    pub fn exit_code(self) -> ExitCode {
        match self {
            Self::User | Self::Config => ExitCode::Usage,
            Self::Environment | Self::Internal => ExitCode::Failed,
            Self::Refused => ExitCode::Refused,
        }
    }
}

/// An error as it is shown.
#[derive(Debug)]
pub struct Report {
    /// Who has to act.
    pub kind: Kind,
    /// What can't be done, or what is wrong; no full stop.
    pub message: String,
    /// Why, outermost first.
    pub causes: Vec<String>,
    /// What is wrong with a card or a settings file.
    pub findings: Vec<Finding>,
    /// Exact commands, keys or actions.
    pub hints: Vec<String>,
}

impl Report {
    /// A report without causes and hints.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), causes: Vec::new(), findings: Vec::new(), hints: Vec::new() }
    }

    /// The same with a hint more.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The same with further hints.
    #[must_use]
    pub fn hints(mut self, hints: impl IntoIterator<Item = String>) -> Self {
        self.hints.extend(hints);
        self
    }

    /// The same with an error, and the errors behind it, as causes.
    #[must_use]
    pub fn because(mut self, error: &dyn Error) -> Self {
        let mut next = Some(error);
        while let Some(cause) = next {
            self.causes.push(cause.to_string());
            next = cause.source();
        }
        self
    }

    /// An error whose own text, with its sources as causes, is the message.
    pub fn from_error(kind: Kind, error: &dyn Error) -> Self {
        let report = Self::new(kind, error.to_string());
        match error.source() {
            Some(source) => report.because(source).hints(way_out(source)),
            None => report,
        }
    }

    /// An error whose text reads on from "failed to".
    pub fn failed_to(kind: Kind, error: &dyn Error) -> Self {
        let report = Self::from_error(kind, error);
        Self { message: format!("failed to {}", report.message), ..report }
    }

    /// Cards or settings with findings.
    pub fn from_findings(message: impl Into<String>, findings: Vec<Finding>) -> Self {
        Self { findings, ..Self::new(Kind::Config, message) }
    }

    /// The code that the command exits with.
    pub fn exit_code(&self) -> ExitCode {
        self.kind.exit_code()
    }

    /// Prints it: for people on stderr, and as an object on stdout where JSON was asked for.
    pub fn print(&self, printer: &Printer, format: Format) {
        printer.insist(&format!("{} {}", printer.paint(Stream::Err, Style::Bad, "error:"), visible(&self.message)));
        for cause in self.causes() {
            printer.insist(&format!("  because {}", visible(cause).replace('\n', "\n  ")));
        }
        for finding in &self.findings {
            printer.insist(&format!("\n{}", visible(&finding.to_string())));
        }
        for (position, hint) in self.hints.iter().enumerate() {
            let gap = if position == 0 { "\n" } else { "" };
            printer.insist(&format!("{gap}{} {}", printer.paint(Stream::Err, Style::Strong, "hint:"), visible(hint)));
        }
        if format == Format::Json {
            self.print_object(printer);
        }
    }

    /// Prints the object alone.
    pub fn print_object(&self, printer: &Printer) {
        printer.json(&self.object());
    }

    /// Message, causes and hints as text, for who is told in another way than on a terminal.
    pub fn in_words(&self) -> String {
        let ErrorFields { message, hints, .. } = self.object().error;
        hints.into_iter().fold(message, |text, hint| format!("{text}\nhint: {hint}"))
    }

    /// Causes that say more than what was said before them: wrapped errors like to repeat each other.
    fn causes(&self) -> impl Iterator<Item = &str> {
        let said = |position: usize| std::iter::once(&self.message).chain(&self.causes[..position]);
        self.causes
            .iter()
            .enumerate()
            .filter(move |(position, cause)| !said(*position).any(|text| text.contains(*cause)))
            .map(|(_, cause)| cause.as_str())
    }

    fn object(&self) -> ErrorObject {
        let finding = |finding: &Finding| {
            format!("{}:{}:{}: {}: {}", finding.path.display(), finding.line, finding.column, finding.level.name(), finding.message)
        };
        let mut parts: Vec<String> = std::iter::once(self.message.as_str()).chain(self.causes()).map(str::to_owned).collect();
        if !self.findings.is_empty() {
            parts.push(self.findings.iter().map(finding).collect::<Vec<_>>().join("; "));
        }
        let hints = self.hints.iter().chain(self.findings.iter().filter_map(|finding| finding.hint.as_ref()));
        ErrorObject {
            version: 1,
            exit_code: self.exit_code().code(),
            error: ErrorFields {
                kind: self.kind,
                message: visible_line(&parts.join(": ")).into_owned(),
                hints: hints.map(|hint| visible_line(hint).into_owned()).collect(),
            },
        }
    }
}

/// What to do about a disk that takes nothing, whatever it was that could not be written.
fn way_out(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(cause) = next {
        match cause.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
                return Some("make room on that file system, then try again".to_owned());
            }
            Some(ErrorKind::ReadOnlyFilesystem) => return Some("make that file system writable, then try again".to_owned()),
            Some(_) | None => next = cause.source(),
        }
    }
    None
}

#[derive(Serialize)]
struct ErrorObject {
    version: u32,
    exit_code: u8,
    error: ErrorFields,
}

#[derive(Serialize)]
struct ErrorFields {
    kind: Kind,
    message: String,
    hints: Vec<String>,
}

impl From<SettingsError> for Report {
    fn from(error: SettingsError) -> Self {
        match error {
            SettingsError::Findings { path, findings } => Self::from_findings(format!("{} can't be used", path.display()), findings),
            SettingsError::Unreadable { path, source } => {
                Self::new(Kind::Config, format!("failed to read {}", path.display())).because(&source)
            }
            SettingsError::Variable { name, .. } => Self::from_error(Kind::Config, &error).hint(format!("unset {name}, or correct it")),
        }
    }
}

impl From<TrustError> for Report {
    fn from(error: TrustError) -> Self {
        let report = Self::failed_to(Kind::Environment, &error);
        match &error {
            TrustError::Damaged { path, .. } => report.hint(format!("rm '{}', then `proctor trust`", path.display())),
            TrustError::Newer { .. } => report.hint("use the newer proctor"),
            TrustError::Unreadable { .. } | TrustError::Unwritable(_) => report,
        }
    }
}

impl From<StateError> for Report {
    fn from(error: StateError) -> Self {
        let report = match &error {
            StateError::Newer { .. } | StateError::Busy { .. } => Self::from_error(Kind::Refused, &error),
            StateError::Durable(_) | StateError::Lock(_) => Self::failed_to(Kind::Environment, &error),
            StateError::NoHome | StateError::NoLocks { .. } | StateError::NoRandomness(_) => Self::from_error(Kind::Environment, &error),
            StateError::Unwritable { .. } | StateError::Unreadable { .. } => Self::from_error(Kind::Environment, &error),
            StateError::Workspace(_) => Self::from_error(Kind::Environment, &error),
        };
        let hint = error.hint();
        match error {
            StateError::Workspace(error) => error.into(),
            StateError::Newer { .. }
            | StateError::Busy { .. }
            | StateError::Durable(_)
            | StateError::Lock(_)
            | StateError::NoHome
            | StateError::NoLocks { .. }
            | StateError::NoRandomness(_)
            | StateError::Unwritable { .. }
            | StateError::Unreadable { .. } => report.hints(hint),
        }
    }
}

impl From<WorkspaceError> for Report {
    fn from(error: WorkspaceError) -> Self {
        let kind = match &error {
            WorkspaceError::NotARepository { .. } | WorkspaceError::InsideGitDirectory { .. } | WorkspaceError::Bare { .. } => Kind::User,
            WorkspaceError::GitMissing | WorkspaceError::DubiousOwnership { .. } | WorkspaceError::NoIdentity => Kind::Environment,
            WorkspaceError::Signing { .. } | WorkspaceError::TimedOut { .. } | WorkspaceError::Git { .. } => Kind::Environment,
            WorkspaceError::Unreadable { .. } | WorkspaceError::File { .. } | WorkspaceError::Start { .. } => Kind::Environment,
            WorkspaceError::Keep { .. } => Kind::Environment,
            WorkspaceError::Locked { .. } | WorkspaceError::RestoreBlocked { .. } | WorkspaceError::Unkeepable { .. } => Kind::Refused,
            WorkspaceError::Refused(_) => Kind::Refused,
            WorkspaceError::ForeignReference { .. } => Kind::Internal,
        };
        Self::failed_to(kind, &error).hints(error.hint())
    }
}

impl From<FindError> for Report {
    fn from(error: FindError) -> Self {
        match error {
            FindError::NotFound { name, path, nearest } => {
                let report = Self::new(Kind::User, format!("there is no procedure `{name}`: no {}", path.display()));
                match nearest {
                    Some(nearest) => report.hint(format!("did you mean `{nearest}`?")),
                    None => report.hint("see `proctor procedure list`"),
                }
            }
            FindError::Unreadable(finding) => Self::from_findings(format!("{} can't be used", finding.path.display()), vec![finding]),
        }
    }
}

impl From<CommandError> for Report {
    fn from(error: CommandError) -> Self {
        let kind = match &error {
            CommandError::Directory { .. } | CommandError::NobodyToAsk { .. } => Kind::User,
            CommandError::NeedsConsent { .. } | CommandError::UnderSession => Kind::Refused,
            CommandError::Answer(_) | CommandError::Make { .. } | CommandError::OwnProgram(_) => Kind::Environment,
        };
        let report = Self::from_error(kind, &error);
        match &error {
            CommandError::NeedsConsent { .. } => report.hint("proctor trust"),
            CommandError::NobodyToAsk { flag } => report.hint(format!("give {flag} to go on without being asked")),
            CommandError::UnderSession => report.hint("run it yourself, outside of the session"),
            CommandError::Directory { .. } | CommandError::Answer(_) | CommandError::Make { .. } | CommandError::OwnProgram(_) => report,
        }
    }
}
