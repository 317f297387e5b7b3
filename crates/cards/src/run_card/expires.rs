//! Changes the one line of a run card that people change too.

use std::path::Path;

use super::read::{parse, read_run_card};
use crate::Finding;
use crate::finding::{At, Level, Located};
use crate::yaml::{Node, Value, flow_scalar};
use proctor_domain::retention::Expires;

/// The card with another `expires`; every other byte stays as it is. `value` is `never` or a time.
///
/// # Errors
/// The card can't be read, `value` is neither, or the line has a form that can't be changed alone.
pub fn set_expires(text: &str, value: &str) -> Result<String, Finding> {
    let located = Located::new(Path::new("run.procedure-run.card"), text);
    let wanted = wanted(value)
        .ok_or_else(|| Finding::of_file(located.path, format!("`{}` is neither `never` nor a time", crate::finding::shown(value))))?;
    let (front, root) = parse(&located)?;
    let entries = match &root.value {
        Value::Mapping(entries) => entries,
        Value::Scalar(_) | Value::Sequence(_) => {
            return Err(located.finding(Level::Error, root.at, format!("the front matter must be a mapping, and is {}", root.kind())));
        }
    };
    let named = |name: &str| entries.iter().find(|(key, _)| key.scalar().is_some_and(|key| &*key.text == name));
    let scalar = flow_scalar(value);
    let edited = match named("expires") {
        Some((key, node)) => replace(&located, key, node, &scalar),
        None => {
            let before = named("steps").map_or(front.closing, |(key, _)| key.at);
            insert(&located, before, root.at, &scalar)
        }
    };
    // Whatever form the card had: only a result that says what was asked for goes out.
    match edited {
        Some(edited) if read_run_card(&edited)?.expires == wanted => Ok(edited),
        Some(_) | None => {
            let at = named("expires").map_or(root.at, |(key, _)| key.at);
            Err(located
                .finding(Level::Error, at, "`expires` can't be changed in this form")
                .hinted(format!("edit it by hand: expires: {scalar}")))
        }
    }
}

fn wanted(value: &str) -> Option<Expires> {
    let card = read_run_card(&format!("---\nprocedure: x\nexpires: {}\n---\n", flow_scalar(value))).ok()?;
    match card.expires {
        Expires::Never | Expires::At(_) => Some(card.expires),
        Expires::Unset | Expires::Unreadable(_) => None,
    }
}

fn replace(located: &Located<'_>, key: &Node, node: &Node, scalar: &str) -> Option<String> {
    let text = located.text;
    node.scalar()?;
    if node.at.start == node.at.end {
        // `expires:` without a value: it goes after the colon.
        let colon = key.at.end() + text.get(key.at.end()..)?.find(':')?;
        return Some(splice(text, At::new(colon + 1, colon + 1), &format!(" {scalar}")));
    }
    let old = text.get(node.at.start()..node.at.end())?;
    Some(splice(text, At::new(node.at.start(), node.at.start() + old.trim_end().len()), scalar))
}

/// A line of its own before the line that holds `before`, with that card's line ends and indentation.
fn insert(located: &Located<'_>, before: At, first: At, scalar: &str) -> Option<String> {
    let text = located.text;
    let line_start = text.get(..before.start())?.rfind('\n')? + 1;
    let first_line_start = text.get(..first.start())?.rfind('\n')? + 1;
    let indent = text.get(first_line_start..first.start())?;
    let line_end = if text.get(..first_line_start)?.ends_with("\r\n") { "\r\n" } else { "\n" };
    Some(splice(text, At::new(line_start, line_start), &format!("{indent}expires: {scalar}{line_end}")))
}

fn splice(text: &str, at: At, part: &str) -> String {
    format!("{}{part}{}", &text[..at.start()], &text[at.end()..])
}
