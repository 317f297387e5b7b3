//! Sessions with agents that do what no recorded one did.

use proctor_domain::session::{AgentReport, SessionEnd};
use proctor_engine::agent::{Access, AgentEvent, EngineKind, Opening, Permission, Reader, engine};
use proctor_engine::tools::ToolServer;
use serde_json::{Value, json};

use super::recording::{close, words};
use super::schema::{Protocol, Side};

/// A reader, and what came of it so far. What both sides say is held against the protocol, but for what is odd.
struct Talk {
    reader: Box<dyn Reader>,
    protocol: Protocol,
    events: Vec<AgentEvent>,
}

fn opening() -> Opening {
    Opening {
        prompt: "Do it.".to_owned(),
        directory: "/home/dev/task".into(),
        access: Access::Full,
        permission: Permission::Bypass,
        ..Opening::default()
    }
}

fn going_on() -> Opening {
    Opening { resume: Some("s-1".to_owned()), ..opening() }
}

/// The capabilities of an agent that has them all.
fn able() -> Value {
    json!({ "protocolVersion": 1, "agentCapabilities": { "loadSession": true, "sessionCapabilities": { "resume": {} } } })
}

impl Talk {
    fn of(opening: &Opening) -> Self {
        Self { reader: engine(EngineKind::Acp).reader(opening), protocol: Protocol::new(), events: Vec::new() }
    }

    /// One that has come to its prompt.
    fn prompted() -> Self {
        Self::prompted_for(&opening())
    }

    fn prompted_for(opening: &Opening) -> Self {
        let mut talk = Self::of(opening);
        talk.says();
        talk.answers(1, able());
        talk.says();
        talk.answers(2, json!({ "sessionId": "s-1" }));
        assert_eq!(talk.says()[0]["method"], "session/prompt");
        talk
    }

    fn hears_bytes(&mut self, line: &[u8]) -> Vec<AgentEvent> {
        let before = self.events.len();
        self.reader.read(line, &mut self.events);
        self.events[before..].to_vec()
    }

    fn hears(&mut self, message: &Value) -> Vec<AgentEvent> {
        self.protocol.check(Side::Agent, message);
        self.hears_bytes(message.to_string().as_bytes())
    }

    /// Of an agent that does not keep to the protocol.
    fn hears_odd(&mut self, message: &Value) -> Vec<AgentEvent> {
        self.protocol.note(Side::Agent, message);
        self.hears_bytes(message.to_string().as_bytes())
    }

    fn answers_oddly(&mut self, id: u64, result: Value) -> Vec<AgentEvent> {
        self.hears_odd(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }

    fn answers(&mut self, id: u64, result: Value) -> Vec<AgentEvent> {
        self.hears(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }

    fn fails(&mut self, id: u64, code: i64, message: &str) -> Vec<AgentEvent> {
        self.hears(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }))
    }

    fn asks(&mut self, id: Value, method: &str, params: Value) -> Vec<AgentEvent> {
        self.hears(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
    }

    fn updates(&mut self, session: &str, update: Value) -> Vec<AgentEvent> {
        self.hears(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": session, "update": update } }))
    }

    fn chunk(&mut self, session: &str, text: &str) -> Vec<AgentEvent> {
        self.updates(session, json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } }))
    }

    /// What is said next.
    fn says(&mut self) -> Vec<Value> {
        let words = words(self.reader.as_mut());
        words.iter().for_each(|message| self.protocol.check(Side::Client, message));
        words
    }

    fn end(self) -> (SessionEnd, AgentReport) {
        close(self.events)
    }

    fn crash(self) -> String {
        match self.end() {
            (SessionEnd::Crashed { reason }, report) if !report.responded => reason,
            other => panic!("{other:?}"),
        }
    }
}

fn permission(session: &str, kind: &str) -> Value {
    json!({
        "sessionId": session,
        "toolCall": { "toolCallId": "t", "kind": kind, "title": "Do" },
        "options": [{ "optionId": "yes", "name": "Yes", "kind": "allow_once" }, { "optionId": "no", "name": "No", "kind": "reject_once" }],
    })
}

#[test]
fn a_version_that_is_not_spoken_is_found_at_the_start() {
    for (version, told) in [(json!(2), "version 2"), (json!("x"), "no version"), (Value::Null, "no version")] {
        let mut talk = Talk::of(&opening());
        talk.says();

        talk.answers_oddly(1, json!({ "protocolVersion": version }));

        assert_eq!(talk.says(), [Value::Null; 0]);
        assert!(talk.crash().contains(told));
    }
}

#[test]
fn one_that_cannot_go_on_says_so_before_anything_is_begun() {
    let mut talk = Talk::of(&going_on());
    talk.says();

    talk.answers(1, json!({ "protocolVersion": 1, "agentCapabilities": { "sessionCapabilities": { "resume": null } } }));

    assert_eq!(talk.says(), [Value::Null; 0]);
    assert!(talk.crash().contains("neither `session/resume` nor `session/load`"));
}

#[test]
fn a_conversation_is_gone_on_with_in_the_best_way_that_there_is() {
    let way = |capabilities: Value| {
        let mut talk = Talk::of(&going_on());
        talk.says();
        talk.answers_oddly(1, json!({ "protocolVersion": 1, "agentCapabilities": capabilities }));
        let words = talk.says();
        assert_eq!(words[0]["params"]["sessionId"], "s-1");
        words[0]["method"].as_str().unwrap().to_owned()
    };

    assert_eq!(way(json!({ "loadSession": true, "sessionCapabilities": { "resume": {} } })), "session/resume");
    assert_eq!(way(json!({ "loadSession": true, "sessionCapabilities": 7 })), "session/load");
}

#[test]
fn mode_and_model_are_set_one_after_the_other_before_the_prompt() {
    let mut talk = Talk::of(&Opening { model: Some("m2".to_owned()), ..opening() });
    talk.says();
    talk.answers(1, able());
    talk.says();
    let modes = json!({ "currentModeId": "default", "availableModes": [{ "id": "default", "name": "D" }, { "id": "yolo", "name": "Y" }] });
    let models = json!({ "currentModelId": "m1", "availableModels": [{ "modelId": "m1", "name": "1" }, { "modelId": "m2", "name": "2" }] });

    talk.answers(2, json!({ "sessionId": "s-1", "modes": modes, "models": models }));
    let first = talk.says();
    talk.fails(3, -32603, "not as root");
    let second = talk.says();
    talk.answers_oddly(4, Value::Null);
    let third = talk.says();

    let told = |words: &[Value], key: &str| (words.len(), words[0]["method"].clone(), words[0]["params"][key].clone());
    assert_eq!(told(&first, "modeId"), (1, json!("session/set_mode"), json!("yolo")));
    assert_eq!(told(&second, "modelId"), (1, json!("session/set_model"), json!("m2")));
    assert_eq!(told(&third, "sessionId"), (1, json!("session/prompt"), json!("s-1")));
    assert_eq!(talk.end().1.model.as_deref(), Some("m2"));
}

#[test]
fn a_login_that_is_needed_names_the_ways_that_the_agent_offers() {
    let mut talk = Talk::of(&opening());
    talk.says();
    talk.answers_oddly(1, json!({ "protocolVersion": 1, "authMethods": [{ "id": "key", "name": "API key" }, 7] }));
    talk.says();

    talk.fails(2, -32000, "Authentication required");

    let (end, report) = talk.end();
    assert_eq!(end, SessionEnd::Refused);
    assert!(report.error.unwrap().contains("API key (`key`)"));
}

#[test]
fn answers_to_nothing_that_was_asked_change_nothing() {
    let mut talk = Talk::of(&opening());
    talk.says();
    let done = json!({ "stopReason": "end_turn" });

    for id in [0, 2, 3, 5, 6, u64::MAX] {
        assert!(matches!(talk.answers_oddly(id, done.clone())[..], [AgentEvent::Unknown(_)]), "{id}");
    }
    for id in [json!("1"), json!(-1), json!(1.5), json!([1]), Value::Null] {
        talk.hears_odd(&json!({ "jsonrpc": "2.0", "id": id, "result": done }));
    }

    assert_eq!(talk.says(), [Value::Null; 0]);
    assert!(matches!(talk.end().0, SessionEnd::Crashed { .. }));
}

#[test]
fn what_was_said_before_or_by_another_session_is_no_word_of_this_one() {
    let mut talk = Talk::of(&going_on());
    talk.says();
    talk.answers(1, json!({ "protocolVersion": 1, "agentCapabilities": { "loadSession": true } }));
    talk.says();

    talk.chunk("s-1", "Of old.");
    talk.updates("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "Old", "status": "completed" }));
    talk.updates("s-1", json!({ "sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": { "amount": 1.0, "currency": "USD" } }));
    talk.answers_oddly(2, Value::Null);
    talk.says();
    talk.chunk("s-2", "Of another.");
    talk.chunk("s-1", "Of now.");
    talk.updates("s-1", json!({ "sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": { "amount": 1.5, "currency": "USD" } }));
    talk.answers(5, json!({ "stopReason": "end_turn" }));

    let texts: Vec<_> = talk.events.iter().filter(|event| matches!(event, AgentEvent::Text(_) | AgentEvent::ToolCall { .. })).collect();
    assert_eq!(texts, [&AgentEvent::Text("Of now.".to_owned())]);
    let (end, report) = talk.end();
    assert_eq!((end, report.turns, report.conversation.as_deref()), (SessionEnd::Completed, 1, Some("s-1")));
    assert_eq!(report.cost().known().map(|cost| cost.0), Some(500_000));
}

#[test]
fn what_the_agents_program_says_of_its_mode_is_no_word_of_the_model() {
    let mut talk = Talk::prompted();

    talk.chunk("s-1", "[MODE_UPDATE] yolo");
    talk.chunk("s-1", "It is done.");
    talk.answers(5, json!({ "stopReason": "end_turn" }));

    assert_eq!(talk.end().1.claim.as_deref(), Some("It is done."));
}

#[test]
fn a_question_is_answered_by_what_the_session_may_do_whoever_asks() {
    let answer = |opening: &Opening, kind: &str| {
        let mut talk = Talk::prompted_for(opening);
        talk.asks(json!("q"), "session/request_permission", permission("s-1", kind));
        let words = talk.says();
        words[0]["result"]["outcome"]["optionId"].as_str().unwrap().to_owned()
    };
    let looking = Opening { access: Access::ReadOnly, ..opening() };
    let asking = Opening { permission: Permission::Ask, ..opening() };

    assert_eq!([answer(&looking, "read"), answer(&looking, "execute"), answer(&looking, "fetch")], ["yes", "no", "no"]);
    assert_eq!([answer(&asking, "search"), answer(&asking, "edit")], ["yes", "no"]);
    assert_eq!([answer(&opening(), "edit"), answer(&opening(), "other")], ["yes", "yes"]);
}

#[test]
fn a_question_without_a_kind_is_one_about_the_call_that_was_told_of() {
    let mut talk = Talk::prompted_for(&Opening { access: Access::ReadOnly, ..opening() });
    talk.updates("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "Look", "kind": "read", "status": "pending" }));
    let mut question = permission("s-1", "read");
    question["toolCall"] = json!({ "toolCallId": "t" });

    talk.asks(json!(0), "session/request_permission", question.clone());
    let known = talk.says();
    question["toolCall"]["toolCallId"] = json!("another");
    talk.asks(json!(1), "session/request_permission", question);

    assert_eq!(known[0]["result"]["outcome"]["optionId"], "yes");
    assert_eq!(talk.says()[0]["result"]["outcome"]["optionId"], "no");
}

#[test]
fn the_sessions_tools_are_a_server_that_needs_no_leave() {
    let tools = ToolServer::of("/bin/proctor".as_ref(), "/s".as_ref());
    let with = Opening { tools, access: Access::ReadOnly, ..opening() };
    let mut talk = Talk::of(&with);
    talk.says();
    talk.answers(1, able());
    let server = talk.says()[0]["params"]["mcpServers"][0].clone();
    let leave = |opening: &Opening| {
        let mut talk = Talk::prompted_for(opening);
        talk.updates("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "proctor_note", "kind": "other" }));
        let mut question = permission("s-1", "other");
        question["toolCall"] = json!({ "toolCallId": "t" });
        talk.asks(json!(0), "session/request_permission", question);
        talk.says()[0]["result"]["outcome"]["optionId"].as_str().unwrap().to_owned()
    };

    assert_eq!((&server["name"], &server["command"]), (&json!("proctor"), &json!("/bin/proctor")));
    assert_eq!([leave(&with), leave(&Opening { tools: None, ..with.clone() })], ["yes", "no"]);
}

#[test]
fn a_question_outside_of_the_work_is_answered_as_cancelled() {
    let mut early = Talk::of(&opening());
    early.says();
    let mut broken_off = Talk::prompted();
    assert!(broken_off.reader.interrupt());
    broken_off.says();

    for talk in [&mut early, &mut broken_off] {
        talk.asks(json!(7), "session/request_permission", permission("s-1", "read"));
        assert_eq!(talk.says()[0]["result"]["outcome"]["outcome"], "cancelled");
    }
}

#[test]
fn what_is_not_served_is_refused_and_what_is_not_known_is_counted_too() {
    let mut talk = Talk::prompted();
    let asked = [
        ("fs/read_text_file", json!({ "sessionId": "s-1", "path": "/etc/passwd" }), -32601, 0),
        ("terminal/create", json!({ "sessionId": "s-1", "command": "sh" }), -32601, 0),
        ("_own/thing", json!({}), -32601, 0),
        ("session/invented", Value::Null, -32601, 1),
        ("session/request_permission", json!([]), -32602, 1),
    ];
    let mut counted = 0;
    for (position, (method, params, code, unknown)) in asked.into_iter().enumerate() {
        let id = json!(format!("id {position}"));
        let events = talk.hears_odd(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let words = talk.says();

        assert_eq!((words.len(), &words[0]["id"], &words[0]["error"]["code"]), (1, &id, &json!(code)), "{method}");
        assert_eq!(events.iter().filter(|event| matches!(event, AgentEvent::Unknown(_))).count(), unknown, "{method}");
        counted += u64::try_from(unknown).unwrap();
    }
    talk.hears_odd(&json!({ "jsonrpc": "2.0", "method": "invented" }));
    let invented = json!({ "sessionId": "s-1", "update": { "sessionUpdate": "invented" } });
    talk.hears_odd(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": invented }));
    talk.hears_odd(&json!({ "level": "info" }));
    talk.hears_bytes(b"Starting up.");

    assert_eq!(talk.says(), [Value::Null; 0]);
    assert_eq!(talk.end().1.unknown_lines, counted + 3);
}

#[test]
fn a_further_word_waits_for_the_answer_to_the_one_before() {
    let mut talk = Talk::prompted();

    assert!(talk.reader.say("/really"));
    assert_eq!(talk.says(), [Value::Null; 0]);
    talk.chunk("s-1", "One.");
    talk.answers(5, json!({ "stopReason": "end_turn", "usage": { "inputTokens": 1, "outputTokens": 2, "totalTokens": 3 } }));
    let second = talk.says();
    talk.chunk("s-1", "Two.");
    talk.answers(6, json!({ "stopReason": "end_turn", "usage": { "inputTokens": 10, "outputTokens": 20, "totalTokens": 30 } }));
    assert!(talk.reader.say("And now?"));
    let third = talk.says();
    talk.chunk("s-1", "Three.");
    talk.answers(7, json!({ "stopReason": "end_turn" }));

    assert_eq!((&second[0]["id"], second[0]["params"]["prompt"][1]["text"].as_str()), (&json!(6), Some("/really")));
    assert_eq!((&third[0]["id"], third[0]["params"]["prompt"][0]["text"].as_str()), (&json!(7), Some("And now?")));
    let finished = talk.events.iter().filter(|event| matches!(event, AgentEvent::Finished(_))).count();
    let (end, report) = talk.end();
    assert_eq!((finished, end, report.turns, report.claim.as_deref()), (2, SessionEnd::Completed, 3, Some("Three.")));
    assert_eq!((report.spent[0].usage.input, report.spent[0].usage.output), (11, 22));
}

#[test]
fn one_that_is_over_is_told_nothing_more() {
    let mut failed = Talk::prompted();
    failed.fails(5, -32603, "no disk");
    let mut starting = Talk::of(&opening());

    assert!(!failed.reader.say("Go on.") && !failed.reader.interrupt() && !starting.reader.interrupt());
    assert_eq!(failed.says(), [Value::Null; 0]);
}

#[test]
fn one_that_fails_when_it_is_broken_off_is_interrupted() {
    let mut talk = Talk::prompted();
    talk.chunk("s-1", "Half");
    assert!(talk.reader.interrupt() && !talk.reader.interrupt() && !talk.reader.say("More."));

    assert_eq!(talk.says()[0]["method"], "session/cancel");
    talk.fails(5, -32800, "Request cancelled");

    let (end, report) = talk.end();
    assert_eq!((end, report.claim.as_deref()), (SessionEnd::Interrupted, Some("Half")));
}

#[test]
fn every_reason_to_stop_has_its_end() {
    let ended = |reason: &str| {
        let mut talk = Talk::prompted();
        talk.chunk("s-1", "Words.");
        talk.answers_oddly(5, json!({ "stopReason": reason }));
        talk.end().0
    };

    assert_eq!(
        [ended("end_turn"), ended("max_turn_requests"), ended("refusal"), ended("cancelled")],
        [SessionEnd::Completed, SessionEnd::TurnLimit, SessionEnd::Refused, SessionEnd::Interrupted]
    );
    assert!(matches!(ended("max_tokens"), SessionEnd::Crashed { .. }) && matches!(ended(""), SessionEnd::Crashed { .. }));
}
