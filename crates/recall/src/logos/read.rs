//! Lines of others.

use proctor_domain::{RecordId, Timestamp};

use super::{ESCAPED, FORM, FROM, KEPT, OURS, PROCEDURES, SECTION, is_placeholder};
use crate::line::trailer::{self, Split};
use crate::line::{Line, bullet};
use crate::record::{Polarity, Record};

/// A line that is not imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The file, and the line in it.
    pub place: String,
    /// What stands there.
    pub text: String,
    /// Why not, as a sentence without a full stop.
    pub why: String,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Import {
    /// Records.
    pub found: Vec<Line>,
    /// Lines that are none.
    pub skipped: Vec<Skipped>,
    /// How many memories of other kinds there are.
    pub foreign: usize,
    /// How many entries said that there is nothing to say.
    pub placeholders: usize,
}

/// The form in which a line has its special characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As they are: a pipe ends a part or does not, and nothing helps.
    Plain,
    /// As references, as we write them.
    Escaped,
}

impl Import {
    pub(super) fn take(&mut self, place: String, found: Line) {
        match found.record.check() {
            Ok(()) => self.found.push(found),
            Err(missing) => self.skipped.push(Skipped { place, text: found.record.route, why: missing.to_string() }),
        }
    }
}

fn read_body(polarity: Polarity, text: &str, form: Form) -> Line {
    match form {
        Form::Plain => Line::foreign(polarity, text),
        Form::Escaped => Line::read(polarity, text),
    }
}

/// Reads our own metadata into a record; gives its id if there is one.
fn read_ours(inside: &str, found: &mut Line) {
    let told = trailer::read(inside, &mut found.record, &mut found.remarks);
    found.record.id = told.id.unwrap_or_else(|| RecordId::from_bits(0));
    found.record.polarity = told.polarity.unwrap_or(found.record.polarity);
    found.record.approval = told.approval.unwrap_or(found.record.approval);
}

/// Reads a list: bullets, numbered lines, or just lines. Headings and comments are left out. Lines of our own form bring
/// their metadata along. `polarity` is that of every line; without it a line that has a trap says what works.
pub fn read_list(name: &str, text: &str, polarity: Option<Polarity>) -> Import {
    let mut import = Import::default();
    let mut in_comment = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let was_in_comment = in_comment;
        in_comment = if in_comment { !line.contains("-->") } else { line.starts_with("<!--") && !line.contains("-->") };
        if was_in_comment || line.is_empty() || line.starts_with('#') || line.starts_with("<!--") || is_rule(line) {
            continue;
        }
        let item = item(line);
        if is_placeholder(item) {
            import.placeholders += 1;
            continue;
        }
        let (text, inside) = match trailer::split(item, "proctor") {
            Split::Whole(body, inside) => (body, Some(inside)),
            Split::Bare | Split::CutOff => (item, None),
        };
        let form = if inside.is_some() { Form::Escaped } else { Form::Plain };
        let mut found = read_body(Polarity::Fails, text, form);
        let by_fields = if found.record.trap.is_some() { Polarity::Works } else { Polarity::Fails };
        found.record.polarity = polarity.unwrap_or(by_fields);
        match inside {
            Some(inside) => read_ours(inside, &mut found),
            None => found.record.from = Some(name.to_owned()),
        }
        import.take(format!("{name}:{}", index + 1), found);
    }
    import
}

fn is_rule(line: &str) -> bool {
    line.len() >= 3 && ["-", "=", "*", "_"].iter().any(|mark| line.replace(mark, "").trim().is_empty())
}

fn item(line: &str) -> &str {
    if let Some(item) = bullet(line) {
        return item.trim();
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    match line[digits..].strip_prefix(['.', ')']) {
        Some(item) if digits > 0 && item.starts_with(' ') => item.trim(),
        Some(_) | None => line,
    }
}

/// Reads the file of a vault's procedures.
pub(super) fn procedures(text: &str, import: &mut Import) {
    for (index, line) in text.lines().enumerate() {
        let Some(item) = bullet(line) else { continue };
        let (text, inside) = match trailer::split(item, "logos") {
            Split::Whole(body, inside) => (body, inside),
            Split::Bare | Split::CutOff => (item, ""),
        };
        let (ours, theirs) = sort_metadata(inside);
        let form = if ours.contains(&format!("{FORM}={ESCAPED}")) { Form::Escaped } else { Form::Plain };
        let mut found = read_body(Polarity::Works, text, form);
        found.record.from = Some(format!("{FROM}{PROCEDURES}"));
        take_theirs(&theirs, &mut found.record);
        let ours: Vec<&str> = ours.iter().map(String::as_str).filter(|pair| !pair.starts_with(FORM)).collect();
        if !ours.is_empty() {
            found.record.from = None;
            read_ours(&ours.join(" "), &mut found);
        }
        import.take(format!("{PROCEDURES}:{}", index + 1), found);
    }
}

/// Our pairs, and theirs. A word without `=` goes on with the value before it: agents' names have spaces.
fn sort_metadata(inside: &str) -> (Vec<String>, Vec<(String, String)>) {
    let (mut ours, mut theirs): (Vec<String>, Vec<(String, String)>) = (Vec::new(), Vec::new());
    for word in inside.split_whitespace() {
        match (word.strip_prefix(OURS), word.split_once('='), theirs.last_mut()) {
            (Some(pair), _, _) => ours.push(pair.to_owned()),
            (None, Some((key, value)), _) => theirs.push((key.to_owned(), value.to_owned())),
            (None, None, Some((_, value))) => {
                value.push(' ');
                value.push_str(word);
            }
            (None, None, None) => theirs.push((word.to_owned(), String::new())),
        }
    }
    (ours, theirs)
}

fn take_theirs(pairs: &[(String, String)], record: &mut Record) {
    for (key, value) in pairs {
        match key.as_str() {
            "project" => record.project = Some(value.clone()).filter(|value| !value.is_empty()),
            "agent" => record.agent = Some(value.clone()).filter(|value| !value.is_empty()),
            _ => record.other.push((format!("{KEPT}{key}"), value.clone())),
        }
        if key == "created" {
            record.created = instant(value);
        }
    }
}

/// An instant in any of the ways in which a vault may have it.
fn instant(text: &str) -> Option<Timestamp> {
    let seconds = || text.parse::<i64>().ok().map(|seconds| Timestamp(seconds.saturating_mul(1000)));
    trailer::instant(text).or_else(seconds)
}

/// Reads the dead ends of a checkpoint. `path` is its path in the vault: `sessions/PROJECT[/WORKTREE]/NAME.md`.
pub(super) fn checkpoint(path: &str, text: &str, import: &mut Import) {
    let front = Front::of(text);
    let mut folders = path.split('/').skip(1);
    let project = front.value("project").or_else(|| folders.next().map(str::to_owned));
    let worktree = front.value("worktree").or_else(|| (path.split('/').count() > 3).then(|| path.split('/').nth(2).map(str::to_owned))?);
    for (index, (line, item)) in failed(text).into_iter().enumerate() {
        if is_placeholder(&item) {
            import.placeholders += 1;
            continue;
        }
        let ours = front.value(&format!("proctor_{index}"));
        let is_escaped = ours.as_deref().is_some_and(|ours| ours.split(' ').any(|pair| pair == format!("{FORM}={ESCAPED}")));
        let mut found = read_body(Polarity::Fails, &item, if is_escaped { Form::Escaped } else { Form::Plain });
        found.record.project.clone_from(&project);
        found.record.worktree.clone_from(&worktree);
        found.record.agent = front.value("agent");
        found.record.session = front.value("session");
        found.record.commit = front.value("commit");
        found.record.created = front.value("checkpointed").and_then(|text| instant(&text));
        found.record.from = Some(format!("{FROM}{path}"));
        if let Some(ours) = ours {
            let pairs: Vec<&str> = ours.split(' ').filter(|pair| !pair.starts_with(&format!("{FORM}="))).collect();
            if !pairs.is_empty() {
                found.record.from = None;
                read_ours(&pairs.join(" "), &mut found);
            }
        }
        import.take(format!("{path}:{line}"), found);
    }
}

/// Items of the section of what failed, each with its line. Lines without a bullet belong to the item before them.
fn failed(text: &str) -> Vec<(usize, String)> {
    let mut items: Vec<(usize, String)> = Vec::new();
    let mut is_inside = false;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("## ") || line.starts_with("# ") {
            is_inside = line.trim().replace('’', "'").eq_ignore_ascii_case(SECTION);
        } else if is_inside && !line.trim().is_empty() {
            match (bullet(line), items.last_mut()) {
                (Some(item), _) => items.push((index + 1, item.trim().to_owned())),
                (None, Some((_, before))) => {
                    before.push('\n');
                    before.push_str(line.trim());
                }
                (None, None) => items.push((index + 1, line.trim().to_owned())),
            }
        }
    }
    items
}

/// The front matter of a checkpoint: single values, each on its line.
struct Front<'text>(Vec<(&'text str, &'text str)>);

impl<'text> Front<'text> {
    fn of(text: &'text str) -> Self {
        let mut lines = text.lines();
        if lines.next().map(str::trim_end) != Some("---") {
            return Self(Vec::new());
        }
        let inside = lines.take_while(|line| line.trim_end() != "---");
        Self(inside.filter_map(|line| line.split_once(':')).map(|(key, value)| (key.trim(), value.trim())).collect())
    }

    fn value(&self, key: &str) -> Option<String> {
        let (_, value) = self.0.iter().find(|(name, _)| *name == key)?;
        let quoted = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let text = match quoted {
            Some(inner) => unquoted(inner),
            None => value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).unwrap_or(value).to_owned(),
        };
        Some(text).filter(|text| !text.is_empty())
    }
}

/// What stands between double quotes. An escape that we never write stays as it is.
fn unquoted(inner: &str) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(position) = rest.find('\\') {
        out.push_str(&rest[..position]);
        rest = &rest[position + 1..];
        let number = || Some((char::from_u32(u32::from_str_radix(rest.get(1..9)?, 16).ok()?)?, 9));
        let found = match rest.chars().next() {
            Some('\\') => Some(('\\', 1)),
            Some('"') => Some(('"', 1)),
            Some('n') => Some(('\n', 1)),
            Some('r') => Some(('\r', 1)),
            Some('t') => Some(('\t', 1)),
            Some('U') => number(),
            Some(_) | None => None,
        };
        match found {
            Some((letter, length)) => {
                out.push(letter);
                rest = &rest[length..];
            }
            None => out.push('\\'),
        }
    }
    out.push_str(rest);
    out
}
