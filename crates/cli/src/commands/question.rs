//! Asking the person at the terminal.

use std::io::{self, IsTerminal};

use proctor_process::{ProcessIdentity, family};

use super::CommandError;
use crate::Invocation;
use crate::environment;

/// What the person said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
}

/// Asks, with yes as the default. `flag` is what answers yes beforehand.
pub(super) fn confirm(invocation: &Invocation, question: &str, flag: &'static str) -> Result<Answer, CommandError> {
    if !io::stdin().is_terminal() {
        return Err(CommandError::NobodyToAsk { flag });
    }
    loop {
        invocation.printer.ask(&format!("{question} [Y/n] "));
        let mut line = String::new();
        let length = io::stdin().read_line(&mut line).map_err(CommandError::Answer)?;
        match line.trim().to_lowercase().as_str() {
            "" if length == 0 => return Ok(Answer::No),
            "" | "y" | "yes" => return Ok(Answer::Yes),
            "n" | "no" => return Ok(Answer::No),
            _ => {}
        }
    }
}

/// Refuses when a session is somewhere above this process: consent has to come from a person.
///
/// The own environment is asked first because it is cheap; a session that cleans the environment of what it starts
/// is still found among the ancestors.
pub(super) fn refuse_under_session(invocation: &Invocation) -> Result<(), CommandError> {
    let variable = &environment::SESSION;
    let marked = |ancestor: &ProcessIdentity| family::variable_of(ancestor, variable.name).is_some_and(|value| !value.is_empty());
    let under_session = invocation.environment.get(variable).is_some() || family::ancestors().iter().any(marked);
    if under_session { Err(CommandError::UnderSession) } else { Ok(()) }
}
