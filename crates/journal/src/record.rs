//! One event as the bytes that are stored: `{"v":1,"event":…}`.
//!
//! A change of an event's shape raises [`CURRENT`] and adds an upcaster, which turns an event of the form before
//! into one of the next form. Old records are never rewritten.

use proctor_domain::procedure::RunEvent;
use serde_json::Value;

/// The form that is written.
pub(crate) const CURRENT: u64 = 1;

/// How a record of the current form begins and ends. What stands between is the event, read in a single pass.
const OPENING: &str = "{\"v\":1,\"event\":";
const CLOSING: &str = "}";

/// Turns an event of one form into the next form.
type Upcaster = fn(Value) -> Value;

/// The upcaster at index `n` turns form `n + 1` into form `n + 2`. There is no earlier form than 1 yet.
const UPCASTERS: [Upcaster; 0] = [];

/// Why a stored record is no event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Undecodable {
    /// It can't be read.
    Damaged(String),
    /// It has a later form.
    Newer(u64),
}

impl From<serde_json::Error> for Undecodable {
    fn from(error: serde_json::Error) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// The bytes to store for an event.
pub(crate) fn encode(event: &RunEvent) -> Result<String, serde_json::Error> {
    let mut body = OPENING.to_owned();
    body.push_str(&serde_json::to_string(event)?);
    body.push_str(CLOSING);
    Ok(body)
}

/// The event that was stored.
pub(crate) fn decode(body: &str) -> Result<RunEvent, Undecodable> {
    if let Some(event) = body.strip_prefix(OPENING).and_then(|rest| rest.strip_suffix(CLOSING)) {
        return Ok(serde_json::from_str(event)?);
    }
    let record: Value = serde_json::from_str(body)?;
    Ok(serde_json::from_value(upcast(record, &UPCASTERS)?)?)
}

/// Takes the event out of a record of any known form and brings it to the newest one.
fn upcast(mut record: Value, upcasters: &[Upcaster]) -> Result<Value, Undecodable> {
    let newest = u64::try_from(upcasters.len()).unwrap_or(u64::MAX).saturating_add(1);
    let form = record.get("v").and_then(Value::as_u64).filter(|form| *form > 0);
    let Some(form) = form else { return Err(Undecodable::Damaged("it has no version".to_owned())) };
    if form > newest {
        return Err(Undecodable::Newer(form));
    }
    let Some(event) = record.get_mut("event") else { return Err(Undecodable::Damaged("it has no event".to_owned())) };
    let passed = usize::try_from(form - 1).unwrap_or(usize::MAX);
    Ok(upcasters.iter().skip(passed).fold(event.take(), |event, upcaster| upcaster(event)))
}

#[cfg(test)]
mod tests {
    use proctor_domain::procedure::{CommitPurpose, HaltReason, SkipReason, StepId};
    use proctor_domain::{Oid, SessionId, Timestamp};

    use super::*;

    fn step() -> StepId {
        StepId::try_from("build".to_owned()).unwrap()
    }

    #[test]
    fn a_record_that_is_cut_short_is_damaged() {
        let body = encode(&RunEvent::StepBegan { step: step(), baseline: Some(Oid("a".repeat(40))) }).unwrap();

        for length in 0..body.len() {
            assert!(matches!(decode(&body[..length]), Err(Undecodable::Damaged(_))), "{}", &body[..length]);
        }
    }

    #[test]
    fn a_record_without_a_version_is_damaged() {
        for body in [r#"{"event":{}}"#, r#"{"v":0,"event":{}}"#, r#"{"v":"1","event":{}}"#, r#"{"v":1}"#, "[]", "null", ""] {
            assert!(matches!(decode(body), Err(Undecodable::Damaged(_))), "{body}");
        }
    }

    #[test]
    fn a_record_of_a_later_form_is_refused_as_newer() {
        assert_eq!(decode(r#"{"v":2,"event":{"teleported":[1,2]},"more":0}"#), Err(Undecodable::Newer(2)));
    }

    #[test]
    fn what_is_written_reads_back_as_itself() {
        let events = [
            RunEvent::Restored,
            RunEvent::StepSkipped { step: step(), reason: SkipReason::NotSelected },
            RunEvent::SessionLost { session: SessionId::from_bits(7) },
            RunEvent::CommitPlanned { purpose: CommitPurpose::Step(step()), parent: None },
            RunEvent::Halted { reason: HaltReason::Operation("rebase \"v\":2".to_owned()) },
            RunEvent::Retained { expires: Some(Timestamp(-1)) },
        ];

        for event in events {
            assert_eq!(decode(&encode(&event).unwrap()), Ok(event));
        }
    }

    #[test]
    fn a_record_written_with_other_spacing_reads_the_same() {
        let event = serde_json::to_string(&RunEvent::Restored).unwrap();

        assert_eq!(decode(&format!("{{ \"event\": {event}, \"v\": 1 }}")), Ok(RunEvent::Restored));
    }

    #[test]
    fn an_old_record_passes_through_every_later_upcaster_in_order() {
        fn marked(event: Value, mark: &str) -> Value {
            Value::String(format!("{}{mark}", event.as_str().unwrap_or_default()))
        }
        let upcasters: [Upcaster; 2] = [|event| marked(event, "a"), |event| marked(event, "b")];
        let of_form = |form: u64| serde_json::json!({ "v": form, "event": "x" });

        for (form, event) in [(1, "xab"), (2, "xb"), (3, "x")] {
            assert_eq!(upcast(of_form(form), &upcasters), Ok(Value::from(event)), "form {form}");
        }
        assert_eq!(upcast(of_form(4), &upcasters), Err(Undecodable::Newer(4)));
    }

    #[test]
    fn there_is_an_upcaster_for_every_form_before_the_current_one() {
        assert_eq!(u64::try_from(UPCASTERS.len()).unwrap() + 1, CURRENT);
        assert_eq!(OPENING, format!("{{\"v\":{CURRENT},\"event\":"));
    }
}
