//! What the actions of a script do.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use proctor_domain::session::Usage;
use proctor_domain::{Cost, MicroDollars, Timestamp};
use proctor_process::{Program, ProgramError, Signal, Signals, Sink};
use serde_json::{Value, json};

use super::agent::{Agent, Ending, print, print_bytes};
use super::line::Line;
use super::script::{self, Action, Answer, Commit, Death, Leave, Reset, While};
use crate::agent::{Access, Stop, validate_result};
use crate::tools::{Bridge, ToolAnswer, ToolServer};
use crate::words::in_words;

/// How often a result is tried, as Claude Code does it.
const TRIES: usize = 5;
/// Between two looks for a file.
const LOOK: Duration = Duration::from_millis(2);
/// Between two heartbeats.
const BEAT: Duration = Duration::from_millis(50);
/// Characters that a model is shown of what a command printed.
const LONGEST_OUTPUT: usize = 30_000;

impl Action {
    /// Whether nothing comes after it, or nothing before somebody steps in.
    pub(super) fn is_last_word(&self) -> bool {
        match self {
            Self::Hang | Self::Exit(_) | Self::Die(_) | Self::Fail(_) | Self::Refuse(_) | Self::RateLimit(_) | Self::UsageLimit(_) => true,
            Self::Say(_)
            | Self::Think(_)
            | Self::Run(_)
            | Self::Write(_)
            | Self::Commit(_)
            | Self::Wait(_)
            | Self::Hear(_)
            | Self::Busy(_)
            | Self::Heartbeat(_)
            | Self::Print(_)
            | Self::PrintPart(_)
            | Self::HugeLine(_)
            | Self::Stderr(_)
            | Self::Result(_)
            | Self::Results(_)
            | Self::UnvalidatedResult(_)
            | Self::Leave(_)
            | Self::Call(_)
            | Self::IgnoreTerm => false,
        }
    }
}

impl Agent<'_> {
    /// Does one thing.
    pub(super) fn act(&mut self, action: &Action) -> Result<(), Ending> {
        match action {
            Action::Say(text) => self.say(text.clone()),
            Action::Think(text) => Ok(print(&Line::Thinking { text: text.clone() })?),
            Action::Run(command) => self.tool("run", &json!({ "command": command }), || shell(command)),
            Action::Write(file) => {
                self.tool("write", &json!({ "path": file.path.to_string_lossy(), "content": file.content }), || write(file))
            }
            Action::Commit(commit) => {
                self.tool("commit", &json!({ "message": commit.message, "paths": commit.paths }), || make_commit(commit))
            }
            Action::Wait(wait) => wait_for(&wait.file, Duration::from_millis(wait.ms)),
            Action::Hear(hear) => {
                let word = self.ear.hear(Duration::from_millis(hear.ms));
                let reason = || format!("waited {} ms in vain for a word", hear.ms);
                self.say(format!("Heard: {}", word.ok_or_else(|| Ending::Stopped(Stop::Failed(reason()), 1))?))
            }
            Action::Busy(span) => {
                busy(span);
                Ok(())
            }
            Action::Heartbeat(span) => Ok(heartbeat(span)?),
            Action::Print(line) => Ok(print_bytes(format!("{line}\n").as_bytes())?),
            Action::PrintPart(part) => Ok(print_bytes(part.as_bytes())?),
            Action::HugeLine(length) => self.say("x".repeat(length.0 << 20)),
            Action::Stderr(line) => Ok(writeln!(io::stderr(), "{line}")?),
            Action::Result(answer) => self.answer(std::slice::from_ref(answer)),
            Action::Results(answers) => self.answer(&answers.0),
            Action::UnvalidatedResult(answer) => {
                self.result = Some(answer.0.clone());
                Ok(())
            }
            Action::Leave(leave) => self.tool("run", &json!({ "command": leave.command }), || leave_behind(leave)),
            Action::Call(call) => self.call_session_tool(call),
            Action::IgnoreTerm => {
                self.deaf = Signals::listen(&[Signal::Terminate, Signal::Interrupt, Signal::Hangup]).ok();
                Ok(())
            }
            Action::Hang => hang(),
            Action::Exit(code) => Err(Ending::Exit(*code)),
            Action::Die(death) => Err(die(*death)),
            Action::Fail(failure) => Err(Ending::Stopped(Stop::Failed(failure.reason.clone()), failure.exit)),
            Action::Refuse(reason) => Err(Ending::Stopped(Stop::Refused(reason.clone()), 1)),
            Action::RateLimit(reset) => {
                print(&Line::Retrying { attempt: 1, status: Some(429), wait_ms: None })?;
                Err(Ending::Stopped(Stop::RateLimited { until: instant(reset) }, 1))
            }
            Action::UsageLimit(reset) => {
                let until = instant(reset);
                print(&Line::Limit { until, reached: true })?;
                Err(Ending::Stopped(Stop::UsageLimit { until }, 1))
            }
        }
    }

    fn say(&mut self, text: String) -> Result<(), Ending> {
        let line = Line::Text { text };
        print(&line)?;
        if let Line::Text { text } = line {
            self.said = Some(text);
        }
        Ok(())
    }

    fn call(&mut self, name: &str, input: &Value) -> Result<String, Ending> {
        self.calls += 1;
        let id = format!("call-{}", self.calls);
        print(&Line::ToolCall { id: id.clone(), name: name.to_owned(), input: input.clone() })?;
        Ok(id)
    }

    /// Calls a tool that changes something, unless the session may only look.
    fn tool(&mut self, name: &str, input: &Value, work: impl FnOnce() -> Result<String, String>) -> Result<(), Ending> {
        let id = self.call(name, input)?;
        let outcome = match self.arguments.access {
            Access::Full => work(),
            Access::ReadOnly => Err("refused: this session may only look".to_owned()),
        };
        let (failed, text) = match outcome {
            Ok(text) => (false, text),
            Err(text) => (true, text),
        };
        Ok(print(&Line::ToolResult { id, failed, text })?)
    }

    /// Calls a tool of the session, which one that may only look has too.
    fn call_session_tool(&mut self, call: &script::Call) -> Result<(), Ending> {
        let id = self.call(&format!("mcp__{}__{}", ToolServer::NAME, call.tool), &call.input.0)?;
        let called = match &self.arguments.tools {
            Some(socket) => Bridge::connect(socket).and_then(|mut bridge| bridge.call(&call.tool, call.input.0.clone())),
            None => Ok(ToolAnswer::failed("this session has no tools".to_owned())),
        };
        let answer = called.unwrap_or_else(|error| ToolAnswer::failed(format!("failed to {}", in_words(&error))));
        Ok(print(&Line::ToolResult { id, failed: answer.failed, text: answer.text })?)
    }

    /// Gives one result after the other until one is what the schema asks for; the last one as often as it may be tried.
    fn answer(&mut self, answers: &[Answer]) -> Result<(), Ending> {
        let last = answers.last();
        let Some(schema) = &self.arguments.schema else {
            // Nobody offers the tool for results, so the model writes it down.
            return last.map_or(Ok(()), |answer| self.say(answer.0.to_string()));
        };
        for (tried, answer) in answers.iter().chain(last.into_iter().cycle()).take(TRIES).enumerate() {
            let id = self.call("result", &answer.0)?;
            let validated = validate_result(schema, &answer.0.to_string());
            let text = validated.as_ref().map_or_else(|error| format!("failed to {error}"), |_| "accepted".to_owned());
            print(&Line::ToolResult { id, failed: validated.is_err(), text })?;
            if let Ok(result) = validated {
                self.result = Some(result);
                return Ok(());
            }
            self.answered(Usage::default(), Cost::Known(MicroDollars(0)))?;
            if tried + 1 < TRIES {
                self.check_turns()?;
            }
        }
        Err(Ending::Stopped(Stop::NoResult(format!("no valid result in {TRIES} tries")), 1))
    }
}

/// A program in the agent's folder with the agent's environment, in a session of its own: that is how the real ones start
/// their tools, and why a process group is not enough to end one.
fn tool_program(name: &str) -> Program {
    Program::new(name).dir(".").env(std::env::vars_os()).own_session()
}

fn shell(command: &str) -> Result<String, String> {
    finished(tool_program("bash").args(["-c", command]))
}

/// Runs a program to its end. What it printed, and whether that is a success.
fn finished(program: Program) -> Result<String, String> {
    let finished = program.run(None).map_err(|error| said(&error))?;
    let mut text = String::from_utf8_lossy(&finished.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&finished.stderr));
    if let Some((cut, _)) = text.char_indices().nth(LONGEST_OUTPUT) {
        text.truncate(cut);
    }
    if finished.status.is_success() { Ok(text) } else { Err(format!("exit code {}\n{text}", finished.status.shell_code())) }
}

fn said(error: &ProgramError) -> String {
    format!("failed to {}", in_words(error))
}

/// An ordinary file with ordinary rights, as an editor leaves it.
fn write(file: &script::File) -> Result<String, String> {
    let written =
        file.path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| File::create(&file.path)?.write_all(file.content.as_bytes()));
    match written {
        Ok(()) => Ok(format!("{} bytes written", file.content.len())),
        Err(error) => Err(format!("failed to write {}: {error}", file.path.display())),
    }
}

fn make_commit(commit: &Commit) -> Result<String, String> {
    finished(tool_program("git").args(["add", "--all", "--"]).args(&commit.paths))?;
    finished(tool_program("git").args(["commit", "--quiet", "--message", &commit.message, "--"]).args(&commit.paths))
}

fn leave_behind(leave: &Leave) -> Result<String, String> {
    let stdout = if leave.hold_stdout {
        Sink::File(io::stdout().as_fd().try_clone_to_owned().map_err(|error| error.to_string())?.into())
    } else {
        Sink::Null
    };
    let program = tool_program("bash").args(["-c", &leave.command]).stdout(stdout).stderr(Sink::Null);
    program.spawn().map(|child| format!("process {} is left behind", child.pid())).map_err(|error| said(&error))
}

fn wait_for(file: &Path, limit: Duration) -> Result<(), Ending> {
    let begun = Instant::now();
    while !file.exists() {
        if begun.elapsed() >= limit {
            let reason = format!("waited {} ms in vain for {}", limit.as_millis(), file.display());
            return Err(Ending::Stopped(Stop::Failed(reason), 1));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Whether this is not over yet.
fn lasts(span: &While, begun: Instant) -> bool {
    begun.elapsed() < Duration::from_millis(span.ms) && !span.until_file.as_ref().is_some_and(|file| file.exists())
}

/// Works without a word: only the time that it takes from the processor shows that it lives.
fn busy(span: &While) {
    let begun = Instant::now();
    while lasts(span, begun) {
        for _ in 0..100_000 {
            std::hint::spin_loop();
        }
    }
}

fn heartbeat(span: &While) -> io::Result<()> {
    let begun = Instant::now();
    let mut due = begun;
    while lasts(span, begun) {
        if Instant::now() >= due {
            print(&Line::Heartbeat)?;
            due += BEAT;
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

fn hang() -> Result<(), Ending> {
    loop {
        std::thread::park();
    }
}

fn die(death: Death) -> Ending {
    use rustix::process::{Signal, getpid, kill_process};
    let signal = match death {
        Death::Kill => Signal::KILL,
        Death::Term => Signal::TERM,
        Death::Int => Signal::INT,
        Death::Hup => Signal::HUP,
        Death::Abrt => Signal::ABORT,
    };
    let _ = kill_process(getpid(), signal);
    // Only one that ignores the signal comes here.
    Ending::Exit(1)
}

/// When a limit resets.
fn instant(reset: &Reset) -> Option<Timestamp> {
    match reset {
        Reset::After(seconds) => Some(now().plus_millis(seconds.saturating_mul(1000))),
        Reset::At(second) => Some(Timestamp(0).plus_millis(second.saturating_mul(1000))),
        Reset::Unsaid => None,
    }
}

#[allow(clippy::disallowed_methods, reason = "it plays a program that knows the time, in a process of its own")]
fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(0).plus_millis(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
}
