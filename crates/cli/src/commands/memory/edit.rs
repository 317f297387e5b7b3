//! `proctor memory edit`

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use proctor_domain::ExitCode;
use proctor_process::{Program, Sink, Stdin};
use proctor_recall::{Dependency, Entry, Line, Record, StoreError};

use super::receipt::{Done, MaskedDocument, Receipt, effect};
use super::shown::legible_line;
use crate::Invocation;
use crate::args::memory::EditArgs;
use crate::commands::CommandError;
use crate::commands::question::refuse_under_session;
use crate::environment;
use crate::memory::{Places, mask};
use crate::report::{Kind, Report};

/// What is left out again when the text is read.
const EXPLANATION: &str = "\
# One part a line: `key: value`. A pipe that stands alone is written `&#124;`, a line break `&#10;`.
# These two lines are left out. Nothing is changed if you leave the text as it is.
";
/// What keeps the parts of a line, which may begin with any word, from what the record is about.
const BOUNDARY: &str = "# What it is about, separated by commas. Leave this line where it is.";

/// Opens a record in the person's editor and keeps what they made of it.
pub(super) fn run(invocation: &Invocation, args: &EditArgs) -> Result<ExitCode, Report> {
    refuse_under_session(invocation)?;
    let places = Places::find(invocation, args.place)?;
    let (named, entry) = places.find_record(&args.id)?;
    let text = text_of(&entry);
    let (edited, path) = edit(invocation, &text)?;
    let mut masked = MaskedDocument::default();
    if edited == text {
        remove(&path);
        if args.output.json {
            print_json(invocation, args, done("unchanged", named.name, &entry.record), masked);
        } else {
            invocation.printer.say(&format!("{} is as it was", entry.record.id));
        }
        return Ok(ExitCode::Done);
    }
    let keep = |report: Report| report.hint(format!("what you wrote is in {}", path.display()));
    let mut line = line_of(&entry, &edited).map_err(keep)?;
    masked.add(line.mask(&mask(invocation)?));
    let id = &entry.record.id;
    named
        .folder
        .change(effect(args.output), |contents| {
            // The editor may have been open for hours, and no lock is held meanwhile.
            let now = contents.find(id.as_str())?;
            if now.body != entry.body || now.record != entry.record {
                return Err(StoreError::ChangedMeanwhile { id: id.to_string() });
            }
            contents.replace(line.clone())
        })
        .map_err(|error| keep(error.into()))?;
    remove(&path);
    masked.tell(invocation);
    for remark in &line.remarks {
        invocation.printer.warn(&legible_line(&remark.to_string()));
    }
    if args.output.json {
        print_json(invocation, args, done("edited", named.name, &line.record), masked);
    } else if args.output.dry_run {
        invocation.printer.say(&format!("{id} would become:"));
        invocation.printer.line(&legible_line(&line.text()));
    } else {
        invocation.printer.say(&format!("{id} is changed"));
    }
    Ok(ExitCode::Done)
}

fn done(what: &'static str, place: &'static str, record: &Record) -> Done {
    Done {
        id: record.id.to_string(),
        what,
        place,
        polarity: record.polarity.word(),
        approval: record.approval.word(),
        route: record.route.clone(),
    }
}

fn print_json(invocation: &Invocation, args: &EditArgs, done: Done, masked: MaskedDocument) {
    invocation.printer.json(&Receipt { version: 1, dry_run: args.output.dry_run, records: vec![done], masked });
}

fn remove(path: &Path) {
    // A file in the folder of temporary files does no harm.
    let _ = std::fs::remove_file(path);
}

/// A record as it is edited: the parts of its line as they are written, and what of the metadata is a person's business.
fn text_of(entry: &Entry) -> String {
    let mut text = EXPLANATION.to_owned();
    for part in entry.body.split(" | ") {
        text.push_str(part);
        text.push('\n');
    }
    let dependencies: Vec<String> = entry.record.dependencies.iter().map(ToString::to_string).collect();
    text.push_str(&format!("{BOUNDARY}\nfiles: {}\ndeps: {}\n", entry.record.files.join(", "), dependencies.join(", ")));
    text
}

fn line_of(entry: &Entry, edited: &str) -> Result<Line, Report> {
    let lines: Vec<&str> = edited.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let boundary = lines.iter().rposition(|line| *line == BOUNDARY);
    let boundary = boundary.ok_or_else(|| Report::new(Kind::User, format!("the line `{BOUNDARY}` is gone, and nothing was changed")))?;
    let said = lines[..boundary].iter().filter(|line| !EXPLANATION.lines().any(|explained| explained == **line));
    let mut record = entry.record.clone();
    let list = |text: &str| text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let mut parts: Vec<&str> = said.copied().collect();
    for part in lines[boundary + 1..].iter().copied() {
        if let Some(files) = part.strip_prefix("files:") {
            record.files = list(files);
        } else if let Some(dependencies) = part.strip_prefix("deps:") {
            record.dependencies = list(dependencies).iter().map(|text| Dependency::parse(text)).collect();
        } else {
            parts.push(part);
        }
    }
    let line = Line::read(record.polarity, &parts.join(" | "));
    let said = line.record;
    let record = Record {
        route: said.route,
        trap: said.trap,
        observation: said.observation,
        alternative: said.alternative,
        verify: said.verify,
        layer: said.layer,
        scope: said.scope,
        evidence: said.evidence,
        degree: said.degree,
        action: said.action,
        ..record
    };
    Ok(Line { record, ..line })
}

/// Runs the editor on a file with this text; gives what it holds then, and the file.
fn edit(invocation: &Invocation, text: &str) -> Result<(String, PathBuf), Report> {
    let unusable = |source: io::Error| Report::from(CommandError::Make { path: std::env::temp_dir(), source });
    let mut file = tempfile::Builder::new().prefix("proctor-record-").suffix(".txt").tempfile().map_err(unusable)?;
    file.write_all(text.as_bytes()).map_err(unusable)?;
    let path = file.into_temp_path().keep().map_err(|error| unusable(error.error))?;
    let named = [&environment::VISUAL, &environment::EDITOR].into_iter().find_map(|variable| invocation.environment.get(variable));
    let words = named.map_or_else(|| "vi".to_owned(), |editor| editor.to_string_lossy().into_owned());
    // Words as git would split them are a shell's business; a program and its options are enough here.
    let mut words = words.split_whitespace();
    let program = Program::new(words.next().unwrap_or("vi")).args(words).arg(path.as_os_str()).dir(&invocation.directory);
    let stdin = io::stdin().as_fd().try_clone_to_owned().map_err(unusable)?;
    // Standard output is for data.
    let stderr = || io::stderr().as_fd().try_clone_to_owned().map(File::from).map_err(unusable);
    let program = program
        .env(invocation.environment.pairs())
        .stdin(Stdin::Descriptor(stdin))
        .stdout(Sink::File(stderr()?))
        .stderr(Sink::File(stderr()?));
    let finished = program.run(None).map_err(|error| Report::failed_to(Kind::Environment, &error).hint("set EDITOR"))?;
    if !finished.status.is_success() {
        return Err(Report::new(Kind::User, "the editor ended with an error, and nothing was changed")
            .hint(format!("what you wrote is in {}", path.display())));
    }
    // The person's own editor took the file away, or wrote something else than text.
    let unread = |source: io::Error| Report::new(Kind::User, format!("failed to read {}", path.display())).because(&source);
    let edited = std::fs::read_to_string(&path).map_err(unread)?;
    Ok((edited, path))
}
