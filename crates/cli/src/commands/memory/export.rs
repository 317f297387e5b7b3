//! `proctor memory export`

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use proctor_domain::ExitCode;
use proctor_recall::logos::{WrittenFile, write_list, write_vault};
use proctor_recall::{Approval, Contents, Entry};
use serde::Serialize;

use super::shown::legible_line;
use crate::Invocation;
use crate::args::memory::ExportArgs;
use crate::commands::CommandError;
use crate::memory::Places;
use crate::report::{Kind, Report};

#[derive(Serialize)]
struct Exported<'list> {
    version: u32,
    dry_run: bool,
    records: usize,
    files: Vec<ExportedFile>,
    /// The list, where one was asked for.
    list: Option<&'list str>,
}

#[derive(Serialize)]
struct ExportedFile {
    path: String,
    records: usize,
}

/// Gives records out.
pub(super) fn run(invocation: &Invocation, args: &ExportArgs) -> Result<ExitCode, Report> {
    let places = Places::find(invocation, args.place)?;
    let contents = places.read()?;
    let entries: Vec<&Entry> = contents.iter().flat_map(|(_, contents)| wanted(contents, args.all)).collect();
    let Some(path) = &args.path else {
        let list = write_list(entries.iter().copied());
        if args.output.json {
            let records = entries.len();
            invocation.printer.json(&Exported { version: 1, dry_run: args.output.dry_run, records, files: Vec::new(), list: Some(&list) });
        } else {
            invocation.printer.text(&list);
        }
        return Ok(ExitCode::Done);
    };
    let root = invocation.directory.join(path);
    let files = write_vault(&entries);
    if let Some(taken) = files.iter().map(|file| root.join(&file.path)).find(|path| path.symlink_metadata().is_ok()) {
        return Err(Report::new(Kind::Refused, format!("{} is there already", taken.display())).hint("name a new folder"));
    }
    if !args.output.dry_run {
        for file in &files {
            write(&root, file)?;
        }
    }
    if args.output.json {
        let listed = files.iter().map(|file| ExportedFile { path: file.path.display().to_string(), records: file.count }).collect();
        invocation.printer.json(&Exported { version: 1, dry_run: args.output.dry_run, records: entries.len(), files: listed, list: None });
        return Ok(ExitCode::Done);
    }
    for file in &files {
        invocation.printer.line(&legible_line(&root.join(&file.path).display().to_string()));
    }
    let auxiliary = if args.output.dry_run { "would be" } else { "were" };
    invocation.printer.say(&format!("{} records {auxiliary} written to {} files", entries.len(), files.len()));
    Ok(ExitCode::Done)
}

fn wanted(contents: &Contents, all: bool) -> Vec<&Entry> {
    let replaced = contents.replaced();
    let counts = |entry: &&Entry| all || entry.record.approval == Approval::Active && !replaced.contains(&entry.record.id);
    contents.entries().filter(|entry| entry.is_complete()).filter(counts).collect()
}

/// A vault is somebody's notes: private, and nothing in it is overwritten.
fn write(root: &Path, file: &WrittenFile) -> Result<(), CommandError> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    let path = root.join(&file.path);
    let failed = |source: io::Error| CommandError::Make { path: path.clone(), source };
    let folder = path.parent().unwrap_or(root);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
    out.write_all(file.text.as_bytes()).and_then(|()| out.sync_all()).map_err(failed)
}
