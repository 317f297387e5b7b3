//! Records as tools show them.
//!
//! INVARIANT: every text of a record goes through `inline`, in the object as in the text: there are clients that show the object to
//! their model.

use proctor_recall::cap::{Capped, share};
use proctor_recall::hygiene::inline;
use proctor_recall::{Approval, Polarity, Record, Said, Word};
use serde_json::{Map, Value, json};

use crate::run_text::utc_time;

/// `procedure` or `dead-end`.
pub(super) fn kind(polarity: Polarity) -> &'static str {
    match polarity {
        Polarity::Works => "procedure",
        Polarity::Fails => "dead-end",
    }
}

/// A record as an object, in which its texts together are cut to what one record may take.
pub(super) fn object(record: &Record, place: &str) -> Value {
    let long = [
        ("route", Some(record.route.as_str())),
        ("trap", record.trap.as_deref()),
        ("observation", record.observation.as_deref()),
        ("alternative", record.alternative.as_deref()),
        ("verify", record.verify.as_deref()),
    ];
    let texts = long.map(|(_, text)| inline(text.unwrap_or_default()));
    let shares = share(&texts.each_ref().map(String::as_str));
    let mut object = Map::new();
    object.insert("id".to_owned(), record.id.to_string().into());
    object.insert("kind".to_owned(), kind(record.polarity).into());
    object.insert("state".to_owned(), record.approval.word().into());
    object.insert("place".to_owned(), place.into());
    let mut left_off = 0;
    for (((name, _), text), share) in long.iter().zip(&texts).zip(shares) {
        let capped = Capped::of(text, share);
        left_off += capped.left_off;
        put(&mut object, name, Some(capped.text));
    }
    let words = [word(&record.layer), word(&record.scope), word(&record.evidence), word(&record.degree), word(&record.action)];
    for (name, word) in ["layer", "scope", "evidence", "degree", "action"].into_iter().zip(words) {
        put(&mut object, name, word.as_deref());
    }
    let short = |text: &Option<String>| text.as_deref().map(inline);
    put(&mut object, "project", short(&record.project).as_deref());
    put(&mut object, "agent", short(&record.agent).as_deref());
    put(&mut object, "created", record.created.map(utc_time).as_deref());
    let files: Vec<String> = record.files.iter().take(20).map(|file| inline(file)).collect();
    if !files.is_empty() {
        object.insert("files".to_owned(), files.into());
    }
    if left_off > 0 {
        object.insert("bytes_left_off".to_owned(), left_off.into());
    }
    object.into()
}

fn put(object: &mut Map<String, Value>, name: &str, text: Option<&str>) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        object.insert(name.to_owned(), text.into());
    }
}

fn word<T: Word + PartialEq>(said: &Option<Said<T>>) -> Option<String> {
    said.as_ref().map(|said| inline(said.word()))
}

/// The schema of [`object`], with further properties.
pub(super) fn schema(more: &[(&str, Value)]) -> Value {
    let text = json!({ "type": "string" });
    let names = [
        "id",
        "route",
        "trap",
        "observation",
        "alternative",
        "verify",
        "layer",
        "scope",
        "evidence",
        "degree",
        "action",
        "project",
        "agent",
        "created",
    ];
    let mut properties: Map<String, Value> = names.into_iter().map(|name| (name.to_owned(), text.clone())).collect();
    let approvals: Vec<&str> = Approval::WORDS.iter().map(|(word, _)| *word).collect();
    properties.insert("kind".to_owned(), json!({ "type": "string", "enum": ["procedure", "dead-end"] }));
    properties.insert("state".to_owned(), json!({ "type": "string", "enum": approvals }));
    properties.insert("place".to_owned(), json!({ "type": "string", "enum": ["project", "user"] }));
    properties.insert("files".to_owned(), json!({ "type": "array", "items": text }));
    properties.insert("bytes_left_off".to_owned(), json!({ "type": "integer", "description": "How much of its texts is not shown" }));
    properties.extend(more.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())));
    json!({ "type": "object", "properties": properties, "required": ["id", "kind", "state", "place", "route"] })
}

/// A record in a list: its route, and what belongs to it on lines of its own.
pub(super) fn short(record: &Record, place: &str) -> String {
    let (lead, behind) = match record.polarity {
        Polarity::Works => ("otherwise", &record.trap),
        Polarity::Fails => ("seen", &record.observation),
    };
    let texts = [inline(&record.route), inline(behind.as_deref().unwrap_or_default())];
    let shares = share(&texts.each_ref().map(String::as_str));
    let state = match record.approval {
        Approval::Active => String::new(),
        Approval::Proposed | Approval::Rejected => format!(", {}", record.approval.word()),
    };
    let [route, second] = [Capped::of(&texts[0], shares[0]), Capped::of(&texts[1], shares[1])];
    let left_off = route.left_off + second.left_off;
    let route = route.text.replace('*', "&#42;");
    let mut text = format!("- **{route}** ({}, {}, {place}{state})\n", record.id, kind(record.polarity));
    if !second.text.is_empty() {
        text.push_str(&format!("  {lead}: {}\n", second.text));
    }
    if left_off > 0 {
        text.push_str(&format!("  {left_off} bytes more: ask recall for {}\n", record.id));
    }
    text
}
