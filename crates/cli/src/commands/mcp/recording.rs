//! Tools that record. What they record is proposed.

use std::fmt::Write;

use proctor_recall::cap::CAP;
use proctor_recall::{Action, Added, Approval, Degree, Dependency, Effect, Evidence, Layer, Line, Polarity, Record, Said, Scope, Word};
use serde_json::{Value, json};

use super::answer::{Answer, Refusal};
use super::caller::{Call, PLACE_MAY};
use super::field::{Field, Fields, Need, Shape, words};
use super::shown::kind;
use crate::commands::memory::add::made_here;
use crate::commands::memory::receipt::MaskedDocument;
use crate::memory::mask;

static KIND: Field = Field::new("kind", Shape::Text, "`procedure`, for what works, or `dead-end`, for what fails; nothing else is kept");
static TEXT: Field =
    Field::new("text", Shape::Text, "The whole record as one line, instead of its parts: `route: … | trap: … | layer: design`");
static ROUTE: Field = Field::new("route", Shape::Text, "What was, or is to be, done");
static TRAP: Field = Field::new("trap", Shape::Text, "What goes wrong for who does it otherwise; a procedure without one is documentation");
static OBSERVATION: Field = Field::new("observation", Shape::Text, "What was seen when it failed");
static ALTERNATIVE: Field = Field::new("alternative", Shape::Text, "What to try instead");
static VERIFY: Field = Field::new("verify", Shape::Text, "A command that shows that it works; it is kept as text and not run");
static LAYER: Field = Field::new("layer", Shape::Word(words::<Layer>), "What it is about");
static SCOPE: Field = Field::new("scope", Shape::Word(words::<Scope>), "How far it travels");
static EVIDENCE: Field =
    Field::new("evidence", Shape::Word(words::<Evidence>), "How sure it is that it works: `verified` only where you ran it and saw it");
static DEGREE: Field = Field::new("degree", Shape::Word(words::<Degree>), "How sure it is that it fails");
static ACTION: Field = Field::new("action", Shape::Word(words::<Action>), "What to do about it");
static FILES: Field = Field::new("files", Shape::Texts, "Files that it is about, relative to the top of the repository");
static DEPENDENCIES: Field = Field::new("dependencies", Shape::Texts, "Packages that it was seen with, as `name` or `name@version`");
static SUPERSEDES: Field = Field::new("supersedes", Shape::Text, "The id of the record that this one replaces, once it counts");

pub(super) const OF_PROCEDURE: Fields = &[
    (&ROUTE, Need::Must),
    (&TRAP, Need::Must),
    (&ALTERNATIVE, Need::May),
    (&VERIFY, Need::May),
    (&LAYER, Need::May),
    (&SCOPE, Need::May),
    (&EVIDENCE, Need::May),
    (&FILES, Need::May),
    (&DEPENDENCIES, Need::May),
    (&SUPERSEDES, Need::May),
    PLACE_MAY,
];

pub(super) const OF_DEAD_END: Fields = &[
    (&ROUTE, Need::Must),
    (&OBSERVATION, Need::Must),
    (&ALTERNATIVE, Need::May),
    (&LAYER, Need::May),
    (&SCOPE, Need::May),
    (&DEGREE, Need::May),
    (&ACTION, Need::May),
    (&FILES, Need::May),
    (&DEPENDENCIES, Need::May),
    (&SUPERSEDES, Need::May),
    PLACE_MAY,
];

pub(super) const OF_REMEMBER: Fields = &[
    (&KIND, Need::Must),
    (&TEXT, Need::May),
    (&ROUTE, Need::May),
    (&TRAP, Need::May),
    (&OBSERVATION, Need::May),
    (&ALTERNATIVE, Need::May),
    (&VERIFY, Need::May),
    (&LAYER, Need::May),
    (&SCOPE, Need::May),
    (&EVIDENCE, Need::May),
    (&DEGREE, Need::May),
    (&ACTION, Need::May),
    (&FILES, Need::May),
    (&DEPENDENCIES, Need::May),
    (&SUPERSEDES, Need::May),
    PLACE_MAY,
];

/// The parts that a line says by itself.
static PARTS: [&Field; 10] = [&ROUTE, &TRAP, &OBSERVATION, &ALTERNATIVE, &VERIFY, &LAYER, &SCOPE, &EVIDENCE, &DEGREE, &ACTION];

/// `record_procedure`
pub(super) fn procedure(call: &Call<'_>) -> Result<Answer, Refusal> {
    record(call, Line::of(said(call, Polarity::Works)))
}

/// `record_dead_end`
pub(super) fn dead_end(call: &Call<'_>) -> Result<Answer, Refusal> {
    record(call, Line::of(said(call, Polarity::Fails)))
}

/// `remember`
pub(super) fn remember(call: &Call<'_>) -> Result<Answer, Refusal> {
    let polarity = match call.text(&KIND).unwrap_or_default() {
        "procedure" => Polarity::Works,
        "dead-end" => Polarity::Fails,
        other => {
            return Err(Refusal::new(format!(
                "'{other}' is not kept: memory holds procedures and dead ends. Facts about the code belong into the code or its documentation, \
                 preferences into the instructions of the agent"
            )));
        }
    };
    let part = PARTS.iter().find(|field| call.text(field).is_some());
    match (call.text(&TEXT), part) {
        (Some(_), Some(part)) => Err(Refusal::new(format!("give either 'text' or parts such as '{}', not both", part.name))),
        (Some(text), None) => record(call, Line::foreign(polarity, text)),
        (None, _) => record(call, Line::of(said(call, polarity))),
    }
}

fn said(call: &Call<'_>, polarity: Polarity) -> Record {
    let text = |field: &Field| call.text(field).map(str::to_owned);
    Record {
        trap: text(&TRAP),
        observation: text(&OBSERVATION),
        alternative: text(&ALTERNATIVE),
        verify: text(&VERIFY),
        layer: word(call, &LAYER),
        scope: word(call, &SCOPE),
        evidence: word(call, &EVIDENCE),
        degree: word(call, &DEGREE),
        action: word(call, &ACTION),
        ..Record::draft(polarity, call.text(&ROUTE).unwrap_or_default())
    }
}

fn word<T: Word>(call: &Call<'_>, field: &Field) -> Option<Said<T>> {
    call.text(field).map(Said::of)
}

fn record(call: &Call<'_>, mut line: Line) -> Result<Answer, Refusal> {
    let places = call.places()?;
    let named = places.first()?;
    let supersedes = call.text(&SUPERSEDES).map(|text| places.find_record(text)).transpose()?;
    let owned = |texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect();
    line.record = Record {
        files: owned(call.given.texts(&FILES)),
        dependencies: call.given.texts(&DEPENDENCIES).into_iter().map(Dependency::parse).collect(),
        agent: call.agent.map(str::to_owned),
        supersedes: supersedes.map(|(_, entry)| entry.record.id),
        // Whoever calls, a person has not seen it.
        approval: Approval::Proposed,
        ..made_here(&call.invocation, &places, line.record)
    };
    let mut masked = MaskedDocument::default();
    masked.add(line.mask(&mask(&call.invocation)?));
    let added = named.folder.change(Effect::Write, |contents| contents.add(line.clone()))?;
    if let Added::New(id) = &added {
        call.note_proposed(id);
    }
    Ok(receipt(&line, &added, named.name, &masked))
}

/// Says what was done, and what is not as it was given.
fn receipt(line: &Line, added: &Added, place: &str, masked: &MaskedDocument) -> Answer {
    let id = added.id();
    let (what, approval) = match added {
        Added::New(_) => ("proposed", Approval::Proposed),
        Added::Known(_, approval) => ("known", *approval),
    };
    let mut text = match (added, approval) {
        (Added::New(_), _) => {
            format!("Proposed as {id} in the {place} memory. It is shown to nobody until a person says: proctor memory approve {id}")
        }
        (Added::Known(..), Approval::Active) => format!("Nothing to do: the same is recorded as {id} already, and counts"),
        (Added::Known(..), Approval::Proposed) => format!("Nothing to do: the same is proposed as {id} already, and waits for a person"),
        (Added::Known(..), Approval::Rejected) => format!("Nothing was recorded: a person rejected the same as {id}"),
    };
    let size = [Some(&line.record.route), line.record.trap.as_ref(), line.record.observation.as_ref()].into_iter().flatten();
    let size: usize = size.map(String::len).sum();
    if masked.count > 0 {
        let (number, is) = if masked.count == 1 { ("1 secret".to_owned(), "was") } else { (format!("{} secrets", masked.count), "were") };
        let _ = write!(text, "\n{number} {is} masked before anything was written, in {}", masked.fields.join(", "));
    }
    if size > CAP {
        let _ = write!(text, "\nIt is long: it is kept whole, and {CAP} bytes of it are shown in lists. Shorter ones are read");
    }
    let remarks: Vec<String> = line.remarks.iter().map(|remark| proctor_recall::hygiene::inline(&remark.to_string())).collect();
    remarks.iter().for_each(|remark| text.push_str(&format!("\nNote: {remark}")));
    text.push('\n');
    let object = json!({
        "id": id.to_string(), "what": what, "state": approval.word(), "place": place, "kind": kind(line.record.polarity),
        "masked": { "count": masked.count, "fields": masked.fields }, "shown_in_part": size > CAP, "remarks": remarks, "says": text.trim_end(),
    });
    Answer { text, object }
}

pub(super) fn schema() -> Value {
    let text = json!({ "type": "string" });
    let texts = json!({ "type": "array", "items": text });
    json!({
        "type": "object",
        "properties": {
            "id": text,
            "what": { "type": "string", "enum": ["proposed", "known"] },
            "state": { "type": "string", "enum": words::<Approval>() },
            "place": text,
            "kind": text,
            "masked": {
                "type": "object",
                "description": "Secrets that were taken out before anything was written",
                "properties": { "count": { "type": "integer" }, "fields": texts },
                "required": ["count", "fields"],
            },
            "shown_in_part": { "type": "boolean", "description": "Whether lists show only its beginning; it is kept whole" },
            "remarks": texts,
            "says": text,
        },
        "required": ["id", "what", "state", "place", "kind", "masked", "shown_in_part", "remarks", "says"],
    })
}
