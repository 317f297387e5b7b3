//! A folder in which a scripted agent plays, and what it played.

use std::path::{Path, PathBuf};

use proctor_domain::session::{AgentReport, SessionEnd};
use proctor_engine::agent::{Access, Account, AgentEvent, AgentFiles, AgentTask, EngineKind, EngineSetup, Opening, Permission, engine};
use proctor_process::durable::{self, Durability};
use proctor_process::{Program, Stdin};

use crate::world::{LIMIT, path_variable};

pub(crate) struct Stage {
    folder: tempfile::TempDir,
    pub(crate) script: PathBuf,
}

/// What was seen of one agent.
pub(crate) struct Played {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) events: Vec<AgentEvent>,
    pub(crate) end: SessionEnd,
    pub(crate) report: AgentReport,
}

pub(crate) fn task(prompt: &str) -> AgentTask {
    AgentTask {
        system: "You are tested.".to_owned(),
        prompt: prompt.to_owned(),
        resume: None,
        model: None,
        schema: None,
        max_turns: None,
        max_cost: None,
        access: Access::Full,
    }
}

pub(crate) fn agent_program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().and_then(Path::parent).unwrap().join("examples/scripted_agent");
    assert!(program.exists(), "{} is built with the tests of this crate", program.display());
    program
}

impl Stage {
    pub(crate) fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["work", "home", "conversations"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let stage = Self { script: folder.path().join("agent.toml"), folder };
        stage.put("agent.toml", script);
        stage.put("system.md", "You are tested.");
        stage.put("home/.gitconfig", "[user]\n\tname = Ann\n\temail = ann@example.com\n");
        stage
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A path in the folder that the agent works in.
    pub(crate) fn work(&self, name: &str) -> PathBuf {
        self.path("work").join(name)
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        durable::write(&self.path(name), text.as_bytes(), Durability::Renamed).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// The agent as its engine starts it.
    pub(crate) fn program(&self, task: &AgentTask) -> Program {
        let setup = EngineSetup {
            program: agent_program(),
            permission: Permission::Bypass,
            script: Some(self.script.clone()),
            ..EngineSetup::usual(EngineKind::Scripted)
        };
        let files = AgentFiles {
            system: self.path("system.md"),
            prompt: self.path("prompt.md"),
            conversations: self.path("conversations"),
            own: self.path("own"),
            tools: None,
        };
        let command = engine(EngineKind::Scripted).command(&setup, task, &files, &|_| None);
        Program::new(&command.argv[0])
            .args(&command.argv[1..])
            .dir(self.path("work"))
            .env(command.environment)
            .env([("PATH", path_variable()), ("HOME", self.path("home").into()), ("GIT_CONFIG_NOSYSTEM", "1".into())])
            .stdin(Stdin::Bytes(format!("{}\n", serde_json::json!(task.prompt)).into_bytes()))
    }

    /// Runs the agent to its end.
    pub(crate) fn play(&self, task: &AgentTask) -> Played {
        let finished = self.program(task).run(Some(LIMIT)).unwrap();
        let stdout = String::from_utf8(finished.stdout).unwrap();
        let stderr = String::from_utf8(finished.stderr).unwrap();
        Played { stderr, ..Played::of(&stdout, finished.status.code, task.schema.is_some()) }
    }
}

impl Played {
    /// What these lines add up to.
    pub(crate) fn of(stdout: &str, code: Option<i32>, owes_result: bool) -> Self {
        let (mut reader, mut events) = (engine(EngineKind::Scripted).reader(&Opening::default()), Vec::new());
        for line in stdout.lines() {
            reader.read(line.as_bytes(), &mut events);
        }
        let mut account = Account::new(EngineKind::Scripted.engine_name());
        for event in &events {
            account.add(event.clone());
        }
        let (end, report) = account.close(code, owes_result);
        Self { code, stdout: stdout.to_owned(), stderr: String::new(), events, end, report }
    }

    /// Whether each tool failed, and what it said.
    pub(crate) fn tool_results(&self) -> Vec<(bool, String)> {
        let result = |event: &AgentEvent| {
            if let AgentEvent::ToolResult { failed, text, .. } = event { Some((*failed, text.clone())) } else { None }
        };
        self.events.iter().filter_map(result).collect()
    }
}
