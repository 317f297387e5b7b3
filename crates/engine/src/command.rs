//! Any program that takes a prompt and prints an answer.
//!
//! Nothing is known of it but that: the whole of what it prints is its answer, its exit code says whether it is one, and
//! it has no conversation to go on with. What it spends nobody says.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::agent::{
    AgentCommand, AgentEvent, AgentFiles, AgentTask, Capabilities, Engine, EngineSetup, Finish, Input, Login, Opening, Reader, Stop,
    Variable,
};

/// Bytes of an answer that are kept; its end is lost beyond that.
const LONGEST_ANSWER: usize = 1024 * 1024;

/// A program of the user's own.
pub(crate) struct Command;

impl Engine for Command {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            resume: false,
            structured_result: false,
            turn_cap: false,
            money_cap: false,
            tool_list: false,
            system_prompt: false,
            cost: false,
            steering: false,
            effort: false,
            fallback_model: false,
            mcp_servers: false,
        }
    }

    /// The model is told by a variable: a program that cares for it reads it there.
    fn command(&self, setup: &EngineSetup, task: &AgentTask, _files: &AgentFiles, _variable: &Variable<'_>) -> AgentCommand {
        let argv = std::iter::once(setup.program.clone().into()).chain(setup.arguments.iter().map(OsString::from));
        let model = task.model.iter().map(|model| ("PROCTOR_MODEL".into(), model.into()));
        AgentCommand { argv: argv.collect(), environment: model.collect(), files: Vec::new(), input: Input::Prompt }
    }

    fn passed_variables(&self) -> &'static [&'static str] {
        &[]
    }

    fn writable(&self, _variable: &Variable<'_>) -> Vec<PathBuf> {
        Vec::new()
    }

    fn folders(&self, _variable: &Variable<'_>) -> Vec<PathBuf> {
        Vec::new()
    }

    fn reader(&self, _opening: &Opening) -> Box<dyn Reader> {
        Box::new(CommandReader::default())
    }

    fn tested(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    fn version(&self, _printed: &str) -> Option<String> {
        None
    }

    fn login(&self, _home: &Path, _variable: &Variable<'_>) -> Login {
        Login::Unknown
    }
}

/// Takes every line for a part of the answer.
#[derive(Default)]
struct CommandReader {
    answer: String,
}

impl Reader for CommandReader {
    fn read(&mut self, line: &[u8], events: &mut Vec<AgentEvent>) {
        let line = String::from_utf8_lossy(line);
        if self.answer.is_empty() && line.trim().is_empty() {
            return events.push(AgentEvent::Nothing);
        }
        if self.answer.is_empty() {
            events.push(AgentEvent::Turn);
        }
        if self.answer.len() < LONGEST_ANSWER {
            self.answer.push_str(&line);
            self.answer.push('\n');
        }
        events.push(AgentEvent::Text(line.into_owned()));
    }

    fn close(&mut self, exit_code: Option<i32>, events: &mut Vec<AgentEvent>) {
        let answer = std::mem::take(&mut self.answer);
        let stop = match exit_code {
            Some(0) if answer.is_empty() => Stop::Failed("the program printed no answer".to_owned()),
            Some(0) => Stop::Done,
            Some(code) => Stop::Failed(format!("the program failed (exit {code})")),
            // It was ended, or nobody knows; whoever ended it says why.
            None => return,
        };
        let text = Some(answer.trim_end().to_owned()).filter(|text| !text.is_empty());
        events.push(AgentEvent::Finished(Box::new(Finish { stop, turns: None, spent: Vec::new(), text, result: None })));
    }
}

#[cfg(test)]
mod tests {
    use proctor_domain::session::{AgentReport, SessionEnd};

    use super::*;
    use crate::agent::{Account, EngineKind};

    fn played(lines: &[&[u8]], exit_code: Option<i32>) -> (SessionEnd, AgentReport) {
        let mut reader = CommandReader::default();
        let mut events = Vec::new();
        lines.iter().for_each(|line| reader.read(line, &mut events));
        reader.close(exit_code, &mut events);
        let mut account = Account::new(EngineKind::Command.engine_name());
        for event in events {
            account.add(event);
        }
        account.close(exit_code, false)
    }

    #[test]
    fn all_that_is_printed_is_the_answer() {
        let (end, report) = played(&[b"", b"It is", b"", b"done \xff."], Some(0));

        assert_eq!((end, report.claim.as_deref(), report.turns), (SessionEnd::Completed, Some("It is\n\ndone \u{fffd}."), 1));
    }

    #[test]
    fn an_exit_code_or_silence_is_a_failure() {
        let (failed, report) = played(&[b"half"], Some(3));
        let (silent, _) = played(&[], Some(0));

        assert_eq!((failed, report.responded), (SessionEnd::Crashed { reason: "the program failed (exit 3)".to_owned() }, true));
        assert_eq!(silent, SessionEnd::Crashed { reason: "the program printed no answer".to_owned() });
    }
}
