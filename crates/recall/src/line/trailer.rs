//! The comment at the end of a line: `<!-- proctor id=mem_… created=… -->`, names and values without white space.

use std::fmt::Write;

use proctor_domain::{RecordId, Timestamp};

use super::body::Remark;
use crate::hygiene::is_hidden;
use crate::record::{Approval, Dependency, Polarity, Record, Word};

const OPENS: &str = "<!-- proctor";
const CLOSES: &str = "-->";

/// Where a line's metadata is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Split<'line> {
    /// There is none.
    Bare,
    /// The body, and what is in the comment.
    Whole(&'line str, &'line str),
    /// It begins and does not end: the line was cut off.
    CutOff,
}

/// Finds the metadata of `name` (`proctor`, `logos`) at the end of a line.
pub(crate) fn split<'line>(line: &'line str, name: &str) -> Split<'line> {
    let opens = format!("<!-- {name} ");
    let Some(position) = line.rfind(&opens) else { return Split::Bare };
    let inside = &line[position + opens.len()..];
    match inside.trim_end().strip_suffix(CLOSES) {
        Some(inside) if !inside.contains(CLOSES) => Split::Whole(line[..position].trim_end(), inside),
        // Something behind a comment that is whole: no metadata.
        Some(_) => Split::Bare,
        None if inside.contains(CLOSES) => Split::Bare,
        None => Split::CutOff,
    }
}

/// Names and values of a comment, as they are written.
pub(crate) fn pairs(inside: &str) -> impl Iterator<Item = (&str, &str)> {
    inside.split_whitespace().map(|word| word.split_once('=').unwrap_or((word, "")))
}

/// What a line's metadata says beyond the record's own fields.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// The id, if there is a proper one.
    pub(crate) id: Option<RecordId>,
    /// The polarity, where the file does not say.
    pub(crate) polarity: Option<Polarity>,
    /// The approval, where it differs from the file's.
    pub(crate) approval: Option<Approval>,
}

/// Reads a comment into a record whose body is known.
pub(crate) fn read(inside: &str, record: &mut Record, remarks: &mut Vec<Remark>) -> Told {
    let mut told = Told::default();
    for (key, value) in pairs(inside) {
        if !take(key, value, record, &mut told) {
            if KEYS.contains(&key) {
                remarks.push(Remark::Metadata { key: key.to_owned(), value: value.to_owned() });
            }
            // It gets a proper id, and a comment has one.
            let key = if key == "id" { "id-was" } else { key };
            record.other.push((key.to_owned(), decode(value)));
        }
    }
    told
}

const KEYS: [&str; 13] =
    ["id", "is", "approval", "created", "project", "worktree", "agent", "session", "commit", "files", "deps", "supersedes", "from"];

/// Whether the pair was understood.
fn take(key: &str, written: &str, record: &mut Record, told: &mut Told) -> bool {
    let value = decode(written);
    let text = Some(value.clone()).filter(|text| !text.is_empty());
    match key {
        "project" => record.project = text,
        "worktree" => record.worktree = text,
        "agent" => record.agent = text,
        "session" => record.session = text,
        "commit" => record.commit = text,
        "from" => record.from = text,
        "files" => record.files = list(written),
        "deps" => record.dependencies = list(written).iter().map(|text| Dependency::parse(text)).collect(),
        "id" => told.id = value.parse().ok(),
        "is" => told.polarity = known(&value),
        "approval" => told.approval = known(&value),
        "created" => record.created = instant(&value),
        "supersedes" => record.supersedes = value.parse().ok(),
        _ => return false,
    }
    match key {
        "id" => told.id.is_some(),
        "is" => told.polarity.is_some(),
        "approval" => told.approval.is_some(),
        "created" => record.created.is_some(),
        "supersedes" => record.supersedes.is_some(),
        _ => true,
    }
}

fn known<T: Word>(text: &str) -> Option<T> {
    T::WORDS.iter().find(|(word, _)| *word == text).map(|(_, value)| *value)
}

/// Metadata of a record, as a comment. The approval is in it unless the file says it: what is active is in the files of
/// what is active, everything else is where proposals are, which holds both polarities.
pub(crate) fn write(record: &Record) -> String {
    let mut comment = String::from(OPENS);
    let mut put = |key: &str, value: &str| {
        // Writing to a string can't fail.
        let _ = write!(comment, " {key}={}", encode(value));
    };
    put("id", record.id.as_str());
    if record.approval != Approval::Active {
        put("is", record.polarity.word());
        put("approval", record.approval.word());
    }
    if let Some(created) = record.created {
        put("created", &date(created));
    }
    for (key, value) in [
        ("project", &record.project),
        ("worktree", &record.worktree),
        ("agent", &record.agent),
        ("session", &record.session),
        ("commit", &record.commit),
        ("from", &record.from),
    ] {
        if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
            put(key, value);
        }
    }
    if let Some(supersedes) = &record.supersedes {
        put("supersedes", supersedes.as_str());
    }
    let _ = write!(comment, "{}", lists(record));
    for (key, value) in &record.other {
        let _ = write!(comment, " {key}={}", encode(value));
    }
    comment.push(' ');
    comment.push_str(CLOSES);
    comment
}

fn lists(record: &Record) -> String {
    let join = |key: &str, values: Vec<String>| {
        let values: Vec<String> = values.iter().map(|value| encode(value)).collect();
        if values.is_empty() { String::new() } else { format!(" {key}={}", values.join(",")) }
    };
    join("files", record.files.clone()) + &join("deps", record.dependencies.iter().map(ToString::to_string).collect())
}

fn list(written: &str) -> Vec<String> {
    written.split(',').filter(|value| !value.is_empty()).map(decode).collect()
}

/// An instant as RFC 3339 has it, to the millisecond.
pub(crate) fn date(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string()
}

/// An instant as RFC 3339 has it, or a day.
pub(crate) fn instant(text: &str) -> Option<Timestamp> {
    let day = |text: &str| {
        let date: jiff::civil::Date = text.parse().ok()?;
        jiff::tz::TimeZone::UTC.to_timestamp(date.at(0, 0, 0, 0)).ok()
    };
    let parsed = text.parse::<jiff::Timestamp>().ok().or_else(|| day(text))?;
    Some(Timestamp(parsed.as_millisecond()))
}

/// Letters and digits of any script and a few marks stand for themselves, the rest as `%` and two digits a byte.
fn encode(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for letter in value.chars() {
        // One `-` is followed by something else, or a comment could end here.
        let is_safe = match letter {
            '.' | '_' | '/' | ':' | '@' | '+' | '~' | '^' | '*' => true,
            '-' => !out.ends_with('-'),
            other => other.is_alphanumeric() && !is_hidden(other),
        };
        if is_safe {
            out.push(letter);
        } else {
            let mut bytes = [0; 4];
            for byte in letter.encode_utf8(&mut bytes).bytes() {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digit =
            |index: usize| tail.get(index).and_then(|byte| char::from(*byte).to_digit(16)).and_then(|digit| u8::try_from(digit).ok());
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(high * 16 + low);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    // Text that was not made by us may decode to anything.
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}
