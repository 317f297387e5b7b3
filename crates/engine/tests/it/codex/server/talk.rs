//! Sessions such as nobody recorded.

use proctor_domain::session::{SessionEnd, Usage};
use proctor_engine::agent::{AgentEvent, EngineKind, Input, Opening, Reader, engine};
use serde_json::{Value, json};

use super::{close, words};

/// A session that nobody recorded: the thread is `t`, and its first turn `u`.
pub(super) struct Talk {
    pub(super) reader: Box<dyn Reader>,
    events: Vec<AgentEvent>,
}

impl Talk {
    fn of(opening: &Opening) -> Self {
        let opening = Opening { directory: "/project".into(), input: Input::Spoken, prompt: "Do it.".to_owned(), ..opening.clone() };
        let mut talk = Self { reader: engine(EngineKind::Codex).reader(&opening), events: Vec::new() };
        talk.says("initialize");
        talk.answers(1, json!({}));
        talk
    }

    /// One that waits for its turn to begin.
    pub(super) fn asked() -> Self {
        let mut talk = Self::of(&Opening { model: Some("gpt-5.5".to_owned()), ..Opening::default() });
        assert_eq!(talk.words()[1]["method"], "thread/start");
        talk.answers(2, json!({ "thread": { "id": "t" }, "model": "gpt-5.5" }));
        talk.says("turn/start");
        talk.answers(3, json!({ "turn": { "id": "u" } }));
        talk
    }

    /// One whose turn has begun.
    pub(super) fn working() -> Self {
        let mut talk = Self::asked();
        talk.tells("turn/started", json!({ "turn": { "id": "u" } }));
        talk
    }

    fn read(&mut self, message: &Value) -> Vec<AgentEvent> {
        let before = self.events.len();
        self.reader.read(message.to_string().as_bytes(), &mut self.events);
        self.events[before..].to_vec()
    }

    pub(super) fn hears(&mut self, method: &str, params: Value) -> Vec<AgentEvent> {
        self.read(&json!({ "method": method, "params": params }))
    }

    /// What is told of the thread.
    fn tells(&mut self, method: &str, mut params: Value) -> Vec<AgentEvent> {
        params["threadId"] = json!("t");
        self.hears(method, params)
    }

    fn ends(&mut self, turn: &str, status: &str) -> Vec<AgentEvent> {
        self.tells("turn/completed", json!({ "turn": { "id": turn, "status": status } }))
    }

    fn uses(&mut self, thread: &str, turn: &str, output: u64) -> Vec<AgentEvent> {
        let total = json!({ "inputTokens": output * 10, "outputTokens": output });
        self.hears("thread/tokenUsage/updated", json!({ "threadId": thread, "turnId": turn, "tokenUsage": { "total": total } }))
    }

    fn answers(&mut self, id: u64, result: Value) -> Vec<AgentEvent> {
        self.read(&json!({ "id": id, "result": result }))
    }

    fn refuses(&mut self, id: u64, message: &str) -> Vec<AgentEvent> {
        self.read(&json!({ "id": id, "error": { "code": -32600, "message": message } }))
    }

    fn words(&mut self) -> Vec<Value> {
        words(self.reader.as_mut())
    }

    /// The one thing that is said next.
    fn says(&mut self, method: &str) -> Value {
        let words = self.words();
        let [message] = words.as_slice() else { panic!("{method}: {words:?}") };
        assert_eq!(message["method"], method, "{message}");
        message.clone()
    }

    fn is_finished(&self) -> bool {
        self.events.iter().any(|event| matches!(event, AgentEvent::Finished(_)))
    }

    fn end(self) -> SessionEnd {
        close(self.events, false).0
    }
}

#[test]
fn a_turn_that_has_not_begun_is_broken_off_when_it_has() {
    let mut talk = Talk::asked();

    assert!(talk.reader.interrupt());
    assert_eq!(talk.words(), [Value::Null; 0], "Codex refuses to break off what has not begun");
    talk.tells("turn/started", json!({ "turn": { "id": "u" } }));

    assert_eq!(talk.says("turn/interrupt")["params"], json!({ "threadId": "t", "turnId": "u" }));
    assert!(!talk.reader.say("More."));
    talk.ends("u", "interrupted");
    assert_eq!(talk.end(), SessionEnd::Interrupted);
}

#[test]
fn there_is_nothing_to_break_off_before_a_turn_and_after_it() {
    let mut before = Talk::of(&Opening::default());
    let mut after = Talk::working();
    after.ends("u", "completed");

    assert!(!before.reader.interrupt() && !after.reader.interrupt());
}

#[test]
fn what_is_said_early_goes_into_the_turn_when_it_has_begun() {
    let mut talk = Talk::asked();

    assert!(talk.reader.say("Left."));
    assert_eq!(talk.words(), [Value::Null; 0]);
    talk.tells("turn/started", json!({ "turn": { "id": "u" } }));

    let steer = talk.says("turn/steer");
    assert_eq!((&steer["params"]["expectedTurnId"], &steer["params"]["input"][0]["text"]), (&json!("u"), &json!("Left.")));
}

#[test]
fn what_came_too_late_for_a_turn_is_asked_in_one_of_its_own() {
    let mut talk = Talk::working();
    assert!(talk.reader.say("Left."));
    let id = talk.says("turn/steer")["id"].as_u64().unwrap();

    talk.ends("u", "completed");
    assert!(!talk.is_finished(), "who said it is owed an answer");
    talk.refuses(id, "no active turn to steer");

    assert_eq!(talk.says("turn/start")["params"]["input"][0]["text"], "Left.");
    talk.ends("v", "completed");
    assert_eq!(talk.end(), SessionEnd::Completed);
}

#[test]
fn what_arrived_at_the_last_moment_ends_with_its_turn() {
    let mut talk = Talk::working();
    talk.reader.say("Left.");
    let id = talk.says("turn/steer")["id"].as_u64().unwrap();

    talk.ends("u", "completed");
    talk.answers(id, json!({ "turnId": "u" }));

    assert!(talk.is_finished() && talk.words().is_empty());
}

#[test]
fn what_a_failed_turn_did_not_hear_is_not_asked() {
    let mut talk = Talk::working();
    talk.reader.say("Left.");
    let id = talk.says("turn/steer")["id"].as_u64().unwrap();

    talk.refuses(id, "this turn hears nothing");
    talk.ends("u", "failed");

    assert!(talk.words().is_empty());
    assert!(matches!(talk.end(), SessionEnd::Crashed { .. }));
}

#[test]
fn a_conversation_that_goes_on_pays_for_what_comes_after_what_it_says_it_had_used() {
    let going_on = Opening { resume: Some("t".to_owned()), used_before: Usage { output: 1, ..Usage::default() }, ..Opening::default() };
    let mut talk = Talk::of(&going_on);
    talk.words();
    talk.answers(2, json!({ "thread": { "id": "t" }, "model": "m" }));
    talk.words();
    talk.answers(3, json!({ "turn": { "id": "u" } }));

    talk.uses("t", "an-earlier-turn", 100);
    talk.uses("t", "u", 130);

    let (_, report) = close(talk.events, false);
    assert_eq!((report.turns, report.spent[0].usage.output), (1, 30));
}

#[test]
fn an_agent_that_was_set_to_work_says_nothing_here_and_is_paid() {
    let mut talk = Talk::working();
    let said = json!({ "threadId": "child", "item": { "type": "agentMessage", "id": "1", "text": "Child." } });

    let told = talk.hears("item/completed", said);
    talk.hears("turn/completed", json!({ "threadId": "child", "turn": { "id": "w", "status": "completed" } }));
    talk.uses("child", "w", 7);

    assert_eq!((told, talk.is_finished()), (vec![AgentEvent::Working], false));
    let (_, report) = close(talk.events, false);
    assert_eq!((report.turns, report.spent[0].usage.output, report.claim), (0, 7, None));
}

#[test]
fn another_model_that_takes_over_has_its_own_price() {
    let mut talk = Talk::working();
    talk.uses("t", "u", 10);

    talk.tells("model/rerouted", json!({ "turnId": "u", "fromModel": "gpt-5.5", "toModel": "gpt-5.4" }));
    talk.uses("t", "u", 15);

    let (_, report) = close(talk.events, false);
    let models: Vec<_> = report.spent.iter().map(|spending| (spending.model.as_str(), spending.usage.output)).collect();
    assert_eq!(models, [("gpt-5.5", 10), ("gpt-5.4", 5)]);
}

#[test]
fn what_is_asked_of_us_is_declined_where_there_is_a_box() {
    let mut talk = Talk::working();
    let asked = |id: &Value, method: &str| json!({ "id": id, "method": method, "params": {} });

    let known = talk.read(&asked(&json!("a"), "item/commandExecution/requestApproval"));
    let unknown = talk.read(&asked(&json!(1), "attestation/generate"));

    assert_eq!((known, unknown), (vec![AgentEvent::Working], vec![AgentEvent::Unknown("attestation/generate".to_owned())]));
    let words = talk.words();
    assert_eq!(words[0], json!({ "id": "a", "result": { "decision": "decline" } }));
    assert_eq!((&words[1]["id"], &words[1]["error"]["code"]), (&json!(1), &json!(-32601)));
}

#[test]
fn lines_of_an_unknown_kind_and_broken_ones_are_told_apart() {
    let unknown = |kind: &str| vec![AgentEvent::Unknown(kind.to_owned())];
    let mut talk = Talk::working();

    assert_eq!(talk.tells("brand/new", json!({})), unknown("brand/new"));
    assert_eq!(talk.tells("item/completed", json!({ "item": { "type": "brandNew", "id": "1" } })), unknown("item/completed"));
    assert_eq!(talk.ends("u", "bored"), unknown("turn/completed"));
    assert_eq!(talk.read(&json!({ "level": "info" })), unknown("no message of the protocol"));
    assert_eq!(talk.answers(1, json!({})), unknown("an answer to nothing that was asked"));
    assert_eq!(talk.read(&json!("starting up")), [AgentEvent::Garbage]);
}
