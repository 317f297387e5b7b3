//! What version 2 of the protocol makes of what is said here. Version 1 is what is spoken; this shows what would have to be
//! said in another way, and that an agent that has only version 2 is told apart.

use std::collections::BTreeMap;

use proctor_domain::session::SessionEnd;
use proctor_engine::agent::{EngineKind, Opening, engine};
use serde_json::{Value, json};

use super::recording::{Recording, close, words};
use super::schema::{Protocol, Side};

/// How version 2 takes a message of version 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Taken {
    AsItIs,
    InAnotherForm,
    NotAtAll,
}

fn second() -> Protocol {
    Protocol::of("schema-v2.json")
}

#[test]
fn of_what_is_asked_in_version_1_some_is_asked_in_another_way_in_version_2_and_some_not_at_all() {
    let mut second = second();
    let mut taken = BTreeMap::new();
    for said in Recording::all().iter().flat_map(|recording| &recording.lines).filter(|said| said.from == Side::Client) {
        let Some(method) = said.message["method"].as_str() else { continue };
        let how = match second.wrong_asked(Side::Client, &said.message) {
            None => Taken::NotAtAll,
            Some(wrong) if wrong.is_empty() => Taken::AsItIs,
            Some(_) => Taken::InAnotherForm,
        };
        let before = taken.entry(method.to_owned()).or_insert(how);
        *before = how.max(*before);
    }

    let expected = [
        ("initialize", Taken::InAnotherForm),
        ("session/cancel", Taken::AsItIs),
        ("session/load", Taken::NotAtAll),
        ("session/new", Taken::AsItIs),
        ("session/prompt", Taken::AsItIs),
        ("session/resume", Taken::AsItIs),
        ("session/set_config_option", Taken::InAnotherForm),
        ("session/set_mode", Taken::NotAtAll),
    ];
    assert_eq!(taken, expected.into_iter().map(|(method, how)| (method.to_owned(), how)).collect());
}

#[test]
fn files_and_terminals_are_no_affair_of_a_client_in_version_2() {
    let mut second = second();

    for method in ["fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/output", "terminal/release"] {
        assert_eq!(second.wrong_asked(Side::Agent, &json!({ "id": 1, "method": method, "params": {} })), None, "{method}");
    }
}

#[test]
fn an_agent_that_has_only_version_2_ends_the_session_before_anything_is_asked() {
    let answer = json!({ "protocolVersion": 2, "info": { "name": "later", "version": "9" } });
    let refusal = json!({ "code": -32022, "message": "Unsupported protocol version" });
    assert_eq!((second().wrong("InitializeResponse", &answer), second().wrong("Error", &refusal)), (Vec::new(), Vec::new()));

    let ends = |key: &str, value: &Value| {
        let opening = Opening { directory: "/home/dev/task".into(), ..Opening::default() };
        let (mut reader, mut events) = (engine(EngineKind::Acp).reader(&opening), Vec::new());
        words(reader.as_mut());
        reader.read(json!({ "jsonrpc": "2.0", "id": 1, key: value }).to_string().as_bytes(), &mut events);
        assert_eq!(words(reader.as_mut()), [Value::Null; 0]);
        close(events).0
    };

    let reason = |end| if let SessionEnd::Crashed { reason } = end { reason } else { panic!("{end:?}") };
    assert!(reason(ends("result", &answer)).contains("the agent speaks version 2 of the Agent Client Protocol"));
    assert!(reason(ends("error", &refusal)).contains("Unsupported protocol version"));
}
