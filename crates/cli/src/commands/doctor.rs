//! `proctor doctor`: looks whether everything that runs need is in order, and says what to do where it is not.
//!
//! It makes and changes nothing, unless `--repair` is given. One thing that can't be looked at never keeps the others
//! from being looked at.

mod agents;
mod leftovers;
mod machine;
mod place;
mod repair;
mod state;

use proctor_cards::Finding;
use proctor_domain::ExitCode;
use serde::Serialize;

use super::question::refuse_under_session;
use crate::Invocation;
use crate::args::Format;
use crate::args::setup::DoctorArgs;
use crate::printer::{Stream, Style, visible, visible_line};
use crate::report::Report;

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    Ok,
    Warning,
    Failure,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    state: State,
    detail: String,
    /// An exact command, key or action.
    remedy: Option<String>,
}

impl Check {
    fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, state: State::Ok, detail: detail.into(), remedy: None }
    }

    fn warning(name: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, state: State::Warning, detail: detail.into(), remedy: Some(remedy.into()) }
    }

    fn failure(name: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, state: State::Failure, detail: detail.into(), remedy: Some(remedy.into()) }
    }

    /// A failure that an error explains; its hints are the remedy.
    fn from_report(name: &'static str, report: &Report) -> Self {
        let place = |finding: &Finding| format!("{}:{}:{}", finding.path.display(), finding.line, finding.column);
        let findings = report.findings.iter().map(|finding| format!("{}: {}", place(finding), finding.message));
        let parts: Vec<String> = std::iter::once(report.message.clone()).chain(report.causes.iter().cloned()).chain(findings).collect();
        let hints = report.hints.iter().cloned().chain(report.findings.iter().filter_map(|finding| finding.hint.clone()));
        let mut hints: Vec<String> = hints.collect();
        if hints.is_empty() {
            hints.push(report.findings.first().map_or_else(|| "mend that".to_owned(), |finding| format!("correct {}", place(finding))));
        }
        Self::failure(name, parts.join(": "), hints.join("; "))
    }
}

#[derive(Serialize)]
struct Examination {
    version: u32,
    ok: bool,
    checks: Vec<Check>,
}

/// Looks at everything and prints what was found.
pub fn run(invocation: &Invocation, args: &DoctorArgs) -> Result<ExitCode, Report> {
    if args.repair {
        refuse_under_session(invocation)?;
        repair::run(invocation)?;
    }
    let mut checks = machine::check(invocation);
    checks.extend(place::check(invocation));
    let ok = checks.iter().all(|check| check.state != State::Failure);
    match Format::from_flag(args.json) {
        Format::Json => invocation.printer.json(&Examination { version: 1, ok, checks }),
        Format::Text => print(invocation, &checks),
    }
    Ok(if ok { ExitCode::Done } else { ExitCode::Failed })
}

fn print(invocation: &Invocation, checks: &[Check]) {
    let printer = &invocation.printer;
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    for check in checks {
        let (sign, style) = match check.state {
            State::Ok => ("✓", Style::Good),
            State::Warning => ("!", Style::Doubtful),
            State::Failure => ("✗", Style::Bad),
        };
        let indent = format!("\n{}", " ".repeat(width + 4));
        let detail = visible(&check.detail).replace('\n', &indent);
        printer.line(&format!("{} {:<width$}  {detail}", printer.paint(Stream::Out, style, sign), check.name));
        if let Some(remedy) = &check.remedy {
            printer.line(&format!("  {:<width$}  {} {}", "", printer.paint(Stream::Out, Style::Strong, "remedy:"), visible_line(remedy)));
        }
    }
    let count = |state| checks.iter().filter(|check| check.state == state).count();
    let (failures, warnings) = (count(State::Failure), count(State::Warning));
    if failures + warnings == 0 {
        printer.say("everything is in order");
    } else {
        let counted = crate::run_text::counted;
        printer.say(&format!("{}, {}", counted(failures, "failure"), counted(warnings, "warning")));
    }
}

/// The first few of a list, and how many more there are.
fn listed<T: ToString>(items: &[T], most: usize) -> String {
    let shown: Vec<String> = items.iter().take(most).map(ToString::to_string).collect();
    let more = items.len().saturating_sub(shown.len());
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}

/// A path as a shell takes it for one word.
fn quoted(path: &std::path::Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}
