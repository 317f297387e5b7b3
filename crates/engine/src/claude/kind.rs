//! What kind of line it is, found without reading the whole of it where its head says so.

use std::borrow::Cow;

use super::line::Head;
use super::reader::head;

/// The type of a line, and for `system` its subtype.
pub(super) struct Kind<'a>(Head<'a>);

/// How a line is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    Assistant,
    User,
    Result,
    Quota,
    Started,
    Retrying,
    Asking,
    MessageState,
    Working,
    Nothing,
    Unknown,
}

/// Types that say that something is being done.
const WORKING: [&str; 3] = ["stream_event", "streamlined_text", "streamlined_tool_use_summary"];
/// Types that say nothing about the work.
const WEIGHTLESS: [&str; 14] = [
    "api_metrics",
    "attachment",
    "auth_status",
    "control_cancel_request",
    "control_response",
    "conversation_reset",
    "keep_alive",
    "os_notification",
    "prompt_suggestion",
    "tombstone",
    // Printed by the clock while a tool runs, whatever the tool does.
    "tool_progress",
    "tool_use_summary",
    "transcript_mirror",
    "update_environment_variables",
];
/// Subtypes of `system` that say that something is being done.
const WORKING_SYSTEM: [&str; 6] =
    ["hook_progress", "task_notification", "task_progress", "task_started", "task_updated", "thinking_tokens"];
/// Subtypes of `system` that say nothing about the work.
const WEIGHTLESS_SYSTEM: [&str; 34] = [
    "agents_killed",
    "api_error",
    "away_summary",
    "background_tasks_changed",
    "commands_changed",
    "compact_boundary",
    "control_request_progress",
    "elicitation_complete",
    "files_persisted",
    "hook_response",
    "hook_started",
    "informational",
    "instruction_size_warning",
    "local_command_output",
    "memory_recall",
    "memory_saved",
    "microcompact_boundary",
    "mirror_error",
    "model_consent_fallback",
    "model_fallback",
    "model_refusal_fallback",
    "model_refusal_no_fallback",
    "notification",
    "permission_denied",
    "permission_retry",
    "plugin_install",
    "post_turn_summary",
    "session_metadata",
    "session_state_changed",
    "session_title_changed",
    "status",
    "stop_hook_summary",
    "task_summary",
    "turn_duration",
];

impl<'a> Kind<'a> {
    /// The kind of this line; `None` when it is no JSON object with a type.
    pub(super) fn of(line: &'a [u8]) -> Option<Self> {
        Self::at_first_sight(line).or_else(|| head(line).map(Self))
    }

    /// Most lines, and all the long ones, begin with their type.
    fn at_first_sight(line: &'a [u8]) -> Option<Self> {
        let (kind, rest) = word(line.strip_prefix(br#"{"type":""#)?)?;
        if kind != "system" {
            return Some(Self(Head { kind: Cow::Borrowed(kind), subtype: Cow::Borrowed("") }));
        }
        let (subtype, _) = word(rest.strip_prefix(br#","subtype":""#)?)?;
        Some(Self(Head { kind: Cow::Borrowed(kind), subtype: Cow::Borrowed(subtype) }))
    }

    pub(super) fn weight(&self) -> Weight {
        match self.0.kind.as_ref() {
            "assistant" => Weight::Assistant,
            "user" => Weight::User,
            "result" => Weight::Result,
            "rate_limit_event" => Weight::Quota,
            "control_request" => Weight::Asking,
            "command_lifecycle" => Weight::MessageState,
            "system" => self.system_weight(),
            kind if WORKING.contains(&kind) => Weight::Working,
            kind if WEIGHTLESS.contains(&kind) => Weight::Nothing,
            _ => Weight::Unknown,
        }
    }

    fn system_weight(&self) -> Weight {
        match self.0.subtype.as_ref() {
            "init" => Weight::Started,
            "api_retry" => Weight::Retrying,
            subtype if WORKING_SYSTEM.contains(&subtype) => Weight::Working,
            subtype if WEIGHTLESS_SYSTEM.contains(&subtype) => Weight::Nothing,
            _ => Weight::Unknown,
        }
    }

    /// As it is shown to a person: `result`, `system/init`.
    pub(super) fn name(&self) -> String {
        let Head { kind, subtype } = &self.0;
        if kind == "system" { format!("{kind}/{subtype}") } else { kind.to_string() }
    }
}

/// The name up to the next quote, and what follows it.
fn word(line: &[u8]) -> Option<(&str, &[u8])> {
    let end = line.iter().take(64).position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'))?;
    let (word, rest) = line.split_at(end);
    Some((std::str::from_utf8(word).ok()?, rest.strip_prefix(b"\"")?))
}
