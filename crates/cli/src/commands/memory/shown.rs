//! Records as people and programs see them.

use proctor_recall::cap::{Capped, share};
use proctor_recall::corroboration::{Meeting, is_corroborated, meetings, run_of};
use proctor_recall::hygiene::{inline, is_hidden};
use proctor_recall::{Approval, Entry, Polarity, Record, Said, Word};
use serde::Serialize;

use crate::Invocation;
use crate::printer::{Stream, Style, visible, visible_line};
use crate::run_text::utc_time;

/// A record as JSON: everything, as it is.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct RecordDocument {
    id: String,
    place: &'static str,
    file: &'static str,
    line: usize,
    polarity: &'static str,
    approval: &'static str,
    /// Whether it says what a record has to say.
    complete: bool,
    route: String,
    trap: Option<String>,
    observation: Option<String>,
    alternative: Option<String>,
    verify: Option<String>,
    layer: Option<String>,
    scope: Option<String>,
    evidence: Option<String>,
    degree: Option<String>,
    action: Option<String>,
    files: Vec<String>,
    dependencies: Vec<String>,
    project: Option<String>,
    worktree: Option<String>,
    agent: Option<String>,
    session: Option<String>,
    commit: Option<String>,
    from: Option<String>,
    created: Option<String>,
    supersedes: Option<String>,
    /// The run that it comes from.
    run: Option<String>,
    /// Who met the same since.
    met: Vec<MeetingDocument>,
    /// It counts because others met the same; nobody approved it.
    corroborated: bool,
    /// What is worth knowing of its line.
    remarks: Vec<String>,
}

/// A session that met what a record says.
#[derive(Debug, Serialize)]
struct MeetingDocument {
    run: String,
    session: String,
    agent: String,
}

impl From<Meeting> for MeetingDocument {
    fn from(Meeting { run, session, agent }: Meeting) -> Self {
        Self { run, session, agent }
    }
}

impl RecordDocument {
    pub(in crate::commands) fn of(entry: &Entry, place: &'static str) -> Self {
        let record = &entry.record;
        Self {
            id: record.id.to_string(),
            place,
            file: entry.file.name(),
            line: entry.line,
            polarity: record.polarity.word(),
            approval: record.approval.word(),
            complete: entry.is_complete(),
            route: record.route.clone(),
            trap: record.trap.clone(),
            observation: record.observation.clone(),
            alternative: record.alternative.clone(),
            verify: record.verify.clone(),
            layer: word(record.layer.as_ref()),
            scope: word(record.scope.as_ref()),
            evidence: word(record.evidence.as_ref()),
            degree: word(record.degree.as_ref()),
            action: word(record.action.as_ref()),
            files: record.files.clone(),
            dependencies: record.dependencies.iter().map(ToString::to_string).collect(),
            project: record.project.clone(),
            worktree: record.worktree.clone(),
            agent: record.agent.clone(),
            session: record.session.clone(),
            commit: record.commit.clone(),
            from: record.from.clone(),
            created: record.created.map(utc_time),
            supersedes: record.supersedes.as_ref().map(ToString::to_string),
            run: run_of(record).map(str::to_owned),
            met: meetings(record).into_iter().map(MeetingDocument::from).collect(),
            corroborated: is_corroborated(record),
            remarks: entry.remarks.iter().map(ToString::to_string).collect(),
        }
    }
}

fn word<T: Word + PartialEq>(said: Option<&Said<T>>) -> Option<String> {
    said.map(|said| said.word().to_owned())
}

/// Foreign text on one line, in which every character can be seen.
pub(super) fn legible_line(text: &str) -> String {
    legible(&visible_line(text))
}

/// The text with numbers for what shows nothing: joiners, fillers, marks. Output in general may have them, as in emoji; in a record
/// that somebody looks over, nothing is to be hidden.
fn legible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_hidden(letter) { shown.push_str(&format!("\\u{{{:x}}}", u32::from(letter))) } else { shown.push(letter) }
    }
    shown
}

/// What follows a route: the trap, or what was seen.
fn second(record: &Record) -> (&'static str, &str) {
    let text = match record.polarity {
        Polarity::Works => &record.trap,
        Polarity::Fails => &record.observation,
    };
    let lead = match record.polarity {
        Polarity::Works => "otherwise: ",
        Polarity::Fails => "seen: ",
    };
    (lead, text.as_deref().unwrap_or_default())
}

/// A record in a list: its route, and what goes wrong. Text of records is harmless to show, and cut where it is too long.
pub(in crate::commands) fn print_short(invocation: &Invocation, entry: &Entry, place: &str) {
    let printer = &invocation.printer;
    let record = &entry.record;
    let state = match record.approval {
        Approval::Active if is_corroborated(record) => "[corroborated] ".to_owned(),
        Approval::Active => String::new(),
        Approval::Proposed | Approval::Rejected => format!("[{}] ", record.approval.word()),
    };
    let (lead, text) = second(record);
    let (route, text) = (inline(&record.route), inline(text));
    let shares = share(&[&route, &text]);
    let route_shown = Capped::of(&route, shares[0]);
    let text_shown = Capped::of(&text, shares[1]);
    let id = printer.paint(Stream::Out, Style::Strong, record.id.as_str()).into_owned();
    let style = match record.polarity {
        Polarity::Works => Style::Good,
        Polarity::Fails => Style::Bad,
    };
    let polarity = printer.paint(Stream::Out, style, record.polarity.word()).into_owned();
    printer.line(&format!("{id}  {polarity}  {place:<7}  {state}{}", route_shown.text));
    if !text_shown.text.is_empty() {
        printer.line(&format!("    {lead}{}", text_shown.text));
    }
    let left_off = Capped { text: "", left_off: route_shown.left_off + text_shown.left_off };
    if let Some(notice) = left_off.notice(record.id.as_str()) {
        printer.line(&format!("    {notice}"));
    }
}

/// Everything that a record says, as it was written.
pub(in crate::commands) fn print_whole(invocation: &Invocation, entry: &Entry, place: &str) {
    let document = RecordDocument::of(entry, "");
    let created = document.created.clone();
    let met: Vec<String> = document.met.iter().map(|met| format!("{} of {}, {}", met.session, met.run, met.agent)).collect();
    let texts = [
        ("id", Some(document.id.clone())),
        ("polarity", Some(document.polarity.to_owned())),
        ("approval", Some(document.approval.to_owned())),
        ("place", Some(format!("{place}, {}:{}", document.file, document.line))),
        ("route", Some(document.route.clone())),
        ("trap", document.trap.clone()),
        ("observation", document.observation.clone()),
        ("alternative", document.alternative.clone()),
        ("verify", document.verify.clone()),
        ("layer", document.layer.clone()),
        ("scope", document.scope.clone()),
        ("evidence", document.evidence.clone()),
        ("degree", document.degree.clone()),
        ("action", document.action.clone()),
        ("files", Some(document.files.join(", "))),
        ("deps", Some(document.dependencies.join(", "))),
        ("project", document.project.clone()),
        ("worktree", document.worktree.clone()),
        ("agent", document.agent.clone()),
        ("session", document.session.clone()),
        ("commit", document.commit.clone()),
        ("from", document.from.clone()),
        ("created", created),
        ("supersedes", document.supersedes.clone()),
        ("run", document.run.clone()),
        ("met by", Some(met.join("\n"))),
        ("counts", document.corroborated.then(|| "by corroboration: nobody approved it".to_owned())),
    ];
    for (name, text) in texts {
        let Some(text) = text.filter(|text| !text.is_empty()) else { continue };
        let shown = legible(&visible(&text));
        for (index, line) in shown.lines().enumerate() {
            let name = if index == 0 { name } else { "" };
            invocation.printer.line(&format!("{name:<12} {line}"));
        }
    }
    for remark in &document.remarks {
        invocation.printer.line(&format!("{:<12} {}", "note", legible_line(remark)));
    }
}
