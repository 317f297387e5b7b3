//! Speaks with `codex app-server`: a thread, its turns, and what is told of them.
//!
//! INVARIANT: one turn is asked at a time. What is told of other threads (agents that the agent set to work) is no word of
//! this session; what they use is paid all the same.

mod message;
mod speech;

use std::collections::VecDeque;

use jiff::tz::TimeZone;
use proctor_domain::Timestamp;
use serde_json::Value;
use serde_json::value::RawValue;

use super::ending::{Failure, attempt, status, stop};
use super::spending::Spent;
use super::talk::{Stage, Talk};
use crate::agent::rpc::{Line, RpcError, parsed};
use crate::agent::{AgentEvent, Opening, Reader, Stop};
use message::{Begun, Complaint, Opened, ServerState, Told, Turn, used_up};

/// Notices that say no more than that it is at work.
const WORKING: [&str; 18] = [
    "autoApprovalReview/strictReviewRequired",
    "command/exec/outputDelta",
    "hook/completed",
    "hook/started",
    "item/agentMessage/delta",
    "item/autoApprovalReview/completed",
    "item/autoApprovalReview/started",
    "item/commandExecution/outputDelta",
    "item/commandExecution/terminalInteraction",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "item/mcpToolCall/progress",
    "item/plan/delta",
    "item/reasoning/summaryPartAdded",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/textDelta",
    "thread/compacted",
    "turn/diff/updated",
];

/// Notices of no weight.
const NOTHING: [&str; 38] = [
    "account/gatewayOAuth/changed",
    "account/login/completed",
    "account/updated",
    "app/list/updated",
    "configWarning",
    "deprecationNotice",
    "fs/changed",
    "guardianWarning",
    "mcpServer/event/stream/notification",
    "mcpServer/oauthLogin/completed",
    "model/safetyBuffering/updated",
    "model/verification",
    "modelProvider/authRecoveryCompleted",
    "modelProvider/authRecoveryStarted",
    "project/changed",
    "rawResponse/completed",
    "rawResponseItem/completed",
    "remoteControl/status/changed",
    "serverRequest/resolved",
    "skills/changed",
    "thread/archived",
    "thread/attachment/updated",
    "thread/closed",
    "thread/environment/connected",
    "thread/environment/disconnected",
    "thread/goal/cleared",
    "thread/goal/updated",
    "thread/name/updated",
    "thread/prediction/updated",
    "thread/project/updated",
    "thread/queue/changed",
    "thread/readState/changed",
    "thread/section/changed",
    "thread/settings/updated",
    "thread/started",
    "thread/status/changed",
    "turn/moderationMetadata",
    "warning",
];

/// What stands for the model where nobody has said which.
const UNNAMED: &str = "default";

/// Speaks one session, or reads the lines of one that is over.
pub(super) struct ServerReader {
    opening: Opening,
    /// The clock on the wall of whoever runs Codex, which is the one that it tells times by.
    zone: TimeZone,
    /// Whether there is a server at the other end. Else only its lines are left.
    speaks: bool,
    phase: Phase,
    thread: Option<String>,
    model: Option<String>,
    /// The turns that were asked here.
    turns: Vec<String>,
    last_id: u64,
    /// What was said into a turn, by the id of the request, and is not known to have arrived.
    steering: Vec<(u64, String)>,
    /// What is to be said when there is a turn to say it into, or a turn of its own to be asked.
    further: VecDeque<String>,
    /// What is to be written next.
    words: Vec<u8>,
    talk: Talk,
    spent: Spent,
    /// When the limit that is used up resets.
    resets_at: Option<Timestamp>,
    /// The status with which the provider refused the login again, so that the turn was broken off.
    shut_out: Option<u16>,
}

/// What is going on.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    /// There is no thread yet.
    Opening,
    /// A turn was asked for. Whether it is to be broken off.
    Asked { is_broken_off: bool },
    /// It goes on under this id.
    Turn { id: String, is_broken_off: bool },
    /// It ended so, while it was not known whether what was said into it arrived.
    Ended(Stop),
    /// The last turn was answered.
    Idle,
    /// Nothing comes of this session.
    Over,
}

impl ServerReader {
    /// Speaks a session.
    pub(super) fn speaking(opening: &Opening, zone: TimeZone) -> Self {
        let mut reader = Self { speaks: true, ..Self::listening(opening, zone) };
        reader.tell(&speech::initialize());
        reader
    }

    /// Reads the lines of one that is over.
    pub(super) fn listening(opening: &Opening, zone: TimeZone) -> Self {
        Self {
            opening: opening.clone(),
            zone,
            speaks: false,
            phase: Phase::Opening,
            thread: None,
            model: None,
            turns: Vec::new(),
            last_id: speech::FIRST_TURN - 1,
            steering: Vec::new(),
            further: VecDeque::new(),
            words: Vec::new(),
            talk: Talk::default(),
            spent: Spent::default(),
            resets_at: None,
            shut_out: None,
        }
    }

    fn tell(&mut self, message: &Value) {
        if self.speaks {
            self.words.extend_from_slice(message.to_string().as_bytes());
            self.words.push(b'\n');
        }
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn answered(&mut self, id: u64, outcome: Result<&str, RpcError>, events: &mut Vec<AgentEvent>) {
        // What was asked first is asked once.
        let is_late = id < speech::FIRST_TURN && self.phase != Phase::Opening;
        let steered = self.steering.iter().position(|(asked, _)| *asked == id).map(|at| self.steering.remove(at).1);
        match (id, outcome, steered) {
            (_, outcome, Some(text)) => self.steered(text, outcome.is_ok(), events),
            (_, _, None) if is_late => events.push(AgentEvent::Unknown("an answer to nothing that was asked".to_owned())),
            (speech::INITIALIZE, Ok(_), _) => {
                self.tell(&speech::initialized());
                self.tell(&speech::thread(&self.opening));
            }
            (speech::INITIALIZE, Err(error), _) => self.fail("Codex did not begin", &error, events),
            (speech::THREAD, Ok(result), _) => self.opened(parsed(result).unwrap_or_default(), events),
            (speech::THREAD, Err(error), _) => match self.opening.resume.clone() {
                Some(id) => self.fail(&format!("Codex does not go on with the conversation `{id}`"), &error, events),
                None => self.fail("Codex did not begin a conversation", &error, events),
            },
            (_, Ok(result), _) => self.asked(&parsed(result).unwrap_or_default()),
            (_, Err(error), _) if matches!(self.phase, Phase::Asked { .. }) => {
                self.fail("Codex did not take what it was asked", &error, events);
            }
            // A turn that was over when it was to be broken off.
            (_, Err(_), _) => {}
        }
    }

    fn opened(&mut self, answer: Opened, events: &mut Vec<AgentEvent>) {
        let id = answer.thread.id;
        if id.is_empty() {
            return self.finish(Stop::Failed("Codex began a conversation and did not say its id".to_owned()), Phase::Over, events);
        }
        if self.opening.resume.is_some() {
            self.spent.paid(&id, self.opening.used_before);
        }
        self.model = answer.model.or_else(|| self.opening.model.clone());
        self.thread = Some(id.clone());
        events.push(AgentEvent::Started { conversation: id, model: self.model.clone() });
        let prompt = std::mem::take(&mut self.opening.prompt);
        self.ask(&prompt);
    }

    fn ask(&mut self, text: &str) {
        let (id, thread) = (self.next_id(), self.thread.clone().unwrap_or_default());
        self.phase = Phase::Asked { is_broken_off: false };
        self.talk.begin_turn();
        self.tell(&speech::turn(id, &thread, text, self.opening.schema.as_deref()));
    }

    /// The answer to a turn that was asked for, which has an id from then on.
    fn asked(&mut self, answer: &Begun) {
        if !answer.turn.id.is_empty() && !self.turns.contains(&answer.turn.id) {
            self.turns.push(answer.turn.id.clone());
        }
    }

    /// Only now a turn can be broken off or heard into.
    fn begun(&mut self, turn: &Turn) {
        if !self.turns.contains(&turn.id) {
            self.turns.push(turn.id.clone());
        }
        let is_broken_off = matches!(self.phase, Phase::Asked { is_broken_off: true });
        self.phase = Phase::Turn { id: turn.id.clone(), is_broken_off };
        if is_broken_off {
            self.break_off(&turn.id);
        }
        for text in std::mem::take(&mut self.further) {
            self.steer(&turn.id, text);
        }
    }

    fn break_off(&mut self, turn: &str) {
        let (id, thread) = (self.next_id(), self.thread.clone().unwrap_or_default());
        self.tell(&speech::interrupt(id, &thread, turn));
    }

    fn steer(&mut self, turn: &str, text: String) {
        let (id, thread) = (self.next_id(), self.thread.clone().unwrap_or_default());
        self.tell(&speech::steer(id, &thread, turn, &text));
        self.steering.push((id, text));
    }

    /// Whether what was said into a turn arrived. Where it did not, the turn is over or hears nothing, and a turn of its own has to be
    /// asked.
    fn steered(&mut self, text: String, has_arrived: bool, events: &mut Vec<AgentEvent>) {
        if !has_arrived {
            self.further.push_back(text);
        }
        if let (Phase::Ended(stop), true) = (&self.phase, self.steering.is_empty()) {
            let stop = stop.clone();
            self.go_on(stop, events);
        }
    }

    fn completed(&mut self, turn: &Turn, events: &mut Vec<AgentEvent>) -> Option<()> {
        let stop = match (turn.status.as_str(), self.shut_out) {
            ("interrupted" | "failed", Some(status)) => Stop::Refused(format!("the provider refuses the login (API Error: {status})")),
            (status, _) => self.ending(status, turn)?,
        };
        if self.steering.is_empty() {
            self.go_on(stop, events);
        } else {
            self.phase = Phase::Ended(stop);
            events.push(AgentEvent::Working);
        }
        Some(())
    }

    fn ending(&self, status: &str, turn: &Turn) -> Option<Stop> {
        Some(match status {
            "completed" => Stop::Done,
            "interrupted" => Stop::Interrupted,
            "failed" => self.failure(turn.error.as_ref()),
            _ => return None,
        })
    }

    /// A login that was refused once may only have to be renewed, which Codex does. One that is refused again stays refused.
    fn complains(&mut self, event: AgentEvent, events: &mut Vec<AgentEvent>) {
        if let AgentEvent::Retrying { attempt: 2.., status: status @ Some(401 | 403), .. } = event
            && self.shut_out.is_none()
            && self.interrupt()
        {
            self.shut_out = status;
        }
        events.push(event);
    }

    /// A turn is over: what could not be said into it is asked next.
    fn go_on(&mut self, stop: Stop, events: &mut Vec<AgentEvent>) {
        match self.further.pop_front().filter(|_| stop == Stop::Done) {
            Some(text) => {
                self.ask(&text);
                events.push(AgentEvent::Working);
            }
            None => self.finish(stop, Phase::Idle, events),
        }
    }

    fn failure(&self, error: Option<&Complaint>) -> Stop {
        let Some(error) = error else { return Stop::Failed("the turn failed, and Codex does not say why".to_owned()) };
        let failure = Failure { message: &error.message, code: error.code(), status: error.status(), until: self.resets_at };
        stop(&failure, self.opening.begun, &self.zone)
    }

    /// Nothing comes of this session: what was asked for could not be done.
    fn fail(&mut self, what: &str, error: &RpcError, events: &mut Vec<AgentEvent>) {
        let told = format!("{what}: {}", error.message);
        let stop = stop(&Failure::said(&told), self.opening.begun, &self.zone);
        self.finish(stop, Phase::Over, events);
    }

    fn finish(&mut self, stop: Stop, phase: Phase, events: &mut Vec<AgentEvent>) {
        self.phase = phase;
        events.push(self.talk.finish(stop, self.spent.by_model(), self.opening.schema.is_some()));
    }

    /// `None` when the notice is of an unknown kind, or not what its kind promises.
    fn noted(&mut self, method: &str, params: &str, events: &mut Vec<AgentEvent>) -> Option<()> {
        match method {
            "account/rateLimits/updated" => {
                let until = used_up(params);
                self.resets_at = until.flatten().map(Timestamp);
                events.push(AgentEvent::Limit { until: self.resets_at, reached: until.is_some() });
            }
            "mcpServer/startupStatus/updated" => {
                let server: ServerState = parsed(params)?;
                let failed = AgentEvent::ServerFailed { name: server.name, reason: server.error };
                events.push(if server.status == "failed" { failed } else { AgentEvent::Nothing });
            }
            "error"
            | "item/completed"
            | "item/started"
            | "model/rerouted"
            | "thread/tokenUsage/updated"
            | "turn/completed"
            | "turn/plan/updated"
            | "turn/started" => self.told(method, &parsed(params)?, events)?,
            _ if NOTHING.contains(&method) => events.push(AgentEvent::Nothing),
            _ if WORKING.contains(&method) => events.push(AgentEvent::Working),
            _ => return None,
        }
        Some(())
    }

    fn told(&mut self, method: &str, told: &Told<'_>, events: &mut Vec<AgentEvent>) -> Option<()> {
        if method == "thread/tokenUsage/updated" {
            return self.used(told, events);
        }
        if self.thread.as_ref() != Some(&told.thread_id) {
            events.push(AgentEvent::Working);
            return Some(());
        }
        match method {
            "item/started" => self.talk.item(told.item?.get(), Stage::Begun, events)?,
            "item/completed" => self.talk.item(told.item?.get(), Stage::Over, events)?,
            "turn/started" => {
                self.begun(&told.turn);
                events.push(AgentEvent::Working);
            }
            "turn/completed" => self.completed(&told.turn, events)?,
            "turn/plan/updated" => self.talk.plan(events),
            "model/rerouted" => {
                self.model = Some(told.to_model.clone());
                events.push(AgentEvent::Working);
            }
            _ => self.complains(complained(told.error.as_ref()?, told.will_retry), events),
        }
        Some(())
    }

    fn used(&mut self, told: &Told<'_>, events: &mut Vec<AgentEvent>) -> Option<()> {
        let total = told.token_usage?.total.usage();
        let is_ours = self.thread.as_ref() == Some(&told.thread_id);
        if is_ours && !self.turns.contains(&told.turn_id) {
            // What a conversation that goes on had used before is told first.
            self.spent.paid(&told.thread_id, total);
            events.push(AgentEvent::Nothing);
            return Some(());
        }
        let model = self.model.as_deref().unwrap_or(UNNAMED);
        if self.spent.add(&told.thread_id, total, model) && is_ours {
            self.talk.counted(events);
        }
        events.push(AgentEvent::Spent(self.spent.by_model()));
        Some(())
    }

    fn requested(&mut self, id: &RawValue, method: &str, events: &mut Vec<AgentEvent>) {
        let answer = speech::answer(method, self.opening.access, self.opening.permission);
        events.push(if answer.is_some() { AgentEvent::Working } else { AgentEvent::Unknown(method.to_owned()) });
        self.tell(&speech::reply(id, answer));
    }
}

/// `error`: it tries again, or says why it gives up, which the end of the turn repeats.
fn complained(error: &Complaint, will_retry: bool) -> AgentEvent {
    if !will_retry {
        return AgentEvent::Nothing;
    }
    let status = error.status().or_else(|| status(error.additional_details.as_deref().unwrap_or_default()));
    AgentEvent::Retrying { attempt: attempt(&error.message).unwrap_or(1), status, wait_ms: None }
}

impl Reader for ServerReader {
    fn read(&mut self, line: &[u8], events: &mut Vec<AgentEvent>) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return events.push(AgentEvent::Nothing);
        }
        let before = events.len();
        match Line::of(line) {
            None => events.push(AgentEvent::Garbage),
            Some(Line::Other) => events.push(AgentEvent::Unknown("no message of the protocol".to_owned())),
            Some(Line::Answer { id: Some(id), outcome }) => self.answered(id, outcome, events),
            Some(Line::Answer { id: None, .. }) => events.push(AgentEvent::Unknown("an answer to nothing that was asked".to_owned())),
            Some(Line::Note { method, params }) => {
                if self.noted(&method, params, events).is_none() {
                    events.truncate(before);
                    events.push(AgentEvent::Unknown(method.into_owned()));
                }
            }
            Some(Line::Request { id, method, .. }) => self.requested(id, &method, events),
        }
        if events.len() == before {
            events.push(AgentEvent::Working);
        }
    }

    fn take_words(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.words)
    }

    fn interrupt(&mut self) -> bool {
        self.further.clear();
        match &mut self.phase {
            Phase::Asked { is_broken_off } => *is_broken_off = true,
            Phase::Turn { id, is_broken_off } => {
                *is_broken_off = true;
                let id = id.clone();
                self.break_off(&id);
            }
            Phase::Opening | Phase::Ended(_) | Phase::Idle | Phase::Over => return false,
        }
        true
    }

    fn say(&mut self, text: &str) -> bool {
        match &self.phase {
            Phase::Opening | Phase::Asked { is_broken_off: false } | Phase::Ended(Stop::Done) => self.further.push_back(text.to_owned()),
            Phase::Turn { id, is_broken_off: false } => {
                let id = id.clone();
                self.steer(&id, text.to_owned());
            }
            Phase::Idle => self.ask(text),
            Phase::Asked { .. } | Phase::Turn { .. } | Phase::Ended(_) | Phase::Over => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_does_not_start_is_told_of_with_its_reason() {
        let mut reader = ServerReader::speaking(&Opening::default(), TimeZone::UTC);
        let mut told = |status: &str, error: &str| {
            let params = format!(r#"{{"threadId":"t","name":"desk","status":"{status}","error":{error}}}"#);
            let mut events = Vec::new();
            reader.read(format!(r#"{{"method":"mcpServer/startupStatus/updated","params":{params}}}"#).as_bytes(), &mut events);
            events
        };

        assert_eq!([told("starting", "null"), told("ready", "null")], [[AgentEvent::Nothing], [AgentEvent::Nothing]]);
        let failed = AgentEvent::ServerFailed { name: "desk".to_owned(), reason: Some("no such program".to_owned()) };
        assert_eq!(told("failed", r#""no such program""#), [failed]);
    }

    #[test]
    fn a_login_that_is_refused_twice_is_given_up_and_one_that_is_refused_once_is_not() {
        let mut reader = ServerReader::speaking(&Opening::default(), TimeZone::UTC);
        let mut events = Vec::new();
        for line in [
            r#"{"id":1,"result":{}}"#,
            r#"{"id":2,"result":{"thread":{"id":"t"}}}"#,
            r#"{"id":3,"result":{"turn":{"id":"u"}}}"#,
            r#"{"method":"turn/started","params":{"threadId":"t","turn":{"id":"u"}}}"#,
        ] {
            reader.read(line.as_bytes(), &mut events);
        }
        let refused = |attempt: u32| {
            let error =
                format!(r#"{{"message":"Reconnecting... {attempt}/5","additionalDetails":"unexpected status 401 Unauthorized: x"}}"#);
            format!(r#"{{"method":"error","params":{{"threadId":"t","willRetry":true,"error":{error}}}}}"#)
        };
        let _ = reader.take_words();

        reader.read(refused(1).as_bytes(), &mut events);
        assert!(reader.take_words().is_empty());
        reader.read(refused(2).as_bytes(), &mut events);
        assert!(String::from_utf8_lossy(&reader.take_words()).contains("turn/interrupt"));

        let broken_off = br#"{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"u","status":"interrupted"}}}"#;
        reader.read(broken_off, &mut events);
        let Some(AgentEvent::Finished(finish)) = events.last() else { panic!("{events:?}") };
        assert!(matches!(&finish.stop, Stop::Refused(reason) if reason.contains("401")), "{finish:?}");
    }
}
