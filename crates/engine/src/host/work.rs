//! What a session runs: its shells one after the other, or its agent.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use proctor_domain::procedure::output_variable;
use proctor_domain::session::{SessionEnd, ShellEnd};
use proctor_process::{Program, Stdin};

use super::assignment::Agent;
use super::files::write_plainly;
use super::outputs;
use super::supervise::{ChildRun, Supervisor};
use super::watch::{Cut, Question};
use crate::agent::{Input, Opening};
use crate::words::in_words;

/// How the work of a session went.
#[derive(Debug, Default)]
pub(super) struct Worked {
    /// The shells that were started, in order.
    pub(super) shells: Vec<ShellEnd>,
    /// The exit code of the last child, where there is one.
    pub(super) exit_code: Option<i32>,
    /// Why the session was made to end before its time.
    pub(super) cut: Option<Cut>,
}

impl Supervisor<'_> {
    /// Runs the agent, or so many shells.
    pub(super) fn run_work(&mut self, shells: usize, agent: Option<&Agent>) -> Worked {
        match agent {
            Some(agent) => self.run_agent(agent),
            None => self.run_shells(shells),
        }
    }

    fn run_shells(&mut self, count: usize) -> Worked {
        let mut worked = Worked::default();
        for number in 1..=count {
            let run = self.run_child(|supervisor| Ok(supervisor.shell(number)));
            worked.shells.extend(run.exit_code.map(|exit_code| ShellEnd { exit_code, duration_ms: run.duration_ms }));
            (worked.exit_code, worked.cut) = (run.exit_code, run.cut);
            if worked.cut.is_some() || worked.exit_code != Some(0) {
                break;
            }
        }
        worked
    }

    fn run_agent(&mut self, agent: &Agent) -> Worked {
        let mut run = match self.opening(agent) {
            Ok(opening) => {
                self.watch_agent(agent, &opening);
                self.run_child(|supervisor| supervisor.agent_program(agent, &supervisor.folder().prompt(), agent.argv()))
            }
            Err(reason) => ChildRun { exit_code: None, cut: Some(Cut::By(SessionEnd::Crashed { reason })), duration_ms: 0 },
        };
        while let Some(question) = self.take_question(&run) {
            run = self.run_child(|supervisor| supervisor.agent_again(agent, &question));
        }
        Worked { shells: Vec::new(), exit_code: run.exit_code, cut: run.cut }
    }

    /// Runs one child, unless the session is over. One that can't be run ends the session.
    fn run_child(&mut self, program: impl FnOnce(&mut Self) -> Result<Program, String>) -> ChildRun {
        let not_run = |end| ChildRun { exit_code: None, cut: Some(Cut::By(end)), duration_ms: 0 };
        match self.due() {
            Some(end) => not_run(end),
            None => program(self).and_then(|program| self.run(program)).unwrap_or_else(|reason| not_run(SessionEnd::Crashed { reason })),
        }
    }

    /// What the session begins with, without the texts where the program reads them itself.
    fn opening(&self, agent: &Agent) -> Result<Opening, String> {
        match agent.input {
            Input::Prompt => Ok(agent.opening(String::new(), String::new(), self.directory().to_owned())),
            Input::Spoken => {
                let (system, prompt) = (self.text(&self.folder().system())?, self.text(&self.folder().prompt())?);
                Ok(agent.opening(system, prompt, self.directory().to_owned()))
            }
        }
    }

    fn text(&self, path: &Path) -> Result<String, String> {
        std::fs::read_to_string(path).map_err(|error| format!("failed to read what the agent is told: {error}"))
    }

    /// What is still to be asked of an agent whose program has ended by itself.
    fn take_question(&mut self, run: &ChildRun) -> Option<Question> {
        self.agent_ended(run.exit_code);
        match run.cut {
            None | Some(Cut::Done) => self.agent_mut()?.take_question(),
            Some(Cut::By(_)) => None,
        }
    }

    /// The program that goes on with the conversation, or one that is asked everything anew where none is kept.
    fn agent_again(&mut self, agent: &Agent, question: &Question) -> Result<Program, String> {
        let (text, argv) = match &question.conversation {
            Some(conversation) => (question.words.clone(), agent.argv_again(conversation)),
            None => (format!("{}\n\n{}", self.text(&self.folder().prompt())?, question.words), agent.argv()),
        };
        let prompt = self.folder().question();
        write_plainly(&prompt, text.as_bytes()).map_err(|error| format!("failed to {}", in_words(&error)))?;
        let opening = self.opening(agent)?;
        if let Some(watch) = self.agent_mut() {
            watch.go_on(agent, &opening);
        }
        self.agent_program(agent, &prompt, argv)
    }

    fn agent_program(&mut self, agent: &Agent, prompt: &Path, argv: Vec<OsString>) -> Result<Program, String> {
        let input = match agent.input {
            Input::Prompt => File::open(prompt).map(OwnedFd::from),
            Input::Spoken => self.open_input(),
        };
        let input = input.map_err(|error| format!("failed to open what the agent reads: {error}"))?;
        let mut argv = argv.into_iter();
        Ok(Program::new(argv.next().unwrap_or_default())
            .args(argv)
            .dir(self.directory())
            .env(self.environment().iter().cloned())
            .stdin(Stdin::Descriptor(input)))
    }

    fn shell(&self, number: usize) -> Program {
        let written = self.outputs_so_far(number);
        let earlier = self.environment().iter().filter(|(name, _)| written.iter().all(|(newer, _)| newer != name)).cloned();
        // The text is a file, so that its size does not matter and errors name its lines.
        Program::new("bash")
            .args(["-euo", "pipefail"])
            .arg(self.folder().shell(number))
            .dir(self.directory())
            .env(earlier.chain(written.iter().cloned()))
    }

    /// What the shells before this one wrote to `$PROCTOR_OUTPUT`, as the variables by which later shells read it.
    /// Outputs that can't be used fail the phase when it is over; no shell gets them.
    fn outputs_so_far(&self, number: usize) -> Vec<(OsString, OsString)> {
        let step = self.environment().iter().find(|(name, _)| name == "PROCTOR_STEP").and_then(|(_, step)| step.to_str());
        let (Some(step), true) = (step, number > 1) else { return Vec::new() };
        let outputs = outputs::read(&self.folder().output()).unwrap_or_default();
        outputs.into_iter().map(|(name, value)| (output_variable(step, &name).into(), value.into())).collect()
    }
}
