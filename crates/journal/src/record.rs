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
    use proctor_domain::procedure::{
        Answer, CheckResult, CommitPurpose, Evidence, Failure, HaltReason, Outcome, Owed, Proposal, Reception, Run, SkipReason, StepId,
        Verdict,
    };
    use proctor_domain::session::{AgentReport, Excerpt, Learned, Phase, SessionEnd, SessionReport, Spending, Told, Usage, Work};
    use proctor_domain::{Branch, Cost, MicroDollars, Oid, RecordId, SessionId, Timestamp};

    use super::*;

    fn step() -> StepId {
        StepId::try_from("build".to_owned()).unwrap()
    }

    fn verdict() -> Verdict {
        Verdict { passed: false, reasoning: "two\nlines".to_owned() }
    }

    fn refused() -> Failure {
        Failure::NoResponse { work: Work::Agent(3), reason: "401".to_owned() }
    }

    fn judged() -> Box<SessionReport> {
        let agent = AgentReport {
            engine: "scripted".parse().unwrap(),
            conversation: Some("5d1e".to_owned()),
            model: None,
            responded: true,
            turns: 2,
            spent: vec![
                Spending { model: "m".to_owned(), usage: Usage { input: u64::MAX, ..Usage::default() }, cost: Cost::Unknown },
                Spending { model: "n".to_owned(), usage: Usage::default(), cost: Cost::Known(MicroDollars(9_440)) },
            ],
            claim: None,
            result: Some("{}".to_owned()),
            error: None,
            unknown_lines: 1,
            told: Told {
                notes: vec!["a".to_owned()],
                blocked: Some("b".to_owned()),
                question: Some("c".to_owned()),
                learned: Some(Learned { route: "d".to_owned(), trap: "e".to_owned() }),
            },
        };
        Box::new(SessionReport {
            end: SessionEnd::UsageLimit { until: Some(Timestamp(9)) },
            shells: Vec::new(),
            stdout: Excerpt::default(),
            stderr: Excerpt::default(),
            outputs: std::collections::BTreeMap::new(),
            output_error: None,
            ended_orphans: 0,
            lingering: Vec::new(),
            log_note: None,
            duration_ms: 1,
            agent: Some(Box::new(agent)),
            killed_by: None,
        })
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
            RunEvent::SessionLost { session: SessionId::from_bits(7), ended_orphans: 0 },
            RunEvent::CommitPlanned { purpose: CommitPurpose::Step(step()), parent: None },
            RunEvent::Halted { reason: HaltReason::Operation("rebase \"v\":2".to_owned()) },
            RunEvent::Retained { expires: Some(Timestamp(-1)) },
            RunEvent::SessionOpened {
                session: SessionId::from_bits(8),
                phase: Phase::Validate,
                work: Work::Judge(2),
                evidence: Some(Evidence { from: None, to: Oid("b".repeat(64)) }),
                known: vec![RecordId::from_bits(3)],
            },
            RunEvent::Proposed {
                records: vec![Proposal { step: step(), record: RecordId::from_bits(4), reception: Reception::Corroborated }],
                obstacle: Some("no room".to_owned()),
            },
            RunEvent::SessionEnded { session: SessionId::from_bits(8), report: judged(), verdict: Some(verdict()) },
            RunEvent::Answered { step: step(), answer: Answer::Reject, message: Some("no \u{0}".to_owned()) },
            RunEvent::Collected { changed: Vec::new(), commits: vec![Oid("c".repeat(40))], failure: Some(refused()) },
            RunEvent::CommitPlanned { purpose: CommitPurpose::Work(step()), parent: None },
            RunEvent::Halted { reason: HaltReason::Approval { step: step(), question: "?".to_owned() } },
            RunEvent::Halted { reason: HaltReason::Question { step: step(), question: "?".to_owned() } },
            RunEvent::Halted { reason: HaltReason::Limited { engine: "claude".parse().unwrap(), until: None } },
            RunEvent::Halted { reason: HaltReason::NotMerged { branch: Branch::Detached, reason: "dirty".to_owned() } },
            RunEvent::Confined { kind: "none".to_owned(), net: Some("all".to_owned()), open: vec!["read-home".to_owned()] },
            RunEvent::RejudgeAsked,
            RunEvent::WorktreeMade,
            RunEvent::Merged { commit: Oid("d".repeat(40)) },
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

    /// A run of shells as it was recorded before there were agents, judges, questions and worktrees of a run's own.
    const OF_SHELLS: [&str; 9] = [
        r#"{"v":1,"event":{"event":"started","procedure":"check","card":"proctor/procedures/check.procedure.card","snapshot":"00","steps":[{"id":"build","phases":["run","validate"],"severity":"warn","retry":{"max":1,"backoff":10}}],"records":"state","directive":null,"inputs":{"version":"1.0"},"only":null,"worktree":"/r","card_root":"","branch":{"named":"main"},"head":"11","folder":null,"foreign":[],"foreign_snapshot":null,"run_expiry":"never","failed_run_expiry":{"after":7776000000}}}"#,
        r#"{"v":1,"event":{"event":"step-began","step":"build","baseline":"11"}}"#,
        r#"{"v":1,"event":{"event":"session-opened","session":"ses_0000000001","phase":"run"}}"#,
        r#"{"v":1,"event":{"event":"session-ended","session":"ses_0000000001","report":{"end":{"end":"completed"},"shells":[{"exit_code":0,"duration_ms":12}],"stdout":{"head":"","tail":"","omitted":0},"stderr":{"head":"","tail":"","omitted":0},"outputs":{},"output_error":null,"ended_orphans":0,"lingering":[],"log_note":null,"duration_ms":15}}}"#,
        r#"{"v":1,"event":{"event":"halted","reason":"interrupted"}}"#,
        r#"{"v":1,"event":{"event":"resumed","head":"11","accepted":[],"directive":null}}"#,
        r#"{"v":1,"event":{"event":"session-opened","session":"ses_0000000002","phase":"validate"}}"#,
        r#"{"v":1,"event":{"event":"session-ended","session":"ses_0000000002","report":{"end":{"end":"completed"},"shells":[{"exit_code":1,"duration_ms":12}],"stdout":{"head":"","tail":"","omitted":0},"stderr":{"head":"","tail":"","omitted":0},"outputs":{},"output_error":null,"ended_orphans":0,"lingering":[],"log_note":null,"duration_ms":15}}}"#,
        r#"{"v":1,"event":{"event":"surveyed","changed":[],"commits":[],"failure":null}}"#,
    ];

    #[test]
    fn a_run_that_was_recorded_before_there_were_agents_is_read_and_goes_on() {
        let events = OF_SHELLS.map(|body| (Timestamp(1), decode(body).unwrap()));

        let run = Run::replay(events).unwrap().unwrap();

        assert_eq!(run.owes(), Owed::End(Outcome::Completed));
        let step = &run.steps[0];
        assert_eq!((step.plan.agents, step.plan.judged, &step.plan.approve), (0, false, &None));
        assert_eq!(step.validate, Some(CheckResult::Warn));
        assert!(step.sessions.iter().all(|session| session.work == Work::Shells));
        assert_eq!((run.started.isolated.is_some(), step.evidence.is_some(), step.unjudged), (false, false, None));
    }

    #[test]
    fn a_run_of_shells_is_recorded_without_a_word_of_agents() {
        let of_agents = ["evidence", "approve", "isolated", "\"agent\""];

        for body in OF_SHELLS {
            let written = encode(&decode(body).unwrap()).unwrap();

            assert!(of_agents.iter().all(|word| !written.contains(word)), "{written}");
            assert_eq!(decode(&written), decode(body));
        }
    }

    #[test]
    fn a_box_that_was_recorded_by_its_kind_alone_is_read() {
        let body = r#"{"v":1,"event":{"event":"confined","kind":"bwrap"}}"#;

        let event = decode(body).unwrap();

        assert_eq!(event, RunEvent::Confined { kind: "bwrap".to_owned(), net: None, open: Vec::new() });
        assert_eq!(encode(&event).unwrap(), body);
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
