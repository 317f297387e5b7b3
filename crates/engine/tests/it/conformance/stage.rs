//! Where an engine plays: a working tree, what lets its program run, and a script that makes a case happen.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_domain::session::{SessionReport, Usage};
use proctor_engine::agent::{Access, AgentEvent, AgentTask, Capabilities, EngineKind, EngineSetup, Opening, Permission, engine};
use proctor_engine::tools::ToolServer;
use proctor_engine::{AgentPlace, AgentRun, Attached, SessionWork, TRANSCRIPT, agent_files};
use proctor_process::durable::{self, Durability};
use proctor_testkit::loopback;

use super::{acp, claude, codex, opencode, scripted};
use crate::acp::schema::Protocol;
use crate::world::{LIMIT, World, ended, host_program, wait, world};

/// What is to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    /// It answers `It is done.`, and when it goes on, `Going on.` What that costs is not known, unless its model has a price.
    Answers,
    /// It gives the result that is asked for.
    GivesResult,
    /// It gives a wrong one first.
    GivesWrongResultFirst,
    /// It gives a wrong one whenever it is asked.
    GivesWrongResultAlways,
    /// It works on and on, a tool a turn.
    NeverEnds,
    /// Its first turn costs more than two dollars.
    IsExpensive,
    /// Nobody is logged in.
    IsNotLoggedIn,
    /// The provider asks to wait, once and briefly.
    IsSlowedDownOnce,
    /// The provider asks to wait, each time.
    IsSlowedDown,
    /// The provider asks to wait for an hour.
    IsSlowedDownForLong,
    /// The provider is overloaded.
    IsOverloaded,
    /// The answer breaks off once.
    BreaksOffOnce,
    /// The answer breaks off each time.
    BreaksOff,
    /// The plan's quota is used up until [`RESET`].
    IsUsedUp,
    /// Its program stays when it is done.
    Stays,
    /// A tool writes its pid to the file `pid` and does not end; when the agent goes on, it says `Going on.`
    Works,
    /// A tool says that something is broken, and fails.
    Fails,
    /// A tool prints 20 MB.
    Floods,
    /// A tool leaves a process whose pid is in the file `far`.
    LeavesProcess,
    /// It tries to write the file `written` with all that it has.
    Writes,
    /// A tool prints [`SECRET`] and hands it on, and the agent repeats it.
    SaysSecret,
    /// It uses [`USAGE`] and says what that costs, where its model has a price.
    IsCounted,
    /// A tool writes its pid to the file `pid` and ends when the file `go` is there; then the agent repeats what it was told
    /// last.
    Hears,
    /// It keeps a note and submits its result, at first a wrong one, by the tools of its session, and ends with another.
    CallsSessionTools,
}

/// Seconds since 1970 at which a quota resets.
pub(crate) const RESET: i64 = 1_999_999_999;
/// What no file may hold.
pub(crate) const SECRET: &str = "hush-hush-4711";
/// Prints the secret to both streams and hands it on, and is not itself it.
pub(crate) const PRINT_SECRET: &str =
    "s=hush; printf '%s-%s-4711\\n' $s $s; printf '%s-%s-4711\\n' $s $s >&2; echo token=$s-$s-4711 >> \"$PROCTOR_OUTPUT\"";
/// Leaves a process in a session of its own.
pub(crate) const LEAVE: &str = "setsid sleep 1000 >/dev/null 2>&1 & echo $! > far";
/// Stands still until it may go on.
pub(crate) const STAND_BY: &str = "echo $$ > pid; until [ -e go ]; do sleep 0.02; done";
/// Fails.
pub(crate) const FAIL: &str = "echo 'it is broken' >&2; exit 3";
/// Prints 20 MB.
pub(crate) const FLOOD: &str = "yes 'what nobody reads' | head -c 20000000";
/// Stands still.
pub(crate) const STAND: &str = "echo $$ > pid; sleep 1000";

pub(crate) const SCHEMA: &str = r#"{"type":"object","required":["passed"],"properties":{"passed":{"type":"boolean"}}}"#;

pub(crate) struct Stage {
    kind: EngineKind,
    has_tools: bool,
    pub(crate) world: World,
    pub(crate) setup: EngineSetup,
    environment: Vec<(OsString, OsString)>,
    model: Option<proctor_testkit::Server>,
    /// What the session before used.
    used: Usage,
    silence_limit: Duration,
}

impl Stage {
    /// `None` when the engine's program is not here, which was said then.
    pub(crate) fn of(kind: EngineKind, case: Case) -> Option<Self> {
        let world = world(&[]);
        for name in ["home", "conversations", "tmp"] {
            std::fs::create_dir(world.path().join(name)).unwrap();
        }
        write(&world.path().join("home/.gitconfig"), "[user]\n\tname = Ann\n\temail = ann@example.com\n");
        let setup = EngineSetup { permission: Permission::Bypass, ..EngineSetup::usual(kind) };
        let mut stage = Self {
            kind,
            // Where there are tools of ours, what an agent of the protocol asks of files is served too.
            has_tools: kind == EngineKind::Acp || case == Case::CallsSessionTools,
            world,
            setup,
            environment: Vec::new(),
            model: None,
            used: Usage::default(),
            silence_limit: LIMIT,
        };
        stage.set("HOME", stage.world.path().join("home"));
        stage.set("TMPDIR", stage.world.path().join("tmp"));
        match kind {
            EngineKind::Claude => stage.prepare_claude(case)?,
            EngineKind::Codex => stage.prepare_codex(case)?,
            EngineKind::OpenCode => stage.prepare_opencode(case)?,
            EngineKind::Acp => stage.prepare_acp(case)?,
            // It has no conversation, no tools and no limits; its own tests say what it owes.
            EngineKind::Command => panic!("a program of the user's own plays no part here"),
            EngineKind::Scripted => stage.prepare_scripted(case),
        }
        Some(stage)
    }

    fn prepare_claude(&mut self, case: Case) -> Option<()> {
        let program = proctor_testkit::claude()?;
        // It leaves nothing of its own behind that could hold it up, so a program around it does.
        self.setup.program = if case == Case::Stays { self.staying(&program) } else { program };
        let model = loopback(&claude::script(case, &self.world.spec.directory));
        self.set("ANTHROPIC_BASE_URL", model.url());
        // The limits of a plan are for subscribers.
        self.set(if case == Case::IsUsedUp { "CLAUDE_CODE_OAUTH_TOKEN" } else { "ANTHROPIC_API_KEY" }, "dummy");
        self.model = Some(model);
        Some(())
    }

    /// The adapter of Claude Code runs in Node, and drives the program that it is told.
    fn prepare_acp(&mut self, case: Case) -> Option<()> {
        let (node, adapter) = proctor_testkit::claude_agent_acp()?;
        let claude = proctor_testkit::claude()?;
        self.setup.arguments = vec![adapter.display().to_string()];
        self.setup.program = if case == Case::Stays { self.staying(&node) } else { node };
        let model = loopback(&acp::script(case, &self.world.spec.directory));
        self.set("ANTHROPIC_BASE_URL", model.url());
        self.set(if case == Case::IsUsedUp { "CLAUDE_CODE_OAUTH_TOKEN" } else { "ANTHROPIC_API_KEY" }, "dummy");
        self.set("CLAUDE_CODE_EXECUTABLE", claude);
        for (name, value) in acp::QUIET {
            self.set(name, value);
        }
        self.model = Some(model);
        Some(())
    }

    fn prepare_codex(&mut self, case: Case) -> Option<()> {
        let program = proctor_testkit::codex()?;
        self.setup.program = if case == Case::Stays { self.staying(&program) } else { program };
        let model = loopback(&codex::script(case, &self.world.spec.directory));
        self.set("OPENAI_BASE_URL", format!("{}/v1", model.url()));
        self.set("CODEX_API_KEY", "dummy");
        self.model = Some(model);
        Some(())
    }

    fn prepare_opencode(&mut self, case: Case) -> Option<()> {
        let program = proctor_testkit::opencode()?;
        self.setup.program = if case == Case::Stays { self.staying(&program) } else { program };
        let model = loopback(&opencode::script(case, &self.world.spec.directory));
        let config = self.world.path().join("opencode.json");
        write(&config, &opencode::config(&model.url()));
        self.set("OPENCODE_CONFIG", config);
        self.model = Some(model);
        Some(())
    }

    fn prepare_scripted(&mut self, case: Case) {
        let script = self.world.path().join("agent.toml");
        write(&script, &scripted::script(case));
        self.setup.program = crate::scripted::agent_program();
        self.setup.script = Some(script);
    }

    fn staying(&self, program: &Path) -> PathBuf {
        let staying = self.world.path().join("staying");
        write(&staying, &format!("#!/bin/bash\n'{}' \"$@\"\nsleep 1000\n", program.display()));
        std::fs::set_permissions(&staying, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        staying
    }

    fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.environment.push((name.into(), value.into()));
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        engine(self.kind).capabilities()
    }

    /// Starts a further session.
    pub(crate) fn start(&mut self, task: &AgentTask) -> Attached {
        self.world.next(&[]);
        let mut files = agent_files(&self.world.spec.folder, &self.world.path().join("conversations"));
        files.tools = ToolServer::of(&host_program(), &self.world.spec.folder).filter(|_| self.has_tools);
        let variable = |name: &str| self.environment.iter().find(|(set, _)| set == name).map(|(_, value)| value.clone());
        engine(self.kind).prepare(&files, &variable).unwrap();
        self.world.spec.environment.truncate(3);
        self.world.spec.environment.extend(self.environment.iter().cloned());
        let place = AgentPlace { directory: &self.world.spec.directory, silence_limit: self.silence_limit };
        let mut run = AgentRun::new(&self.setup, task, &files, &variable, place);
        run.opening.used_before = self.used;
        self.world.spec.work = SessionWork::Agent(Box::new(run));
        self.world.start()
    }

    /// Claude Code with a model that follows this script, and settings of its own.
    pub(crate) fn claude(script: &str, set: impl FnOnce(&mut EngineSetup, &World)) -> Option<Self> {
        let mut stage = Self::of(EngineKind::Claude, Case::Answers)?;
        let model = loopback(script);
        stage.environment.retain(|(name, _)| name != "ANTHROPIC_BASE_URL");
        stage.set("ANTHROPIC_BASE_URL", model.url());
        stage.model = Some(model);
        set(&mut stage.setup, &stage.world);
        Some(stage)
    }

    /// How long it may be silent from now on.
    pub(crate) fn limit_silence(&mut self, limit: Duration) {
        self.silence_limit = limit;
    }

    /// From now on it has to ask before it does anything that may be refused.
    pub(crate) fn ask_first(&mut self) {
        self.setup.permission = Permission::Ask;
    }

    /// Puts a file into the working tree.
    pub(crate) fn put(&self, name: &str, text: &str) {
        write(&self.world.work(name), text);
    }

    /// What the transcript says.
    pub(crate) fn events(&self) -> Vec<AgentEvent> {
        let (mut reader, mut events) = (engine(self.kind).reader(&Opening::default()), Vec::new());
        self.transcript().lines().for_each(|line| reader.read(line.as_bytes(), &mut events));
        events
    }

    /// Runs a further session to its end.
    pub(crate) fn play(&mut self, task: &AgentTask) -> SessionReport {
        let report = ended(wait(&mut self.start(task)));
        if self.kind == EngineKind::Acp {
            Protocol::new().check_printed(&self.transcript(), task.resume.is_some());
        }
        // A stage has one conversation.
        if let Some(spending) = report.agent.as_ref().and_then(|agent| agent.spent.first()) {
            self.used = spending.usage;
        }
        report
    }

    pub(crate) fn transcript(&self) -> String {
        self.world.read(TRANSCRIPT)
    }

    /// Whether the last request to the model that offered it tools held this text; always, where there is no model to ask. What
    /// is asked on the side, such as a title, offers none and comes at any time.
    pub(crate) fn model_saw(&self, text: &str) -> bool {
        self.model.is_none() || self.work_requests().last().is_some_and(|body| body.contains(text))
    }

    /// How often the model was asked, where there is one to ask.
    pub(crate) fn asked(&self) -> usize {
        self.work_requests().len()
    }

    /// The requests that offered tools to the model.
    fn work_requests(&self) -> Vec<String> {
        let asks = |path: &str| ["/v1/messages", "/v1/chat/completions", "/v1/responses"].contains(&path);
        let requests = self.model.iter().flat_map(|model| model.requests());
        let work = requests.filter(|request| asks(&request.path) && request.body.contains(r#""tools":[{"#));
        work.map(|request| request.body).collect()
    }

    /// Whether a request to the model had this header.
    pub(crate) fn model_was_told(&self, header: &str) -> bool {
        self.model.iter().flat_map(|model| model.requests()).any(|request| request.headers.contains_key(header))
    }
}

pub(crate) fn task(prompt: &str) -> AgentTask {
    AgentTask {
        system: "You are examined.".to_owned(),
        prompt: prompt.to_owned(),
        resume: None,
        model: None,
        schema: None,
        max_turns: None,
        max_cost: None,
        access: Access::Full,
    }
}

pub(crate) fn write(path: &Path, text: &str) {
    durable::write(path, text.as_bytes(), Durability::Renamed).unwrap();
}
