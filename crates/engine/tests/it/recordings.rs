//! Recordings of real agents, and what every reader owes of its own: each line is known, and half of one says nothing.

use std::path::Path;

use proctor_domain::session::{AgentReport, SessionEnd, Told};
use proctor_engine::agent::{Account, AgentEvent, EngineKind, Opening, engine};

/// The recordings of one engine.
pub(crate) struct Recordings {
    pub(crate) kind: EngineKind,
    /// The model that answers in them.
    pub(crate) model: &'static str,
}

impl Recordings {
    /// All of them, by name.
    pub(crate) fn all(&self) -> Vec<(String, String)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(self.kind.name());
        let mut found: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
        found.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
        found.sort();
        found.iter().map(|path| (path.file_stem().unwrap().display().to_string(), std::fs::read_to_string(path).unwrap())).collect()
    }

    pub(crate) fn one(&self, name: &str) -> String {
        self.all().into_iter().find(|(found, _)| found == name).unwrap().1
    }

    /// Every line of all of them.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.all().into_iter().flat_map(|(_, text)| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    pub(crate) fn events(&self, opening: &Opening, bytes: &[u8]) -> Vec<AgentEvent> {
        let mut reader = engine(self.kind).reader(opening);
        let mut events = Vec::new();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            reader.read(line, &mut events);
        }
        events
    }

    pub(crate) fn close(&self, opening: &Opening, bytes: &[u8], exit_code: i32, owes_result: bool) -> (SessionEnd, AgentReport) {
        let mut account = Account::new(self.kind.engine_name());
        for event in self.events(opening, bytes) {
            account.add(event);
        }
        account.close(Some(exit_code), owes_result)
    }

    /// What a session comes to in which the model answered nothing.
    pub(crate) fn unanswered(&self, error: Option<&str>) -> AgentReport {
        AgentReport {
            engine: self.kind.engine_name(),
            conversation: None,
            model: Some(self.model.to_owned()),
            responded: false,
            turns: 0,
            spent: Vec::new(),
            claim: None,
            result: None,
            error: error.map(str::to_owned),
            unknown_lines: 0,
            told: Told::default(),
        }
    }

    pub(crate) fn check_that_every_line_is_known(&self, opening: &Opening) {
        for (name, text) in self.all() {
            let strange = |event: &&AgentEvent| matches!(event, AgentEvent::Unknown(_) | AgentEvent::Garbage);

            assert_eq!(self.events(opening, text.as_bytes()).iter().find(strange), None, "{name}");
        }
    }

    /// A killed session leaves any prefix. Half a line must not change what the lines before it said.
    pub(crate) fn check_that_half_a_line_says_nothing(&self, opening: &Opening) {
        for (name, text) in self.all() {
            let mut reader = engine(self.kind).reader(opening);
            for line in text.lines() {
                for cut in 1..line.len() {
                    let mut events = Vec::new();
                    reader.read(&line.as_bytes()[..cut], &mut events);
                    assert_eq!(events, [AgentEvent::Garbage], "{name} at byte {cut} of {line}");
                }
                reader.read(line.as_bytes(), &mut Vec::new());
            }
        }
    }
}
