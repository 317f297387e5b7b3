//! `forget`: takes back what was proposed.
//!
//! A tool may only undo what it did itself: a record that was proposed through this server, or in the session of Proctor that the
//! server is of, and that no person has decided on. Forgetting anything else is a person's, as approving is.

use proctor_recall::{Approval, Effect, StoreError};
use serde_json::{Value, json};

use super::answer::{Answer, Refusal};
use super::caller::{Call, PLACE_MAY};
use super::field::{Field, Fields, Need, Shape};

static ID: Field = Field::new("id", Shape::Text, "The record's id, or its beginning");
pub(super) const FIELDS: Fields = &[(&ID, Need::Must), PLACE_MAY];

/// `forget`
pub(super) fn forget(call: &Call<'_>) -> Result<Answer, Refusal> {
    let places = call.places()?;
    let (named, entry) = places.find_record(call.text(&ID).unwrap_or_default())?;
    let id = &entry.record.id;
    if !call.may_take_back(id, entry.record.session.as_deref()) {
        return Err(not_yours(id.as_str(), "it was not proposed here"));
    }
    // A person may have decided between the look and the change.
    let before = named.folder.change(Effect::Write, |contents| {
        let approval = contents.find(id.as_str())?.record.approval;
        if approval == Approval::Proposed {
            contents.remove(id).ok_or_else(|| StoreError::NoRecord { text: id.to_string() })?;
        }
        Ok(approval)
    })?;
    match before {
        Approval::Proposed => {
            let text = format!("{id} is taken back from the {} memory; nobody had approved it\n", named.name);
            Ok(Answer { object: json!({ "id": id.to_string(), "what": "forgotten", "place": named.name, "says": text.trim_end() }), text })
        }
        Approval::Active | Approval::Rejected => Err(not_yours(id.as_str(), "a person has decided on it")),
    }
}

fn not_yours(id: &str, why: &str) -> Refusal {
    Refusal::new(format!("{id} stays: {why}, and so only a person forgets it\nhint: proctor memory forget {id}"))
}

pub(super) fn schema() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "type": "object",
        "properties": { "id": text, "what": { "type": "string", "enum": ["forgotten"] }, "place": text, "says": text },
        "required": ["id", "what", "place", "says"],
    })
}
