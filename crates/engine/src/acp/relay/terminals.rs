//! The commands that an agent has run, by their ids.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Instant;

use proctor_process::{Program, ProgramError};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::speech;
use super::desk::{Refusal, Served, taken};
use super::failed;
use super::terminal::Terminal;
use crate::acp::Acp;
use crate::agent::Engine;
use crate::host::MARKER;

/// Commands that were not released. Each costs what is kept of its output.
const MOST: usize = 64;
/// Bytes kept of a command's output, where the agent does not ask for less.
const MOST_KEPT: usize = 1024 * 1024;
/// Questions after one command's end.
const MOST_WAITING: usize = 64;
/// Bytes of a command's output that the host is told of.
const TOLD: usize = 4 * 1024;

/// The parameters of `terminal/create`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Creating {
    command: String,
    args: Option<Vec<String>>,
    env: Option<Vec<Variable>>,
    cwd: Option<PathBuf>,
    output_byte_limit: Option<usize>,
}

#[derive(Debug, Deserialize)]
struct Variable {
    name: String,
    value: String,
}

/// The parameters of what is asked of a command.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Naming {
    terminal_id: String,
}

/// What there is to be said after a look.
#[derive(Default)]
pub(super) struct News {
    /// For the agent: to these requests.
    pub(super) answers: Vec<(Box<RawValue>, Result<Value, Refusal>)>,
    /// For the host.
    pub(super) notes: Vec<Value>,
}

/// The commands of a session.
pub(super) struct Terminals {
    environment: Vec<(OsString, OsString)>,
    marker: Vec<(OsString, OsString)>,
    open: BTreeMap<String, Terminal>,
    /// Those that were released before their end.
    released: Vec<Terminal>,
    count: u64,
}

impl Terminals {
    /// Commands get this environment, without the keys by which the agent's program speaks with its provider.
    pub(super) fn new(mut environment: Vec<(OsString, OsString)>) -> Self {
        let is_key = |name: &OsString| Acp.passed_variables().iter().any(|passed| name == passed && is_of_login(passed));
        environment.retain(|(name, _)| !is_key(name));
        let marker = environment.iter().filter(|(name, _)| name == MARKER).cloned().collect();
        Self { environment, marker, open: BTreeMap::new(), released: Vec::new(), count: 0 }
    }

    /// What to wait on.
    pub(super) fn sources(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.open.values().chain(&self.released).flat_map(Terminal::sources)
    }

    /// When to look again, whatever is heard.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.open.values().chain(&self.released).filter_map(Terminal::next_look).min()
    }

    /// Takes in what they printed and which of them have ended.
    pub(super) fn look(&mut self) -> News {
        let mut news = News::default();
        for (id, terminal) in &mut self.open {
            if terminal.look() {
                news.notes.push(speech::command_ended(id, &terminal.last_words(TOLD), &terminal.exit_status()));
                tell(terminal, &mut news);
            }
        }
        for terminal in &mut self.released {
            if terminal.look() {
                tell(terminal, &mut news);
            }
        }
        self.released.retain(|terminal| !terminal.has_ended());
        news
    }

    pub(super) fn create(&mut self, params: &str) -> Result<Value, Refusal> {
        let creating: Creating = taken(params)?;
        if self.open.len() + self.released.len() >= MOST {
            return Err(Refusal::failed(format!("failed to run `{}`: {MOST} commands are not released", creating.command)));
        }
        if creating.cwd.as_ref().is_some_and(|folder| !folder.is_absolute()) {
            return Err(Refusal::wrong(format!("failed to run `{}`: `cwd` is not absolute", creating.command)));
        }
        let limit = creating.output_byte_limit.unwrap_or(MOST_KEPT).min(MOST_KEPT);
        let by_name = Terminal::start(self.program(&creating.command, creating.args.as_deref().unwrap_or_default(), &creating), limit);
        let started = match by_name {
            Err(ProgramError::NotFound { .. }) if creating.is_line() => {
                let line = ["-c".to_owned(), creating.command.clone()];
                Terminal::start(self.program("bash", &line, &creating), limit)
            }
            by_name => by_name,
        };
        let terminal = started.map_err(|error| Refusal::failed(failed(&error)))?;
        self.count += 1;
        let id = format!("terminal-{}", self.count);
        self.open.insert(id.clone(), terminal);
        Ok(json!({ "terminalId": id }))
    }

    /// A program in the session's folder, or in another one. Whatever an agent says, it has the session's marker.
    fn program(&self, name: &str, arguments: &[String], creating: &Creating) -> Program {
        let folder = creating.cwd.as_ref().map_or(OsStr::new("."), |folder| folder.as_os_str());
        Program::new(name)
            .args(arguments)
            .dir(folder)
            .env(self.environment.iter().cloned())
            .env(creating.env.iter().flatten().map(|variable| (&variable.name, &variable.value)))
            .env(self.marker.iter().cloned())
    }

    pub(super) fn output(&mut self, params: &str) -> Result<Value, Refusal> {
        self.named(params).map(|(_, terminal)| terminal.output())
    }

    pub(super) fn kill(&mut self, params: &str) -> Result<Value, Refusal> {
        self.named(params).map(|(_, terminal)| {
            terminal.end();
            json!({})
        })
    }

    pub(super) fn release(&mut self, params: &str) -> Result<Value, Refusal> {
        let id = self.named(params)?.0;
        if let Some(mut terminal) = self.open.remove(&id).filter(|terminal| !terminal.has_ended()) {
            terminal.end();
            terminal.forget_output();
            self.released.push(terminal);
        }
        Ok(json!({}))
    }

    pub(super) fn wait_for_exit(&mut self, id: &RawValue, params: &str) -> Served {
        match self.named(params) {
            Ok((_, terminal)) if terminal.has_ended() => Served::Now(Ok(terminal.exit_status())),
            Ok((_, terminal)) if terminal.waiting.len() < MOST_WAITING => {
                terminal.waiting.push(id.to_owned());
                Served::Later
            }
            Ok((id, _)) => Served::Now(Err(Refusal::failed(format!("failed to wait for `{id}`: too many wait for it already")))),
            Err(refusal) => Served::Now(Err(refusal)),
        }
    }

    fn named(&mut self, params: &str) -> Result<(String, &mut Terminal), Refusal> {
        let Naming { terminal_id: id } = taken(params)?;
        match self.open.get_mut(&id) {
            Some(terminal) => Ok((id, terminal)),
            None => Err(Refusal::wrong(format!("there is no terminal `{id}`, or it was released"))),
        }
    }
}

impl Creating {
    /// Whether it can be meant as a line for a shell: there are agents that give the whole of it as the command's name.
    fn is_line(&self) -> bool {
        let is_of_name = |character: char| character.is_alphanumeric() || "_-+./".contains(character);
        self.args.as_ref().is_none_or(Vec::is_empty) && !self.command.chars().all(is_of_name)
    }
}

/// Whether this variable says by which key or token its holder speaks with a provider.
fn is_of_login(variable: &str) -> bool {
    variable.ends_with("_KEY") || variable.ends_with("_TOKEN")
}

fn tell(terminal: &mut Terminal, news: &mut News) {
    let waiting = std::mem::take(&mut terminal.waiting);
    news.answers.extend(waiting.into_iter().map(|id| (id, Ok(terminal.exit_status()))));
}
