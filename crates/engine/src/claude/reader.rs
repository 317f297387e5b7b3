//! Reads the lines of `claude -p --output-format stream-json`.

use proctor_domain::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::ending::{Refusal, Totals, finish};
use super::kind::{Kind, Weight};
use super::line::{Block, Head, MessageLine, Quota, QuotaLine, ResultLine, SystemLine};
use crate::agent::{AgentEvent, Reader};

/// The model of messages that the client wrote itself, about an error: no answer of any model.
const SYNTHETIC: &str = "<synthetic>";

/// Reads one session.
#[derive(Default)]
pub(super) struct ClaudeReader {
    /// The message that the agent's last line belonged to: one message comes as a line for each of its parts.
    message: String,
    /// What this program has spent.
    totals: Totals,
    /// Why the provider refused the last request.
    refusal: Refusal,
}

impl Reader for ClaudeReader {
    fn read(&mut self, line: &[u8], events: &mut Vec<AgentEvent>) {
        if line.trim_ascii().is_empty() {
            return events.push(AgentEvent::Nothing);
        }
        if !line.trim_ascii_end().ends_with(b"}") {
            // Half a line, as a killed session leaves it, or one that was cut: that needs no parser.
            return events.push(AgentEvent::Garbage);
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
}

impl ClaudeReader {
    /// `None` when the line is not what its kind promises.
    fn read_kind(&mut self, kind: &Kind<'_>, line: &[u8], events: &mut Vec<AgentEvent>) -> Option<()> {
        match kind.weight() {
            Weight::Assistant => self.assistant(parsed(line)?, events),
            Weight::User => user(parsed(line)?, events),
            Weight::Result => self.result(&parsed(line)?, events),
            Weight::Quota => self.quota(&parsed::<QuotaLine>(line)?.rate_limit_info, events),
            Weight::Started => events.push(started(parsed(line)?)?),
            Weight::Retrying => events.push(retrying(&parsed(line)?)),
            Weight::Working => events.push(whole(line, AgentEvent::Working)?),
            Weight::Nothing => events.push(whole(line, AgentEvent::Nothing)?),
            Weight::Unknown => return None,
        }
        Some(())
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
        events.push(AgentEvent::Finished(Box::new(finish(line, &refusal, self.totals.spent()))));
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
