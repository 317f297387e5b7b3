//! Recorded sessions, and the reader playing its part in them again.

use std::path::Path;

use proctor_domain::Timestamp;
use proctor_domain::session::{AgentReport, SessionEnd};
use proctor_engine::agent::{Access, Account, AgentEvent, EngineKind, Opening, Permission, Reader, engine};
use serde_json::Value;

use super::schema::Side;

/// One line of a recording.
pub(super) struct Said {
    pub(super) from: Side,
    pub(super) message: Value,
}

/// One session.
pub(super) struct Recording {
    pub(super) name: String,
    pub(super) lines: Vec<Said>,
}

impl Recording {
    pub(super) fn all() -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/acp");
        let mut paths: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    pub(super) fn named(name: &str) -> Self {
        Self::all().into_iter().find(|recording| recording.name == name).unwrap()
    }

    fn read(path: &Path) -> Self {
        let said = |line: &str| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            let from = if line["from"] == "client" { Side::Client } else { Side::Agent };
            Said { from, message: line["message"].take() }
        };
        let text = std::fs::read_to_string(path).unwrap();
        Self { name: path.file_stem().unwrap().display().to_string(), lines: text.lines().map(said).collect() }
    }

    /// What the agent printed.
    pub(super) fn printed(&self) -> Vec<String> {
        self.lines.iter().filter(|said| said.from == Side::Agent).map(|said| said.message.to_string()).collect()
    }

    /// What this session began with.
    pub(super) fn opening(&self) -> Opening {
        let is = |case: &str| self.name.ends_with(case);
        let said = |methods: &[&str]| {
            self.lines.iter().map(|said| &said.message).find(|message| methods.iter().any(|it| message["method"] == *it))
        };
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let resume = said(&["session/resume", "session/load"]).map(|message| text(&message["params"]["sessionId"]));
        let prompt = said(&["session/prompt"]).map(|message| text(&message["params"]["prompt"][1]["text"]));
        Opening {
            system: "You are examined.".to_owned(),
            prompt: prompt.unwrap_or_default(),
            resume,
            model: [("thinking", "opus"), ("unknown-model", "nonsense")]
                .iter()
                .find(|(case, _)| is(case))
                .map(|(_, model)| (*model).to_owned()),
            access: if is("permission-refused") || is("read-only") { Access::ReadOnly } else { Access::Full },
            permission: Permission::Bypass,
            directory: "/home/dev/task".into(),
            begun: Some(Timestamp(1_796_080_000_000)),
            ..Opening::default()
        }
    }

    /// Plays the client again. It has to say what was said then, word by word.
    pub(super) fn play(&self) -> Vec<AgentEvent> {
        let mut reader = engine(EngineKind::Acp).reader(&self.opening());
        let (mut events, mut words) = (Vec::new(), words(reader.as_mut()));
        for said in &self.lines {
            match said.from {
                Side::Agent => reader.read(said.message.to_string().as_bytes(), &mut events),
                Side::Client => {
                    if said.message["method"] == "session/cancel" {
                        assert!(reader.interrupt(), "{}", self.name);
                        words.extend(self::words(reader.as_mut()));
                    }
                    assert!(!words.is_empty(), "{}: nothing is said, and {} was", self.name, said.message);
                    assert_eq!(dateless(words.remove(0)), dateless(said.message.clone()), "{}", self.name);
                }
            }
            words.extend(self::words(reader.as_mut()));
        }
        assert!(words.is_empty(), "{}: {words:?}", self.name);
        events
    }
}

/// The version is another one in each release.
fn dateless(mut message: Value) -> Value {
    if let Some(version) = message.pointer_mut("/params/clientInfo/version") {
        *version = Value::Null;
    }
    message
}

/// What the reader says now.
pub(super) fn words(reader: &mut dyn Reader) -> Vec<Value> {
    let words = String::from_utf8(reader.take_words()).unwrap();
    assert!(words.is_empty() || words.ends_with('\n'), "{words}");
    words.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What these lines mean to one that was not there when they were printed.
pub(super) fn replay(lines: &[String]) -> Vec<AgentEvent> {
    let (mut reader, mut events) = (engine(EngineKind::Acp).reader(&Opening::default()), Vec::new());
    for line in lines {
        reader.read(line.as_bytes(), &mut events);
    }
    assert_eq!(words(reader.as_mut()), [Value::Null; 0]);
    events
}

/// What a tool said, where that is what this event tells.
pub(super) fn result_text(event: &AgentEvent) -> Option<&str> {
    if let AgentEvent::ToolResult { text, .. } = event { Some(text) } else { None }
}

/// What this line means to one that is waiting for the answer to its prompt.
pub(super) fn read_at_work(line: &[u8]) -> Vec<AgentEvent> {
    let opening = Opening { directory: "/home/dev/task".into(), ..Opening::default() };
    let (mut reader, mut events) = (engine(EngineKind::Acp).reader(&opening), Vec::new());
    for line in [r#"{"id":1,"result":{"protocolVersion":1}}"#, r#"{"id":2,"result":{"sessionId":"s"}}"#] {
        reader.read(line.as_bytes(), &mut events);
    }
    events.clear();
    reader.read(line, &mut events);
    events
}

pub(super) fn close(events: Vec<AgentEvent>) -> (SessionEnd, AgentReport) {
    let mut account = Account::new(EngineKind::Acp.engine_name());
    for event in events {
        account.add(event);
    }
    account.close(Some(0), false)
}
