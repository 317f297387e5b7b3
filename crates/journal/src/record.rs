//! One event as the bytes that are stored: `{"v":1,"event":"…",…}`.
//!
//! A change of an event's shape raises [`CURRENT`] and adds an upcaster, which turns an object of the form before
//! into one of the next form. Old records are never rewritten.

use proctor_domain::procedure::RunEvent;
use serde_json::{Map, Value};

/// The form that is written.
pub(crate) const CURRENT: u64 = 1;

/// How a record of the current form begins. Reading one takes a single pass over its bytes.
const OPENING: &str = "{\"v\":1,";

/// Turns a record of one form into the next form.
type Upcaster = fn(Map<String, Value>) -> Map<String, Value>;

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

/// The bytes to store for an event.
pub(crate) fn encode(event: &RunEvent) -> Result<String, serde_json::Error> {
    let object = serde_json::to_string(event)?;
    let mut body = String::with_capacity(OPENING.len() + object.len());
    body.push_str(OPENING);
    // An event is always an object with at least its tag, so something follows the brace.
    body.push_str(object.strip_prefix('{').unwrap_or(&object));
    Ok(body)
}

/// The event that was stored.
pub(crate) fn decode(body: &str) -> Result<RunEvent, Undecodable> {
    if body.starts_with(OPENING) {
        // The version is a member that no event knows, and unknown members are passed over.
        return serde_json::from_str(body).map_err(|error| Undecodable::Damaged(error.to_string()));
    }
    let record: Map<String, Value> = serde_json::from_str(body).map_err(|error| Undecodable::Damaged(error.to_string()))?;
    let current = upcast(record, &UPCASTERS)?;
    serde_json::from_value(Value::Object(current)).map_err(|error| Undecodable::Damaged(error.to_string()))
}

/// Brings a record of any known form to the newest one.
fn upcast(mut record: Map<String, Value>, upcasters: &[Upcaster]) -> Result<Map<String, Value>, Undecodable> {
    let newest = u64::try_from(upcasters.len()).unwrap_or(u64::MAX).saturating_add(1);
    let form = record.get("v").and_then(Value::as_u64).filter(|form| *form > 0);
    let Some(form) = form else { return Err(Undecodable::Damaged("it has no version".to_owned())) };
    if form > newest {
        return Err(Undecodable::Newer(form));
    }
    let known = usize::try_from(form).unwrap_or(usize::MAX);
    for upcaster in upcasters.iter().skip(known - 1) {
        record = upcaster(record);
    }
    Ok(record)
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
        for body in [r#"{"event":"restored"}"#, r#"{"v":0,"event":"restored"}"#, r#"{"v":"1","event":"restored"}"#, "[]", "null"] {
            assert!(matches!(decode(body), Err(Undecodable::Damaged(_))), "{body}");
        }
    }

    #[test]
    fn a_record_of_a_later_form_is_refused_as_newer() {
        assert_eq!(decode(r#"{"v":2,"event":"teleported","to":[1,2]}"#), Err(Undecodable::Newer(2)));
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
        assert_eq!(decode(r#"{ "event": "restored", "v": 1 }"#), Ok(RunEvent::Restored));
    }

    #[test]
    fn an_old_record_passes_through_every_later_upcaster_in_order() {
        fn tagged(mut record: Map<String, Value>, mark: &str) -> Map<String, Value> {
            let trail = record.get("trail").and_then(Value::as_str).unwrap_or_default().to_owned();
            record.insert("trail".to_owned(), Value::String(trail + mark));
            record
        }
        let upcasters: [Upcaster; 2] = [|record| tagged(record, "a"), |record| tagged(record, "b")];
        let of_form = |form: u64| Map::from_iter([("v".to_owned(), Value::from(form))]);

        for (form, trail) in [(1, Some("ab")), (2, Some("b")), (3, None)] {
            let record = upcast(of_form(form), &upcasters).unwrap();

            assert_eq!(record.get("trail").and_then(Value::as_str), trail, "form {form}");
        }
        assert_eq!(upcast(of_form(4), &upcasters), Err(Undecodable::Newer(4)));
    }

    #[test]
    fn there_is_an_upcaster_for_every_form_before_the_current_one() {
        assert_eq!(u64::try_from(UPCASTERS.len()).unwrap() + 1, CURRENT);
        assert_eq!(OPENING, format!("{{\"v\":{CURRENT},"));
    }
}
