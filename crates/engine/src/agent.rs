//! The seam between Proctor and the programs that drive agents.
//!
//! An [`Engine`] knows how one program is called and what its lines mean. It starts nothing and reads no clock: the session
//! host runs the [`AgentCommand`], hands every line to the engine's [`Reader`], and an [`Account`] adds up what the
//! [`AgentEvent`]s come to. So a new engine is a table of arguments and a table of lines.

mod account;
mod arguments;
mod event;
mod kind;
mod models;
mod prices;
pub(crate) mod reset;
mod result;
pub(crate) mod rpc;
mod said;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use proctor_domain::session::{EngineName, Usage};
use proctor_domain::{MicroDollars, Timestamp};
use serde::{Deserialize, Serialize};

pub use account::Account;
pub(crate) use arguments::Arguments;
pub use event::{AgentEvent, Finish, PlanEntry, PlanState, Stop};
pub use kind::EngineKind;
pub use models::{ModelTable, TIERS, Tier};
pub(crate) use prices::list_cost;
pub use result::{ASKED_AT_MOST, ResultError, demand, demand_again, find_result, validate_result};
pub use said::read_said;
pub(crate) use said::said_line;

use crate::acp::Acp;
use crate::claude::Claude;
use crate::codex::Codex;
use crate::command::Command;
use crate::opencode::OpenCode;
use crate::scripted::Scripted;
use crate::tools::ToolServer;

/// What an agent is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentTask {
    /// What it is told once and for all.
    pub system: String,
    /// What it is asked.
    pub prompt: String,
    /// The conversation to go on with, by the engine's own id.
    pub resume: Option<String>,
    /// The model, as the engine calls it; `None` for the engine's own default.
    pub model: Option<String>,
    /// A JSON schema of the result that it owes.
    pub schema: Option<String>,
    /// Cap on its turns.
    pub max_turns: Option<u32>,
    /// Cap on what it may cost.
    pub max_cost: Option<MicroDollars>,
    /// What it may do.
    pub access: Access,
}

/// What an agent may do with the working tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Only look.
    #[default]
    ReadOnly,
    /// Change files and run commands.
    Full,
}

/// How one engine is to be used here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineSetup {
    /// What it is called.
    pub name: EngineName,
    /// Which it is.
    pub kind: EngineKind,
    /// Its program: a path, or a name that is looked up in `PATH`.
    pub program: PathBuf,
    /// The version of its program, where it is known.
    pub version: Option<String>,
    /// What the program is always given first; empty but for engines that the settings made up.
    pub arguments: Vec<String>,
    /// Variables that its sessions get beside those of the caller, which they stand over: they say whose account it is. A value
    /// that begins with `$` is that of the caller's variable of this name.
    pub environment: Vec<(String, String)>,
    /// Whether the user's own settings, memory and tools of this engine are taken in.
    pub inherit: bool,
    /// Whether it may act without asking. Inside a box it always may.
    pub permission: Permission,
    /// The script that the scripted engine follows.
    pub script: Option<PathBuf>,
    /// How hard its models are to think, in the engine's own words; only where it [can be told](Capabilities::effort).
    pub effort: Option<String>,
    /// The model that answers when the one that was asked for is not to be had; only where the engine
    /// [takes one](Capabilities::fallback_model).
    pub fallback_model: Option<String>,
    /// Servers of the Model Context Protocol by their names, as the engine is told of them; only where it
    /// [takes some](Capabilities::mcp_servers).
    pub servers: serde_json::Map<String, serde_json::Value>,
}

impl EngineSetup {
    /// What holds where the settings say nothing: the program of the engine's name.
    pub fn usual(kind: EngineKind) -> Self {
        Self {
            name: kind.engine_name(),
            kind,
            program: kind.name().into(),
            version: None,
            arguments: Vec::new(),
            environment: Vec::new(),
            inherit: false,
            permission: Permission::Ask,
            script: None,
            effort: None,
            fallback_model: None,
            servers: serde_json::Map::new(),
        }
    }
}

impl EngineSetup {
    /// A variable as the engine's sessions see it: what is set for them stands over what the caller has.
    pub fn variable(&self, name: &str, of_caller: &Variable<'_>) -> Option<OsString> {
        match self.environment.iter().find(|(set, _)| set == name) {
            Some((_, value)) => value.strip_prefix('$').map_or_else(|| Some(value.into()), of_caller),
            None if self.keeps_out(name) => None,
            None => of_caller(name),
        }
    }

    /// Whether the caller's variable of this name is kept out of sessions. Where the settings say by one of the engine's own
    /// variables whose account it is, the caller's others must not say that it is somebody else's.
    pub fn keeps_out(&self, name: &str) -> bool {
        let own = engine(self.kind).passed_variables();
        own.contains(&name) && self.environment.iter().any(|(set, _)| own.contains(&set.as_str()))
    }

    /// What is set for the engine's sessions and is to be taken from a variable that the caller does not have.
    pub fn missing_variable(&self, of_caller: &Variable<'_>) -> Option<&str> {
        self.environment.iter().filter_map(|(_, value)| value.strip_prefix('$')).find(|name| of_caller(name).is_none())
    }

    /// All that is set for the engine's sessions.
    pub fn variables(&self, of_caller: &Variable<'_>) -> Vec<(OsString, OsString)> {
        let set = |name: &String| Some((name.into(), self.variable(name, of_caller)?));
        self.environment.iter().filter_map(|(name, _)| set(name)).collect()
    }
}

/// Whether an agent may act without asking a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Permission {
    /// What the engine would ask about is refused.
    #[default]
    Ask,
    /// It asks about nothing.
    Bypass,
}

/// Files of a session that an engine's command line names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFiles {
    /// Holds [`AgentTask::system`].
    pub system: PathBuf,
    /// Holds [`AgentTask::prompt`]; it is also what the program reads.
    pub prompt: PathBuf,
    /// Where engines of ours keep their conversations; exists.
    pub conversations: PathBuf,
    /// A folder for files of the engine's own, which [`AgentCommand::files`] are put into.
    pub own: PathBuf,
    /// The server of the session's tools, where it has some.
    pub tools: Option<ToolServer>,
}

/// How an engine's program is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCommand {
    /// Program and arguments. The prompt comes by standard input, never here: an argument over 128 KiB fails.
    pub argv: Vec<OsString>,
    /// Variables that it gets whatever the caller has.
    pub environment: Vec<(OsString, OsString)>,
    /// Files that are there before it starts, by their names in [`AgentFiles::own`]; a slash leads into a folder there.
    pub files: Vec<(String, String)>,
    /// What it reads.
    pub input: Input,
}

/// What an engine's program reads from its standard input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Input {
    /// The prompt, and then the end.
    #[default]
    Prompt,
    /// What its [`Reader`] says to it.
    Spoken,
}

/// The caller's variables.
pub type Variable<'a> = dyn Fn(&str) -> Option<OsString> + 'a;

/// Stands for the conversation in a command that goes on with one that is not known yet.
pub const CONVERSATION: &str = "{conversation}";

/// What a session begins with, as far as its lines depend on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Opening {
    /// [`AgentTask::system`].
    pub system: String,
    /// [`AgentTask::prompt`].
    pub prompt: String,
    /// [`AgentTask::resume`].
    pub resume: Option<String>,
    /// [`AgentTask::model`].
    pub model: Option<String>,
    /// [`AgentTask::schema`].
    pub schema: Option<String>,
    /// [`AgentTask::access`].
    pub access: Access,
    /// Whether it may act without asking.
    pub permission: Permission,
    /// Where it works.
    pub directory: PathBuf,
    /// What its program reads: [`AgentCommand::input`].
    pub input: Input,
    /// A moment shortly before it: by it an engine's `at 3 PM` is a moment.
    pub begun: Option<Timestamp>,
    /// What earlier sessions of the conversation are known to have used: there are engines that count on from that.
    pub used_before: Usage,
    /// The server of the session's tools, where it has some: [`AgentFiles::tools`].
    pub tools: Option<ToolServer>,
    /// Whether it can tell what it learnt: it repairs what a check found wanting.
    pub hears_lessons: bool,
}

/// What an engine can do by itself. What it can't, Proctor does for it or says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "a record of abilities, each of which is there or not")]
pub struct Capabilities {
    /// Goes on with a conversation.
    pub resume: bool,
    /// Takes a schema for its result.
    pub structured_result: bool,
    /// Stops at a number of turns.
    pub turn_cap: bool,
    /// Stops at an amount of money.
    pub money_cap: bool,
    /// Can be held to a list of tools.
    pub tool_list: bool,
    /// Takes a system prompt apart from the prompt.
    pub system_prompt: bool,
    /// Says what a session cost.
    pub cost: bool,
    /// Hears what is said to it while it works.
    pub steering: bool,
    /// Takes a level of effort.
    pub effort: bool,
    /// Takes another model for when its own is not to be had.
    pub fallback_model: bool,
    /// Takes servers of the Model Context Protocol beside that of the session's tools.
    pub mcp_servers: bool,
}

/// One program that drives agents.
pub trait Engine {
    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// How its program is started for this task, given the caller's variables.
    fn command(&self, setup: &EngineSetup, task: &AgentTask, files: &AgentFiles, variable: &Variable<'_>) -> AgentCommand;

    /// Makes what its program has to find beside the user's own, before a session starts. May be asked for again at any time.
    ///
    /// # Errors
    /// It can't be made.
    fn prepare(&self, _files: &AgentFiles, _variable: &Variable<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Variables of the caller that its sessions get: names, and prefixes that end in `*`.
    fn passed_variables(&self) -> &'static [&'static str];

    /// Folders and files of its own that it must be able to write, given the caller's variables.
    fn writable(&self, variable: &Variable<'_>) -> Vec<PathBuf>;

    /// Its own folders, which have to be there before a box is made around it: what is not there can't be made writable, and
    /// a conversation that is kept inside a box is gone with it.
    fn folders(&self, variable: &Variable<'_>) -> Vec<PathBuf>;

    /// Reads what its program prints in a session that begins so. Of a session that is over, of which only the lines are
    /// left, nothing need be known.
    fn reader(&self, opening: &Opening) -> Box<dyn Reader>;

    /// The versions that it was tested with, first and last; `None` where it is no program that we know.
    fn tested(&self) -> Option<(&'static str, &'static str)>;

    /// The words for [`EngineSetup::effort`], where it takes one.
    fn efforts(&self) -> &'static [&'static str] {
        &[]
    }

    /// Options that its program has to know for this setup, and that a version of it may not: its `--help` lists them.
    fn wanted_options(&self, _setup: &EngineSetup) -> Vec<&'static str> {
        Vec::new()
    }

    /// What its `--version` prints, cut down to the version.
    fn version(&self, printed: &str) -> Option<String>;

    /// Whether somebody is logged in, where that can be known without a call.
    fn login(&self, home: &Path, variable: &Variable<'_>) -> Login;
}

/// Whether an engine can be expected to reach its provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// By this: `ANTHROPIC_API_KEY`, `claude.ai account`.
    By(String),
    /// Nobody is logged in.
    No,
    /// It needs none.
    NotNeeded,
    /// That can't be known without a call.
    Unknown,
}

/// Reads the lines that one session of an engine prints, and answers those that want an answer.
pub trait Reader {
    /// What this line means: nothing, one thing or several. A line is without its line feed; one that was too long was cut.
    fn read(&mut self, line: &[u8], events: &mut Vec<AgentEvent>);

    /// What it means that the program has ended with this exit code (`None` when that is not known). Nearly always nothing:
    /// an exit code alone proves nothing.
    fn close(&mut self, _exit_code: Option<i32>, _events: &mut Vec<AgentEvent>) {}

    /// What is to be written to the program next, in whole lines: the opening before anything was read, and then answers.
    /// Nothing for programs that read [`Input::Prompt`].
    fn take_words(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Asks the program to break off what it does; false where only a signal can do that. What it says then is to be read.
    fn interrupt(&mut self) -> bool {
        false
    }

    /// Gives the agent a further word while it works; false where nobody can.
    fn say(&mut self, _text: &str) -> bool {
        false
    }

    /// How lines begin that show only that it is alive, and are not kept; nothing where there are none.
    fn passing(&self) -> &'static [u8] {
        b""
    }
}

/// The engine of this kind.
pub fn engine(kind: EngineKind) -> &'static dyn Engine {
    match kind {
        EngineKind::Acp => &Acp,
        EngineKind::Claude => &Claude,
        EngineKind::Codex => &Codex,
        EngineKind::OpenCode => &OpenCode,
        EngineKind::Command => &Command,
        EngineKind::Scripted => &Scripted,
    }
}
