//! One session as the agent's client: what is asked, in which order, and what the answers and updates mean.
//!
//! INVARIANT: one thing is asked at a time, and an answer counts only when it is to that. What an agent tells outside of our
//! prompt (a conversation that it repeats, another session) is no word of this session.

use std::collections::VecDeque;

use serde_json::Value;
use serde_json::value::RawValue;

use super::answer::{AuthMethod, Initialized, Prompted, Session};
use super::choice::{self, Choice};
use super::ending::{failure, stop, told, ways_to_log_in};
use super::permission::{Question, may};
use super::relay::Rights;
use super::speech::{self, Asked, COMMAND_ENDED, NO_SUCH_METHOD, VERSION, WRONG_PARAMETERS, Way};
use super::spending::Spent;
use super::tools::Tools;
use super::update::{Notice, ToolChange, Update};
use super::wire::{Line, RpcError, parsed};
use super::words::Words;
use crate::agent::{AgentEvent, Finish, Opening, Reader, Stop};

/// Requests of the protocol that are served in the session's box or not at all.
const NOT_OURS: [&str; 3] = ["fs/", "terminal/", "elicitation/"];

/// Speaks one session, or reads the lines of one that is over.
pub(super) struct AcpReader {
    opening: Opening,
    role: Role,
    phase: Phase,
    /// The session's id, once it exists.
    session: Option<String>,
    /// Whether what was said before is repeated to us.
    is_repeated: bool,
    /// The ways to log in that the agent offers.
    methods: Vec<AuthMethod>,
    model: Option<String>,
    /// What is to be set before the prompt.
    choices: VecDeque<(Asked, Choice)>,
    /// What is to be asked after the prompt.
    further: VecDeque<String>,
    prompts: u64,
    /// What is to be written next.
    words: Vec<u8>,
    talk: Words,
    tools: Tools,
    spent: Spent,
}

/// Whether there is an agent at the other end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Speaks,
    /// Only lines are left, and what was said to the agent is not among them.
    Listens,
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Answer(Asked),
    /// The answer to a prompt that was to be broken off.
    Cancelled(Asked),
    /// Nothing: the last prompt was answered.
    Idle,
    /// Nothing any more: the session failed.
    Over,
}

impl AcpReader {
    pub(super) fn new(opening: &Opening) -> Self {
        let mut reader = Self {
            opening: opening.clone(),
            role: if opening.directory.as_os_str().is_empty() { Role::Listens } else { Role::Speaks },
            phase: Phase::Answer(Asked::Initialize),
            session: None,
            is_repeated: false,
            methods: Vec::new(),
            model: None,
            choices: VecDeque::new(),
            further: VecDeque::new(),
            prompts: 0,
            words: Vec::new(),
            talk: Words::default(),
            tools: Tools::default(),
            spent: Spent::default(),
        };
        reader.tell(&speech::initialize(reader.served()));
        reader
    }

    /// What the relay serves, where there is one between us and the agent.
    fn served(&self) -> Option<Rights> {
        self.opening.tools.as_ref().map(|_| Rights::of(self.opening.access, self.opening.permission))
    }

    fn tell(&mut self, message: &Value) {
        if self.role == Role::Speaks {
            self.words.extend_from_slice(message.to_string().as_bytes());
            self.words.push(b'\n');
        }
    }

    fn is_asked(&self, asked: Asked) -> bool {
        match self.phase {
            Phase::Answer(awaited) | Phase::Cancelled(awaited) => awaited == asked || self.role == Role::Listens,
            Phase::Idle | Phase::Over => self.role == Role::Listens,
        }
    }

    /// Whether what the agent tells now belongs to our prompt.
    fn is_at_work(&self) -> bool {
        match self.phase {
            Phase::Answer(asked) | Phase::Cancelled(asked) => matches!(asked, Asked::Prompt(_)),
            Phase::Idle => self.role == Role::Listens,
            Phase::Over => false,
        }
    }

    fn answered(&mut self, id: Option<u64>, outcome: Result<&str, RpcError>, events: &mut Vec<AgentEvent>) {
        let Some(asked) = id.and_then(Asked::of).filter(|asked| self.is_asked(*asked)) else {
            return events.push(AgentEvent::Unknown("an answer to nothing that was asked".to_owned()));
        };
        match (asked, outcome) {
            (Asked::Initialize, Ok(result)) => self.initialized(parsed(result).unwrap_or_default(), events),
            (Asked::Session, Ok(result)) => self.opened(&parsed(result).unwrap_or_default(), events),
            // An agent that does not take the mode asks before it does anything, and is answered by what it may do.
            (Asked::Mode, _) | (Asked::Model, Ok(_)) => self.go_on(),
            (Asked::Prompt(_), Ok(result)) => self.prompted(&parsed(result).unwrap_or_default(), events),
            (Asked::Initialize, Err(error)) => self.fail("the agent did not begin", &error, events),
            (Asked::Session, Err(error)) => self.not_opened(&error, events),
            (Asked::Model, Err(error)) => {
                let model = self.opening.model.clone().unwrap_or_default();
                self.fail(&format!("the agent does not take the model `{model}`"), &error, events);
            }
            (Asked::Prompt(_), Err(error)) => self.broken(&error, events),
        }
    }

    fn initialized(&mut self, answer: Initialized, events: &mut Vec<AgentEvent>) {
        self.methods = answer.auth_methods;
        if answer.protocol_version != Some(VERSION) {
            let version = answer.protocol_version.map_or("no version".to_owned(), |version| format!("version {version}"));
            let reason = format!("the agent speaks {version} of the Agent Client Protocol, and Proctor speaks version {VERSION}");
            return self.finish(Stop::Failed(reason), events);
        }
        let capabilities = &answer.agent_capabilities;
        let way = match self.opening.resume.clone() {
            None => Way::New,
            Some(id) if capabilities.session_capabilities.resume.is_some() => Way::Resume(id),
            Some(id) if capabilities.load_session => Way::Load(id),
            Some(id) => {
                let reason =
                    format!("the agent can't go on with the conversation `{id}`: it offers neither `session/resume` nor `session/load`");
                return self.finish(Stop::Failed(reason), events);
            }
        };
        match way {
            Way::New => {}
            Way::Load(_) | Way::Resume(_) => self.spent.goes_on(),
        }
        self.is_repeated = matches!(way, Way::Load(_));
        self.phase = Phase::Answer(Asked::Session);
        self.tell(&speech::session(&way, &self.opening.directory, self.opening.tools.as_ref()));
    }

    fn not_opened(&mut self, error: &RpcError, events: &mut Vec<AgentEvent>) {
        match self.opening.resume.clone() {
            Some(id) => self.fail(&format!("the agent does not go on with the conversation `{id}`"), error, events),
            None => self.fail("the agent did not begin a session", error, events),
        }
    }

    fn opened(&mut self, answer: &Session, events: &mut Vec<AgentEvent>) {
        // Of lines alone it can't be known whether the session was a new one; then its updates name it.
        let id = self.opening.resume.clone().or_else(|| answer.session_id.clone()).filter(|id| !id.is_empty());
        let model = choice::model(answer, self.opening.model.as_deref());
        let chosen = model.as_ref().ok().and_then(|choice| choice.as_ref()).map(|choice| choice.value().to_owned());
        self.model = chosen.or_else(|| choice::current_model(answer));
        match id {
            Some(id) => self.started(id, events),
            None if self.role == Role::Speaks => {
                return self.finish(Stop::Failed("the agent began a session and did not say its id".to_owned()), events);
            }
            None => {}
        }
        // Some agents repeat a conversation only when they have said that it is loaded. Before the answer to this they are done.
        let mode = choice::mode(answer, self.opening.access, self.opening.permission);
        let mode = mode.filter(|(_, is_another)| *is_another || self.is_repeated);
        self.choices.extend(mode.map(|(choice, _)| (Asked::Mode, choice)));
        match model {
            Ok(choice) => self.choices.extend(choice.map(|choice| (Asked::Model, choice))),
            Err(reason) => return self.finish(Stop::Failed(reason), events),
        }
        self.go_on();
    }

    fn started(&mut self, id: String, events: &mut Vec<AgentEvent>) {
        self.session = Some(id.clone());
        events.push(AgentEvent::Started { conversation: id, model: self.model.clone() });
    }

    /// Sets what is left to be set, and then asks.
    fn go_on(&mut self) {
        let session = self.session.clone().unwrap_or_default();
        if let Some((asked, choice)) = self.choices.pop_front().filter(|_| self.role == Role::Speaks) {
            self.phase = Phase::Answer(asked);
            return self.tell(&speech::choose(asked, &session, &choice));
        }
        let text = std::mem::take(&mut self.opening.prompt);
        let system = std::mem::take(&mut self.opening.system);
        self.ask(&system, &text);
    }

    fn ask(&mut self, system: &str, text: &str) {
        let session = self.session.clone().unwrap_or_default();
        self.phase = Phase::Answer(Asked::Prompt(self.prompts));
        self.tell(&speech::prompt(self.prompts, &session, system, text));
        self.prompts = self.prompts.saturating_add(1);
    }

    fn prompted(&mut self, answer: &Prompted, events: &mut Vec<AgentEvent>) {
        self.spent.prompt(answer);
        let stop = self.with_last_words(stop(&answer.stop_reason));
        match self.further.pop_front().filter(|_| stop == Stop::Done) {
            Some(text) => {
                self.end_answer(events);
                self.ask("", &text);
            }
            None => self.finish(stop, events),
        }
    }

    /// Of one that refuses, what it said last is why.
    fn with_last_words(&mut self, stop: Stop) -> Stop {
        let last = self.talk.untold().to_owned();
        if last.is_empty() || !matches!(stop, Stop::Refused(_)) {
            return stop;
        }
        self.talk.forget();
        Stop::Refused(last)
    }

    /// The prompt was not answered. Some agents fail when they are asked to break off.
    fn broken(&mut self, error: &RpcError, events: &mut Vec<AgentEvent>) {
        match self.phase {
            Phase::Cancelled(_) => self.finish(Stop::Interrupted, events),
            Phase::Answer(_) | Phase::Idle | Phase::Over => {
                let stop = self.failure(error);
                self.finish(stop, events);
                self.phase = Phase::Over;
            }
        }
    }

    /// Nothing comes of this session: what was asked for could not be done.
    fn fail(&mut self, what: &str, error: &RpcError, events: &mut Vec<AgentEvent>) {
        let stop = match self.failure(error) {
            Stop::Failed(_) => Stop::Failed(format!("{what}: {}", told(error))),
            Stop::Refused(reason) => Stop::Refused(format!("{what}: {reason}")),
            stop @ (Stop::RateLimited { .. } | Stop::UsageLimit { .. }) => stop,
            stop @ (Stop::Done | Stop::TurnLimit | Stop::Budget | Stop::NoResult(_) | Stop::Interrupted) => stop,
        };
        self.finish(stop, events);
    }

    /// What an error comes to. What was said last may be the same in other words, and no answer.
    fn failure(&mut self, error: &RpcError) -> Stop {
        let last = self.talk.untold().to_owned();
        let mut stop = failure(error, self.opening.begun);
        if let Stop::Refused(reason) = stop {
            stop = Stop::Refused(self.refusal(error, reason, &last));
        }
        if !last.is_empty() && (!matches!(stop, Stop::Failed(_)) || error.message.contains(&last)) {
            self.talk.forget();
        }
        stop
    }

    fn refusal(&self, error: &RpcError, reason: String, last: &str) -> String {
        let more = Some(last.to_owned()).filter(|last| !reason.contains(last.as_str()));
        let parts = [Some(reason), more, ways_to_log_in(error, &self.methods)];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    fn end_answer(&mut self, events: &mut Vec<AgentEvent>) {
        self.tools.tell_all(events);
        self.talk.end(events);
    }

    fn finish(&mut self, stop: Stop, events: &mut Vec<AgentEvent>) {
        self.end_answer(events);
        self.phase = if self.is_at_work() { Phase::Idle } else { Phase::Over };
        let spent = self.spent.told(self.model.as_deref());
        events.push(AgentEvent::Finished(Box::new(Finish { stop, turns: None, spent, text: None, result: None })));
    }

    fn noted(&mut self, method: &str, params: &str, events: &mut Vec<AgentEvent>) {
        match method {
            "session/update" => self.updated(params, events),
            COMMAND_ENDED => self.tools.command_ended(params),
            // What an agent has invented for itself, and what belongs to every request.
            _ if method.starts_with('_') || method.starts_with("$/") => events.push(AgentEvent::Nothing),
            _ => events.push(AgentEvent::Unknown(method.to_owned())),
        }
    }

    fn updated(&mut self, params: &str, events: &mut Vec<AgentEvent>) {
        let Some(notice) = parsed::<Notice<'_>>(params) else {
            return events.push(AgentEvent::Unknown("session/update".to_owned()));
        };
        let update = match Update::of(notice.update.get()) {
            Ok(update) => update,
            Err(kind) => return events.push(AgentEvent::Unknown(format!("session/update: {kind}"))),
        };
        if self.role == Role::Listens && self.session.is_none() && self.is_at_work() {
            self.started(notice.session_id.clone(), events);
        }
        let is_ours = self.session.as_ref().or(self.opening.resume.as_ref()).is_none_or(|session| *session == notice.session_id);
        match update {
            Update::Nothing => events.push(AgentEvent::Nothing),
            Update::Usage(usage) => {
                if is_ours && usage.cost.is_some() {
                    self.spent.cost(usage.cost.as_ref(), self.is_at_work());
                    return events.push(AgentEvent::Spent(self.spent.told(self.model.as_deref())));
                }
                events.push(AgentEvent::Nothing);
            }
            Update::Says(chunk) if is_ours && self.is_at_work() => self.talk.say(chunk, events),
            Update::Thinks(chunk) if is_ours && self.is_at_work() => self.talk.think(&chunk, events),
            Update::Call(change) if is_ours && self.is_at_work() => self.called(change, true, events),
            Update::CallChange(change) if is_ours && self.is_at_work() => self.called(change, false, events),
            Update::Plan(plan) if is_ours && self.is_at_work() => events.push(AgentEvent::Plan(plan.entries())),
            // Of another session, or of what was said before.
            Update::Says(_) | Update::Thinks(_) | Update::Call(_) | Update::CallChange(_) | Update::Plan(_) | Update::Working => {}
        }
    }

    fn called(&mut self, change: ToolChange, is_new: bool, events: &mut Vec<AgentEvent>) {
        if !self.tools.knows(&change.tool_call_id) {
            self.talk.call(events);
        }
        if self.tools.take(change, is_new, events) {
            self.end_turn(events);
        }
    }

    /// The model is asked again when all of what it asked for is there.
    fn end_turn(&mut self, events: &mut Vec<AgentEvent>) {
        if !self.tools.is_busy() {
            self.talk.end(events);
        }
    }

    fn requested(&mut self, id: &RawValue, method: &str, params: &str, events: &mut Vec<AgentEvent>) {
        if method == "session/request_permission" {
            return self.asked_for_permission(id, params, events);
        }
        if self.served().is_some() && Rights::concern(method) {
            // It is at work, and was answered in its box.
            return;
        }
        self.tell(&speech::refuse(id, NO_SUCH_METHOD, "Method not found"));
        let is_known = method.starts_with('_') || NOT_OURS.iter().any(|known| method.starts_with(known));
        events.push(if is_known { AgentEvent::Nothing } else { AgentEvent::Unknown(method.to_owned()) });
    }

    fn asked_for_permission(&mut self, id: &RawValue, params: &str, events: &mut Vec<AgentEvent>) {
        let Some(question) = parsed::<Question>(params) else {
            self.tell(&speech::refuse(id, WRONG_PARAMETERS, "Invalid params"));
            return events.push(AgentEvent::Unknown("session/request_permission".to_owned()));
        };
        let asked = self.tools.changed(&question.tool_call);
        let may_work = matches!(self.phase, Phase::Answer(Asked::Prompt(_)));
        let is_ours = self.opening.tools.is_some() && asked.is_of_session_tool();
        let is_allowed = is_ours || may(asked.kind(), self.opening.access, self.opening.permission);
        let option = if may_work { question.answer(is_allowed) } else { None };
        let answer = speech::permission(id, option);
        self.tell(&answer);
        if self.is_at_work() && self.session.as_ref() == Some(&question.session_id) {
            let call = question.tool_call.tool_call_id.clone();
            self.called(question.tool_call, false, events);
            self.tools.tell(&call, events);
            if !is_allowed {
                self.tools.refuse(&call);
            }
            self.end_turn(events);
        }
    }
}

impl Reader for AcpReader {
    fn read(&mut self, line: &[u8], events: &mut Vec<AgentEvent>) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return events.push(AgentEvent::Nothing);
        }
        let before = events.len();
        match Line::of(line) {
            None => events.push(AgentEvent::Garbage),
            Some(Line::Other) => events.push(AgentEvent::Unknown("no message of the protocol".to_owned())),
            Some(Line::Answer { id, outcome }) => self.answered(id, outcome, events),
            Some(Line::Note { method, params }) => self.noted(&method, params, events),
            Some(Line::Request { id, method, params }) => self.requested(id, &method, params, events),
        }
        if events.len() == before {
            events.push(AgentEvent::Working);
        }
    }

    fn take_words(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.words)
    }

    fn interrupt(&mut self) -> bool {
        let (Phase::Answer(asked @ Asked::Prompt(_)), Some(session)) = (self.phase, &self.session) else { return false };
        let message = speech::cancel(session);
        self.phase = Phase::Cancelled(asked);
        self.further.clear();
        self.tell(&message);
        true
    }

    fn say(&mut self, text: &str) -> bool {
        match self.phase {
            Phase::Idle => self.ask("", text),
            // The protocol takes one prompt after the other.
            Phase::Answer(_) => self.further.push_back(text.to_owned()),
            Phase::Cancelled(_) | Phase::Over => return false,
        }
        true
    }
}
