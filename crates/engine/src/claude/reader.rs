//! One session of `claude -p` with stream-json both ways: what its lines mean, and what is said to it.

use proctor_domain::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::ending::{Refusal, Totals, finish};
use super::kind::{Kind, Weight};
use super::line::{Block, ControlLine, Head, MessageLine, MessageState, Quota, QuotaLine, ResultLine, Servers, SystemLine};
use super::speech;
use crate::agent::{Access, AgentEvent, Finish, Opening, Permission, Reader, Stop};

/// The model of messages that the client wrote itself, about an error: no answer of any model.
const SYNTHETIC: &str = "<synthetic>";

/// How it asks whether it may use a tool.
const MAY_USE: &str = "can_use_tool";
/// A message that it has and did not hand to its model yet.
const QUEUED: &str = "queued";
/// One that its model gets now.
const STARTED: &str = "started";

/// A server of tools that did not start.
const FAILED: &str = "failed";

/// Speaks one session, or reads the lines of one that is over.
#[derive(Default)]
pub(super) struct ClaudeReader {
    /// How it is spoken to; `None` where only lines are left.
    voice: Option<Voice>,
    /// The message that the agent's last line belonged to: one message comes as a line for each of its parts.
    message: String,
    /// What this program has spent.
    totals: Totals,
    /// Why the provider refused the last request.
    refusal: Refusal,
    /// Whether it was told which servers did not start: each message begins with the whole list.
    knows_servers: bool,
}

/// What is said to it.
struct Voice {
    access: Access,
    permission: Permission,
    /// What is to be written next.
    words: Vec<u8>,
    /// The ids of further messages that its model has not got yet, as far as it says so.
    unheard: Vec<String>,
    /// Whether it says what becomes of messages.
    tells: bool,
    /// An end that is none if it goes on with a message that came too late for it.
    held: Option<Box<Finish>>,
    /// The result of an end that was none.
    result: Option<String>,
    is_breaking_off: bool,
}

impl Voice {
    fn tell(&mut self, message: &Value) {
        self.words.extend_from_slice(message.to_string().as_bytes());
        self.words.push(b'\n');
    }

    /// Answers what it asks for.
    fn answer(&mut self, line: &ControlLine<'_>) {
        let may = self.access == Access::Full && self.permission == Permission::Bypass;
        let answer = match line.request.subtype.as_ref() {
            MAY_USE if may && !self.is_breaking_off => speech::allow(&line.request_id, line.request.input),
            MAY_USE => speech::deny(&line.request_id, self.access == Access::ReadOnly),
            other => speech::refuse(&line.request_id, other),
        };
        self.tell(&answer);
    }

    /// Learns what becomes of a message. The end that was held back, where it is one after all: the message was given up.
    fn learn(&mut self, line: &MessageState<'_>) -> Option<Box<Finish>> {
        self.tells = true;
        let was_unheard = self.unheard.iter().any(|id| *id == line.command_uuid);
        if line.state == QUEUED || !was_unheard {
            return None;
        }
        self.unheard.retain(|id| *id != line.command_uuid);
        if line.state == STARTED {
            self.result = self.held.take().and_then(|held| held.result).or(self.result.take());
        }
        self.held.take_if(|_| self.unheard.is_empty())
    }
}

impl ClaudeReader {
    /// Of a session that begins so; of one that is over, nothing need be known.
    pub(super) fn new(opening: &Opening) -> Self {
        if opening.directory.as_os_str().is_empty() {
            return Self::default();
        }
        let mut voice = Voice {
            access: opening.access,
            permission: opening.permission,
            words: Vec::new(),
            unheard: Vec::new(),
            tells: false,
            held: None,
            result: None,
            is_breaking_off: false,
        };
        voice.tell(&speech::message(&speech::fresh_id(), &opening.prompt));
        Self { voice: Some(voice), ..Self::default() }
    }
}

impl Reader for ClaudeReader {
    fn read(&mut self, line: &[u8], events: &mut Vec<AgentEvent>) {
        if let Some(event) = AgentEvent::at_sight(line) {
            return events.push(event);
        }
        let before = events.len();
        let Some(kind) = Kind::of(line) else { return events.push(AgentEvent::Garbage) };
        if self.read_kind(&kind, line, events).is_none() {
            events.truncate(before);
            // Whole, but not built as it was when this was written: that is something new, not something broken.
            let whole = serde_json::from_slice::<IgnoredAny>(line).is_ok();
            events.push(if whole { AgentEvent::Unknown(kind.name()) } else { AgentEvent::Garbage });
        }
    }

    fn close(&mut self, _exit_code: Option<i32>, events: &mut Vec<AgentEvent>) {
        // It went without going on.
        let held = self.voice.as_mut().and_then(|voice| voice.held.take());
        events.extend(held.map(AgentEvent::Finished));
    }

    fn take_words(&mut self) -> Vec<u8> {
        self.voice.as_mut().map(|voice| std::mem::take(&mut voice.words)).unwrap_or_default()
    }

    fn interrupt(&mut self) -> bool {
        let Some(voice) = &mut self.voice else { return false };
        voice.is_breaking_off = true;
        voice.tell(&speech::interrupt());
        true
    }

    fn say(&mut self, text: &str) -> bool {
        let Some(voice) = self.voice.as_mut().filter(|voice| !voice.is_breaking_off) else { return false };
        let id = speech::fresh_id();
        voice.tell(&speech::message(&id, text));
        voice.unheard.push(id);
        true
    }

    /// The pieces of a message, which comes whole after them.
    fn passing(&self) -> &'static [u8] {
        br#"{"type":"stream_event","#
    }
}

impl ClaudeReader {
    /// `None` when the line is not what its kind promises.
    fn read_kind(&mut self, kind: &Kind<'_>, line: &[u8], events: &mut Vec<AgentEvent>) -> Option<()> {
        match kind.weight() {
            Weight::Assistant => self.assistant(parsed(line)?, events),
            Weight::User => user(parsed(line)?, events),
            Weight::Result => self.result(&parsed(line)?, events),
            Weight::Quota => self.quota(&parsed::<QuotaLine>(line)?.rate_limit_info, events),
            Weight::Started => {
                events.push(started(parsed(line)?)?);
                self.servers(line, events);
            }
            Weight::Retrying => self.retries(&parsed(line)?, events),
            Weight::Asking => self.asked(&parsed(line)?, events),
            Weight::MessageState => self.message_state(&parsed(line)?, events),
            Weight::Working => events.push(whole(line, AgentEvent::Working)?),
            Weight::Nothing => events.push(whole(line, AgentEvent::Nothing)?),
            Weight::Unknown => return None,
        }
        Some(())
    }

    /// A line that says nothing of servers is as good as one of which all started.
    fn servers(&mut self, line: &[u8], events: &mut Vec<AgentEvent>) {
        if std::mem::replace(&mut self.knows_servers, true) {
            return;
        }
        let servers = parsed::<Servers<'_>>(line).map(|line| line.mcp_servers).unwrap_or_default();
        let failed = servers.into_iter().filter(|server| server.status == FAILED);
        events.extend(failed.map(|server| AgentEvent::ServerFailed { name: server.name.into_owned(), reason: None }));
    }

    fn assistant(&mut self, line: MessageLine<'_>, events: &mut Vec<AgentEvent>) {
        let by_another = line.parent_tool_use_id.is_some();
        if line.message.model == SYNTHETIC || line.is_api_error_message == Some(true) {
            if !by_another {
                self.refusal.learn(&line);
            }
            return events.push(AgentEvent::Nothing);
        }
        if by_another {
            // An agent that ours set to work: its calls are worth a line in a log, its words are no claim of ours.
            events.extend(line.message.content.0.into_iter().map(|block| tool_call(block).unwrap_or(AgentEvent::Working)));
            return;
        }
        self.refusal = Refusal::default();
        if self.message != line.message.id {
            self.message = line.message.id.into_owned();
            events.push(AgentEvent::Turn);
        }
        events.extend(line.message.content.0.into_iter().map(said));
    }

    fn quota(&mut self, quota: &Quota, events: &mut Vec<AgentEvent>) {
        let reached = is_used_up(quota);
        let until = quota.resets_at.and_then(from_seconds);
        self.refusal.quota = reached.then_some(until);
        events.push(AgentEvent::Limit { until, reached });
    }

    fn result(&mut self, line: &ResultLine<'_>, events: &mut Vec<AgentEvent>) {
        self.totals.add(line);
        let refusal = std::mem::take(&mut self.refusal);
        let mut finish = Box::new(finish(line, &refusal, self.totals.spent()));
        if let Some(voice) = &mut self.voice {
            finish.result = finish.result.or(voice.result.take());
            if finish.stop == Stop::Done && voice.tells && !voice.unheard.is_empty() {
                events.push(AgentEvent::Spent(finish.spent.clone()));
                voice.held = Some(finish);
                return;
            }
        }
        events.push(AgentEvent::Finished(finish));
    }

    /// A login that was refused once may only have to be renewed, which the client does. One that is refused again stays
    /// refused, and the client's waits would only grow.
    fn retries(&mut self, line: &SystemLine, events: &mut Vec<AgentEvent>) {
        if matches!(line.error_status, Some(401 | 403)) && line.attempt >= Some(2) && self.refusal.shut_out.is_none() && self.interrupt() {
            self.refusal.shut_out = line.error_status;
        }
        events.push(retrying(line));
    }

    fn asked(&mut self, line: &ControlLine<'_>, events: &mut Vec<AgentEvent>) {
        if let Some(voice) = &mut self.voice {
            voice.answer(line);
        }
        events.push(AgentEvent::Nothing);
    }

    fn message_state(&mut self, line: &MessageState<'_>, events: &mut Vec<AgentEvent>) {
        let end = self.voice.as_mut().and_then(|voice| voice.learn(line));
        events.push(end.map_or(AgentEvent::Nothing, AgentEvent::Finished));
    }
}

fn parsed<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Option<T> {
    serde_json::from_slice(line).ok()
}

/// The head of a line says nothing about its end.
fn whole(line: &[u8], event: AgentEvent) -> Option<AgentEvent> {
    parsed::<IgnoredAny>(line).map(|_| event)
}

fn started(line: SystemLine) -> Option<AgentEvent> {
    Some(AgentEvent::Started { conversation: line.session_id?, model: line.model })
}

fn retrying(line: &SystemLine) -> AgentEvent {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast from float saturates, and so long a wait is one")]
    let wait_ms = line.retry_delay_ms.map(|wait| wait.ceil() as u64);
    AgentEvent::Retrying { attempt: line.attempt.unwrap_or(1), status: line.error_status, wait_ms }
}

fn user(line: MessageLine<'_>, events: &mut Vec<AgentEvent>) {
    let before = events.len();
    for block in line.message.content.0 {
        if block.kind == "tool_result" {
            events.push(AgentEvent::ToolResult {
                id: block.tool_use_id.unwrap_or_default(),
                failed: block.is_error == Some(true),
                text: block.content.unwrap_or_default().0,
            });
        }
    }
    if events.len() == before {
        // What the client itself says to the model: "call the tool now", "interrupted".
        events.push(AgentEvent::Nothing);
    }
}

fn said(block: Block<'_>) -> AgentEvent {
    match block.kind.as_ref() {
        "text" => AgentEvent::Text(block.text.unwrap_or_default()),
        "thinking" => AgentEvent::Thinking(block.thinking.unwrap_or_default()),
        // Thoughts that the provider keeps to itself, and parts that are still to be invented.
        _ => tool_call(block).unwrap_or(AgentEvent::Working),
    }
}

/// `tool_use`, and what the provider's own tools are called by.
fn tool_call(block: Block<'_>) -> Option<AgentEvent> {
    let input = block.input.map_or_else(|| "{}".to_owned(), |input| input.get().to_owned());
    block.kind.ends_with("tool_use").then(|| AgentEvent::ToolCall {
        id: block.id.unwrap_or_default(),
        name: block.name.unwrap_or_default(),
        input,
    })
}

/// Whether requests are refused, which paying for more than the quota avoids.
pub(super) fn is_used_up(quota: &Quota) -> bool {
    quota.status.as_deref() == Some("rejected") && quota.is_using_overage != Some(true)
}

/// A moment that the provider gives in seconds.
pub(super) fn from_seconds(seconds: i64) -> Option<Timestamp> {
    seconds.checked_mul(1_000).filter(|millis| *millis > 0).map(Timestamp)
}

/// The head of a line that does not begin with it.
pub(super) fn head(line: &[u8]) -> Option<Head<'_>> {
    parsed(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(access: Access, permission: Permission) -> ClaudeReader {
        let mut reader = ClaudeReader::new(&Opening {
            prompt: "Do it.".to_owned(),
            access,
            permission,
            directory: "/work".into(),
            ..Opening::default()
        });
        assert_eq!(spoken(&mut reader).len(), 1);
        reader
    }

    /// What is said next, line by line.
    fn spoken(reader: &mut ClaudeReader) -> Vec<Value> {
        reader.take_words().split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }

    fn read(reader: &mut ClaudeReader, line: &str) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        reader.read(line.as_bytes(), &mut events);
        events
    }

    fn state(id: &Value, state: &str) -> String {
        format!(r#"{{"type":"command_lifecycle","command_uuid":{id},"state":"{state}","uuid":"u"}}"#)
    }

    const DONE: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"Done."}"#;
    const ASKS: &str =
        r#"{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Write","input":{"a":1}}}"#;

    fn is_end(events: &[AgentEvent]) -> bool {
        matches!(events, [AgentEvent::Finished(finish)] if finish.stop == Stop::Done)
    }

    #[test]
    fn a_login_that_is_refused_twice_is_given_up_and_one_that_is_refused_once_is_not() {
        let mut reader = begun(Access::Full, Permission::Bypass);
        let refused = |attempt: u32| format!(r#"{{"type":"system","subtype":"api_retry","attempt":{attempt},"error_status":401}}"#);
        let broken_off = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming"}"#;

        read(&mut reader, &refused(1));
        assert_eq!(spoken(&mut reader), [Value::Null; 0]);
        read(&mut reader, &refused(2));
        assert_eq!(spoken(&mut reader)[0]["request"]["subtype"], "interrupt");

        let end = read(&mut reader, broken_off);
        let [AgentEvent::Finished(finish)] = end.as_slice() else { panic!("{end:?}") };
        assert!(matches!(&finish.stop, Stop::Refused(reason) if reason.contains("401")), "{finish:?}");
    }

    #[test]
    fn leave_is_given_only_to_one_that_may_act_without_asking() {
        for (access, permission, behavior) in [
            (Access::ReadOnly, Permission::Ask, "deny"),
            (Access::ReadOnly, Permission::Bypass, "deny"),
            (Access::Full, Permission::Ask, "deny"),
            (Access::Full, Permission::Bypass, "allow"),
        ] {
            let mut reader = begun(access, permission);

            assert_eq!(read(&mut reader, ASKS), [AgentEvent::Nothing]);

            let said = spoken(&mut reader).remove(0);
            assert_eq!((&said["response"]["request_id"], &said["response"]["response"]["behavior"]), (&"r1".into(), &behavior.into()));
        }
    }

    #[test]
    fn what_else_it_asks_for_is_refused_and_one_that_breaks_off_gets_no_leave() {
        let mut reader = begun(Access::Full, Permission::Bypass);

        let _ = read(&mut reader, &ASKS.replace("can_use_tool", "elicitation"));
        assert_eq!(spoken(&mut reader)[0]["response"]["subtype"], "error");
        assert!(reader.interrupt());
        let _ = read(&mut reader, ASKS);

        let said = spoken(&mut reader);
        assert_eq!((&said[0]["request"]["subtype"], &said[1]["response"]["response"]["behavior"]), (&"interrupt".into(), &"deny".into()));
        assert!(!reader.say("more"));
    }

    #[test]
    fn a_result_before_a_word_was_heard_is_not_the_end_and_one_after_it_is() {
        let mut reader = begun(Access::Full, Permission::Bypass);
        assert!(reader.say("more"));
        let id = spoken(&mut reader)[0]["uuid"].clone();
        let _ = read(&mut reader, &state(&id, "queued"));

        assert_eq!(read(&mut reader, DONE), [AgentEvent::Spent(Vec::new())]);
        let _ = read(&mut reader, &state(&id, "started"));

        assert!(is_end(&read(&mut reader, DONE)));
    }

    #[test]
    fn an_end_that_was_held_back_counts_when_nothing_comes_after_it() {
        let mut reader = begun(Access::Full, Permission::Bypass);
        assert!(reader.say("more"));
        let id = spoken(&mut reader)[0]["uuid"].clone();
        let _ = (read(&mut reader, &state(&id, "queued")), read(&mut reader, DONE));

        let mut events = Vec::new();
        reader.close(Some(0), &mut events);

        assert!(is_end(&events), "{events:?}");
    }

    #[test]
    fn an_end_that_was_held_back_counts_when_the_word_is_given_up() {
        let mut reader = begun(Access::Full, Permission::Bypass);
        assert!(reader.say("more"));
        let id = spoken(&mut reader)[0]["uuid"].clone();
        let _ = (read(&mut reader, &state(&id, "queued")), read(&mut reader, DONE));

        assert!(is_end(&read(&mut reader, &state(&id, "cancelled"))));
    }

    #[test]
    fn a_version_that_tells_nothing_of_messages_is_believed_at_its_result() {
        let mut reader = begun(Access::Full, Permission::Bypass);
        assert!(reader.say("more"));

        assert!(is_end(&read(&mut reader, DONE)));
    }

    #[test]
    fn of_a_session_that_is_over_nothing_is_said() {
        let mut reader = ClaudeReader::new(&Opening { prompt: "Do it.".to_owned(), ..Opening::default() });

        assert!(reader.take_words().is_empty() && !reader.say("more") && !reader.interrupt());
    }
}
