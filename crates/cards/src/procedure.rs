//! Reads procedure cards.

mod fields;
mod inputs;
mod phases;
mod references;
mod scalars;
mod steps;

use proctor_domain::procedure::{Definition, Isolation, MemoryUse, Records};

use crate::finding::{Findings, Located, shown};
use crate::front;
use crate::yaml::{self, Node};
use crate::{BoxDefaults, Finding, Layout, Source};
use fields::{Field, Fields, Reader};

/// A procedure card that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// What it declares.
    pub definition: Definition,
    /// What its author probably did not mean.
    pub warnings: Vec<Finding>,
}

/// Longest name of a procedure; it is part of a folder's name.
const LONGEST_NAME: usize = 100;

/// Reads a procedure card.
///
/// # Errors
/// Every finding, errors and warnings, in the order of the text; at least one is an error.
pub fn read_procedure(source: &Source, layout: Layout, box_defaults: &BoxDefaults) -> Result<Card, Vec<Finding>> {
    if u64::try_from(source.text.len()).unwrap_or(u64::MAX) > Source::LARGEST {
        return Err(vec![Finding::of_file(&source.path, "is larger than 8 MiB, and no card that large is read")]);
    }
    let mut reader = Reader { findings: Findings::new(Located::new(&source.path, &source.text)), layout };
    let definition = read_text(&mut reader, &source.text, box_defaults);
    let has_errors = reader.findings.has_errors();
    let findings = reader.findings.into_vec();
    match definition {
        Some(definition) if !has_errors => Ok(Card { definition, warnings: findings }),
        Some(_) | None => Err(findings),
    }
}

fn read_text(reader: &mut Reader<'_>, text: &str, box_defaults: &BoxDefaults) -> Option<Definition> {
    let front = match front::split(text) {
        Ok(front) => front,
        Err(error) => {
            let hint = "a procedure card is a line `---`, YAML, and a line `---`";
            reader.findings.error_hint(error.at(), error.to_string(), hint);
            return None;
        }
    };
    let body = &text[front.body.start()..front.body.end()];
    if !body.trim().is_empty() {
        let start = front.body.start() + (body.len() - body.trim_start().len());
        let line_end = start + text[start..].find('\n').unwrap_or(text.len() - start);
        let hint = "move it into the `description`, or into a YAML comment";
        reader.findings.error_hint(crate::finding::At::new(start, line_end), "a procedure card has no text after its front matter", hint);
    }
    match yaml::parse(&text[front.yaml.start()..front.yaml.end()], front.yaml.start()) {
        Ok(Some(root)) => read_root(reader, &root, box_defaults),
        Ok(None) => {
            reader.findings.error(front.closing, "the front matter is empty: it needs at least `name` and `steps`");
            None
        }
        Err(error) => {
            reader.findings.add(crate::Level::Error, error.at, error.message, error.hint.map(str::to_owned));
            None
        }
    }
}

fn read_root(reader: &mut Reader<'_>, root: &Node, box_defaults: &BoxDefaults) -> Option<Definition> {
    let fields = Fields::open(reader, &Field::whole(root), "")?;
    if let Some(field) = fields.get("type") {
        reader.word(&field, &[("procedure", ())]);
    }
    let name = fields.need(reader, "name", "the card").and_then(|field| read_name(reader, &field));
    let description = fields.get("description").and_then(|field| reader.text(&field)).unwrap_or_default();
    let run_expiry = fields.get("run-expiry").and_then(|field| reader.expiry(&field));
    let failed_run_expiry = fields.get("failed-run-expiry").and_then(|field| reader.expiry(&field));
    let records = fields.get("records").and_then(|field| reader.word(&field, &[("state", Records::State), ("git", Records::Git)]));
    let isolation = fields
        .get("isolation")
        .and_then(|field| reader.word(&field, &[("in-place", Isolation::InPlace), ("worktree", Isolation::Worktree)]));
    let memory = fields.get("memory").and_then(|field| read_memory(reader, &field)).unwrap_or_default();
    let inputs = inputs::read(reader, fields.get("inputs"));
    let mut steps = fields.need(reader, "steps", "the card").map(|field| steps::read(reader, &field)).unwrap_or_default();
    references::check(reader, &inputs, &steps);
    for agent in steps.specs.iter_mut().filter_map(|step| step.run.as_mut()).flat_map(|run| run.agents.iter_mut()) {
        agent.model = agent.model.take().or_else(|| box_defaults.agent_model.clone());
    }
    Some(Definition {
        name: name?,
        description,
        run_expiry,
        failed_run_expiry,
        inputs: inputs.specs,
        records,
        isolation,
        memory,
        steps: steps.specs,
    })
}

/// Whether memory is asked and told: in a whole procedure, or in one step.
fn read_memory(reader: &mut Reader<'_>, field: &Field<'_>) -> Option<MemoryUse> {
    reader.word(field, &[("on", MemoryUse::On), ("off", MemoryUse::Off)])
}

/// A procedure's name becomes part of a folder's name and of commit messages.
fn read_name(reader: &mut Reader<'_>, field: &Field<'_>) -> Option<String> {
    let name = reader.text(field)?;
    let wrong = if name.trim().is_empty() {
        "is empty"
    } else if name.chars().count() > LONGEST_NAME {
        "is longer than 100 characters"
    } else if name.chars().any(char::is_control) {
        "holds a control character or a line break"
    } else if name.contains(['/', '\\']) {
        "holds a slash"
    } else if name.starts_with(['.', '-']) {
        "begins with `.` or `-`"
    } else if name.trim() != name {
        "begins or ends with blank space"
    } else {
        return Some(name);
    };
    let message = format!("the name `{}` {wrong}, so it can't name a run's folder", shown(&name));
    reader.findings.error_hint(field.at(), message, "use a short name such as `release-check`");
    None
}
