//! Records in the form of others.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{ESCAPED, FORM, FROM, KEPT, OURS, PROCEDURES, SECTION};
use crate::escape::{protect, show_hidden, unescape};
use crate::hygiene::is_hidden;
use crate::line::body;
use crate::line::{join, trailer};
use crate::record::{Approval, Polarity, Record};
use crate::store::Entry;

/// A file that is to be written, with its path in the vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenFile {
    /// Relative to the vault.
    pub path: PathBuf,
    /// What is in it.
    pub text: String,
    /// How many records are in it.
    pub count: usize,
}

/// A list of our own lines, to be imported elsewhere or to be read.
pub fn write_list<'entry>(entries: impl Iterator<Item = &'entry Entry>) -> String {
    entries.map(|entry| join(&show_hidden(&entry.body), &entry.record) + "\n").collect()
}

/// The records as a vault: what works among its procedures, what fails in a checkpoint for each time that something was
/// written down.
pub fn write_vault(entries: &[&Entry]) -> Vec<WrittenFile> {
    let (works, fails): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(|entry| entry.record.polarity == Polarity::Works);
    let mut checkpoints: BTreeMap<String, Vec<&Entry>> = BTreeMap::new();
    for entry in fails {
        checkpoints.entry(checkpoint_path(&entry.record)).or_default().push(entry);
    }
    let procedures = (!works.is_empty()).then(|| write_procedures(&works));
    procedures.into_iter().chain(checkpoints.iter().map(|(path, entries)| write_checkpoint(path, entries))).collect()
}

/// The line as the vault has it, and whether it is in our form since it would read otherwise.
fn line_of(entry: &Entry) -> (String, bool) {
    let plain = unescape(&entry.body);
    let reads = |body: &str| body::read(entry.record.id.clone(), entry.record.polarity, body);
    let is_one_line = !plain.contains(|letter: char| letter.is_control() || is_hidden(letter)) && !plain.contains("<!--");
    let is_same = is_one_line && plain.trim() == plain && reads(&protect(&plain)) == reads(&entry.body);
    if is_same { (plain, false) } else { (show_hidden(&entry.body), true) }
}

/// Whether a value can stand in the comment of a vault, which knows no escapes: it must neither end it nor read as another pair.
fn fits(value: &str) -> bool {
    let is_plain = !value.contains(|letter: char| letter.is_control() || is_hidden(letter)) && !value.contains("--");
    let words: Vec<&str> = value.split(' ').collect();
    let is_one_value = words.iter().skip(1).all(|word| !word.is_empty() && !word.contains('=') && !word.starts_with(OURS));
    is_plain && is_one_value && words.first().is_some_and(|first| !first.is_empty()) && !value.contains(['<', '>'])
}

/// Our metadata, as pairs: all of it where the record is ours, else only how its line is written.
fn our_pairs(record: &Record, is_escaped: bool) -> Vec<String> {
    let form = is_escaped.then(|| format!("{FORM}={ESCAPED}"));
    let has_more = !record.files.is_empty() || !record.dependencies.is_empty() || record.supersedes.is_some();
    // A vault knows no approval, so what does not count says so in our words.
    let has_odd = [&record.project, &record.agent].into_iter().flatten().any(|value| !fits(value));
    let is_theirs =
        !has_more && !has_odd && record.approval == Approval::Active && record.from.as_deref().is_some_and(|from| from.starts_with(FROM));
    // What their form can't hold goes in ours.
    let other = record.other.iter().filter(|(name, value)| name.starts_with(KEPT) && !value.is_empty() && !fits(value)).cloned().collect();
    let bare = Record { other, ..record.clone() };
    let comment = trailer::write(&bare);
    let inside = comment.trim_start_matches("<!-- proctor ").trim_end_matches(" -->");
    let pairs = if is_theirs { Vec::new() } else { inside.split(' ').map(str::to_owned).collect() };
    form.into_iter().chain(pairs).collect()
}

fn write_procedures(entries: &[&Entry]) -> WrittenFile {
    let mut text = format!(
        "---\ntype: memory-store\nkind: procedure\ncount: {}\n---\n\nProcedures, each with its trap. Edit a line to change one, delete it to forget it.\n\n",
        entries.len()
    );
    for entry in entries {
        let (line, is_escaped) = line_of(entry);
        let record = &entry.record;
        let kept = |key: &str| record.other.iter().find(|(name, _)| name.strip_prefix(KEPT) == Some(key)).map(|(_, value)| value.clone());
        let theirs = record.other.iter().filter_map(|(name, value)| Some((name.strip_prefix(KEPT)?, value)));
        let mut pairs: Vec<String> =
            theirs.filter(|(_, value)| value.is_empty() || fits(value)).map(|(name, value)| format!("{name}={value}")).collect();
        for (key, value) in [("conf", "0.9"), ("sal", "0.5"), ("src", "manual"), ("uses", "0")] {
            if kept(key).is_none() && kept("id").is_none() {
                pairs.push(format!("{key}={value}"));
            }
        }
        if let (None, Some(created)) = (kept("created"), record.created) {
            pairs.push(format!("created={}", trailer::date(created)));
        }
        pairs.extend(record.project.iter().filter(|project| fits(project)).map(|project| format!("project={project}")));
        pairs.extend(record.agent.iter().filter(|agent| fits(agent)).map(|agent| format!("agent={agent}")));
        pairs.extend(our_pairs(record, is_escaped).iter().map(|pair| format!("{OURS}{pair}")));
        text.push_str(&format!("- {line} <!-- logos {} -->\n", pairs.join(" ")));
    }
    WrittenFile { path: PathBuf::from(PROCEDURES), text, count: entries.len() }
}

/// Where a dead end belongs: where it came from, else a checkpoint of its time.
fn checkpoint_path(record: &Record) -> String {
    if let Some(path) = record.from.as_deref().and_then(|from| from.strip_prefix(FROM)).filter(|path| is_inside(path)) {
        return path.to_owned();
    }
    let name = |text: &Option<String>, otherwise: &str| {
        let safe: String =
            text.as_deref().unwrap_or(otherwise).chars().map(|letter| if letter.is_alphanumeric() { letter } else { '-' }).collect();
        if safe.trim_matches('-').is_empty() { otherwise.to_owned() } else { safe }
    };
    let at = record.created.map(trailer::date).unwrap_or_else(|| "1970-01-01T00:00:00Z".to_owned());
    let digits: String = at.chars().take(19).filter(char::is_ascii_digit).collect();
    let worktree = record.worktree.as_ref().map(|_| format!("/{}", name(&record.worktree, "worktree"))).unwrap_or_default();
    // The record's own id keeps apart what differs in more than time and agent.
    let own = record.id.as_str();
    format!(
        "sessions/{}{worktree}/{}-{}-{}-{own}.md",
        name(&record.project, "global"),
        &digits[..8],
        &digits[8..],
        name(&record.agent, "proctor")
    )
}

/// Whether a path that a record names leads to one of the vault's checkpoints, where it would be found again, and nowhere else.
fn is_inside(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let is_dated = |name: &str| name.len() > 8 && name.bytes().take(8).all(|byte| byte.is_ascii_digit()) && name.as_bytes()[8] == b'-';
    matches!(parts.len(), 3 | 4)
        && parts[0] == "sessions"
        && parts.last().is_some_and(|name| is_dated(name))
        && parts.iter().all(|part| !part.is_empty() && *part != "." && *part != "..")
        && path.ends_with(".md")
        && !path.contains(|letter: char| letter.is_control() || is_hidden(letter))
}

fn write_checkpoint(path: &str, entries: &[&Entry]) -> WrittenFile {
    let mut text = String::from("---\ntype: checkpoint\n");
    let mut lines = String::new();
    if let Some(first) = entries.first() {
        let record = &first.record;
        let created = record.created.map(trailer::date);
        for (key, value) in [
            ("project", &record.project),
            ("agent", &record.agent),
            ("session", &record.session),
            ("commit", &record.commit),
            ("worktree", &record.worktree),
            ("checkpointed", &created),
        ] {
            if let Some(value) = value {
                text.push_str(&format!("{key}: {}\n", quoted(value)));
            }
        }
    }
    for (index, entry) in entries.iter().enumerate() {
        let (line, is_escaped) = line_of(entry);
        let pairs = our_pairs(&entry.record, is_escaped);
        if !pairs.is_empty() {
            text.push_str(&format!("proctor_{index}: {}\n", quoted(&pairs.join(" "))));
        }
        lines.push_str(&format!("- {line}\n"));
    }
    text.push_str(&format!("---\n\n{SECTION}\n\n{lines}"));
    WrittenFile { path: PathBuf::from(path), text, count: entries.len() }
}

/// A value in double quotes, as YAML has them: on one line whatever is in it.
fn quoted(value: &str) -> String {
    let mut out = String::from("\"");
    for letter in value.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other if other.is_control() || is_hidden(other) => out.push_str(&format!("\\U{:08X}", u32::from(other))),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
