//! The process that plays an agent: it follows its script, prints lines, and keeps its conversation.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use proctor_domain::session::{Spending, Usage};
use proctor_domain::{Cost, MicroDollars};
use proctor_process::Signals;
use serde_json::Value;

use super::arguments::{self, Arguments};
use super::conversation::{Conversation, ConversationError, Place};
use super::ear::Ear;
use super::line::{Closing, Line};
use super::script::{Action, Scenario, Script, Turn, Visit};
use crate::agent::Stop;
use crate::words::in_words;

/// What the model is called when nobody names one.
const MODEL: &str = "scripted";

/// Plays an agent: `proctor scripted-agent …`, with the prompt as the first line of standard input, and what is said to it after that. `arguments` come after the command.
pub fn run_scripted_agent(arguments: &[OsString]) -> ExitCode {
    match play(arguments) {
        Ok(code) => ExitCode::from(code),
        Err(reason) => {
            // Whoever started it reads this; when nobody does, there is nothing left to say.
            let _ = writeln!(io::stderr(), "scripted-agent: {reason}");
            ExitCode::from(2)
        }
    }
}

/// Its exit code, or why there is no session at all.
fn play(arguments: &[OsString]) -> Result<u8, String> {
    let arguments = arguments::read(arguments).map_err(|error| error.to_string())?;
    if let Some(system) = &arguments.system {
        std::fs::metadata(system).map_err(|error| format!("failed to read {}: {error}", system.display()))?;
    }
    let script = Script::read(&arguments.script).map_err(|error| in_words(&error))?;
    let mut ear = Ear::default();
    let prompt = ear.prompt().map_err(|error| format!("failed to read the prompt: {error}"))?;
    let opened = match &arguments.resume {
        Some(id) => Conversation::resume(&arguments.conversations, id),
        None => Conversation::begin(&arguments.conversations),
    };
    let conversation = match opened {
        Ok(conversation) => conversation,
        // As the real ones: an error as the result, and no answer.
        Err(error @ ConversationError::Unknown { .. }) => return Ok(refuse(error.to_string())),
        Err(error) => return Err(format!("failed to {}", in_words(&error))),
    };
    follow(&script, &arguments, conversation, (&prompt, ear))
}

fn refuse(reason: String) -> u8 {
    let _ = print(&Line::Result(Box::new(Closing::of(Stop::Refused(reason)))));
    1
}

/// Chooses what to do and does it.
fn follow(script: &Script, arguments: &Arguments, mut conversation: Conversation, (prompt, ear): (&str, Ear)) -> Result<u8, String> {
    let (scenario, place) = match unfinished(script, arguments, conversation.place) {
        Some(scenario) => (scenario, conversation.place),
        None => {
            let visit = if arguments.resume.is_some() { Visit::Resume } else { Visit::Start };
            let (number, scenario) = script.choose(prompt, visit).map_err(|error| in_words(&error))?;
            (scenario, Place { scenario: number, turn: 0, action: 0 })
        }
    };
    if let Some(reason) = &scenario.fail_start {
        return Err(reason.clone());
    }
    conversation.mark(place).map_err(|error| format!("failed to {}", in_words(&error)))?;
    Ok(Agent::new(arguments, conversation, ear).play(scenario))
}

/// The scenario that this conversation was killed or stopped in, if it is one to go on with.
fn unfinished<'a>(script: &'a Script, arguments: &Arguments, place: Place) -> Option<&'a Scenario> {
    let scenario = script.numbered(place.scenario).filter(|_| arguments.resume.is_some())?;
    (scenario.goes_on && place.turn < scenario.turns.len()).then_some(scenario)
}

/// Prints one line at once: what was printed before a death has been read.
pub(super) fn print(line: &Line) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    print_bytes(&bytes)
}

pub(super) fn print_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

/// Why an agent does not go on with its script.
#[derive(Debug)]
pub(super) enum Ending {
    /// It says how it stopped and exits with this code.
    Stopped(Stop, u8),
    /// It exits and says nothing.
    Exit(u8),
    /// Nobody reads what it prints.
    Unread,
    /// Its own conversation can't be kept.
    Conversation(ConversationError),
}

impl From<io::Error> for Ending {
    fn from(_: io::Error) -> Self {
        Self::Unread
    }
}

impl From<ConversationError> for Ending {
    fn from(error: ConversationError) -> Self {
        Self::Conversation(error)
    }
}

/// An agent at work.
pub(super) struct Agent<'a> {
    pub(super) arguments: &'a Arguments,
    conversation: Conversation,
    /// Turns of this process, as the caps count them.
    turns: u32,
    usage: Usage,
    cost: Cost,
    /// Tool calls, for their ids.
    pub(super) calls: u32,
    pub(super) said: Option<String>,
    pub(super) result: Option<Value>,
    /// Where it hears what is said to it while it works.
    pub(super) ear: Ear,
    /// Holds what takes polite requests in and does nothing about them.
    pub(super) deaf: Option<Signals>,
}

impl<'a> Agent<'a> {
    fn new(arguments: &'a Arguments, conversation: Conversation, ear: Ear) -> Self {
        Self {
            arguments,
            conversation,
            turns: 0,
            usage: Usage::default(),
            cost: Cost::Known(MicroDollars(0)),
            calls: 0,
            said: None,
            result: None,
            ear,
            deaf: None,
        }
    }

    /// Follows the scenario from where the conversation is. Returns the exit code.
    fn play(mut self, scenario: &Scenario) -> u8 {
        let ending = match self.turns(scenario) {
            Ok(()) => Ending::Stopped(Stop::Done, 0),
            Err(ending) => ending,
        };
        self.end(ending, &scenario.after)
    }

    fn end(&mut self, ending: Ending, after: &[Action]) -> u8 {
        match ending {
            Ending::Exit(code) => code,
            Ending::Unread => 1,
            Ending::Conversation(error) => {
                let _ = writeln!(io::stderr(), "scripted-agent: failed to {}", in_words(&error));
                1
            }
            Ending::Stopped(stop, code) => {
                if print(&self.closing(stop)).is_err() {
                    return 1;
                }
                match after.iter().try_for_each(|action| self.act(action)) {
                    Ok(()) => code,
                    // One more ending prints one more result, and nothing comes after that.
                    Err(ending) => self.end(ending, &[]),
                }
            }
        }
    }

    fn turns(&mut self, scenario: &Scenario) -> Result<(), Ending> {
        print(&Line::Started { conversation: self.conversation.id.clone(), model: self.arguments.model.clone() })?;
        let last = scenario.turns.len();
        for (number, turn) in scenario.turns.iter().enumerate().skip(self.conversation.place.turn) {
            self.turn(turn)?;
            let place = Place { turn: number + 1, action: 0, ..self.conversation.place };
            self.conversation.mark(place)?;
            self.answered(turn.usage(), turn.cost)?;
            if number + 1 < last {
                self.check_turns()?;
            }
        }
        Ok(())
    }

    /// What is left of one turn.
    fn turn(&mut self, turn: &Turn) -> Result<(), Ending> {
        for (number, action) in turn.actions.iter().enumerate().skip(self.conversation.place.action) {
            let place = Place { action: number + 1, ..self.conversation.place };
            // What ends or holds up the agent counts as done when it begins: or a conversation that goes on would meet it
            // again for ever. Everything else counts when it is done, so that a kill loses none of it and repeats at most one.
            if action.is_last_word() {
                self.conversation.mark(place)?;
                self.act(action)?;
            } else {
                self.act(action)?;
                self.conversation.mark(place)?;
            }
        }
        Ok(())
    }

    /// Ends a turn. The money is looked at then and not before, as the real ones do it.
    pub(super) fn answered(&mut self, usage: Usage, cost: Cost) -> Result<(), Ending> {
        print(&Line::Turn { usage, cost })?;
        self.turns += 1;
        self.usage.input += usage.input;
        self.usage.output += usage.output;
        self.usage.cache_read += usage.cache_read;
        self.usage.cache_write += usage.cache_write;
        self.cost = [self.cost, cost].into_iter().sum();
        match (self.arguments.max_cost, self.cost.known()) {
            (Some(cap), Some(spent)) if spent > MicroDollars(0) && spent >= cap => Err(Ending::Stopped(Stop::Budget, 1)),
            _ => Ok(()),
        }
    }

    /// Before a further turn: whether there may be one.
    pub(super) fn check_turns(&self) -> Result<(), Ending> {
        if self.arguments.max_turns.is_some_and(|most| self.turns >= most) { Err(Ending::Stopped(Stop::TurnLimit, 1)) } else { Ok(()) }
    }

    fn closing(&self, stop: Stop) -> Line {
        let model = self.arguments.model.clone().unwrap_or_else(|| MODEL.to_owned());
        let result = if stop == Stop::Done { self.result.clone() } else { None };
        Line::Result(Box::new(Closing {
            turns: Some(self.turns),
            spent: vec![Spending { model, usage: self.usage, cost: self.cost }],
            text: self.said.clone(),
            result,
            ..Closing::of(stop)
        }))
    }
}
