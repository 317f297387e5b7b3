//! What a command line that can't be parsed, or that asks for help, gets.

use clap::error::ErrorKind;
use proctor_domain::ExitCode;

use crate::args::Format;
use crate::printer::{Colour, Printer, Stream};
use crate::report::{Kind, Report};

/// Prints help to stdout, and mistakes to stderr and, where JSON was asked for, as an object to stdout.
pub(crate) fn explain(error: &clap::Error, printer: &Printer, format: Format) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        printer.text(&rendered(error, printer.colour(Stream::Out)));
        return ExitCode::Done;
    }
    printer.insist(rendered(error, printer.colour(Stream::Err)).trim_end());
    if format == Format::Json {
        report(error).print_object(printer);
    }
    ExitCode::Usage
}

fn rendered(error: &clap::Error, colour: Colour) -> String {
    match colour {
        Colour::Plain => error.render().to_string(),
        Colour::Ansi => error.render().ansi().to_string(),
    }
}

/// The parser's text taken apart: its first paragraph is the message, its tips are hints.
fn report(error: &clap::Error) -> Report {
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let message = first.strip_prefix("error: ").unwrap_or(first).split_whitespace().collect::<Vec<_>>().join(" ");
    let message =
        if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand { "no command was given".to_owned() } else { message };
    let tips = text.lines().filter_map(|line| line.trim().strip_prefix("tip: "));
    tips.fold(Report::new(Kind::User, message), Report::hint).hint("see `proctor --help`")
}
