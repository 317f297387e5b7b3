//! What a host is told, in its own form.

use serde_json::{Value, json};

use crate::args::hook::{HookEvent, Host};

/// What there is to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    Nothing,
    /// Something that the agent should know.
    Tell(String),
    /// It is not to be done; the agent is told what to do instead.
    Deny(String),
}

/// The object for standard output, if there is to be one.
pub(super) fn document(host: Host, event: &HookEvent, reply: &Reply) -> Option<Value> {
    match (host, reply) {
        (Host::ClaudeCode | Host::Codex, Reply::Nothing) => None,
        // An empty answer is an error in Cursor's log; an empty object leaves everything as it is.
        (Host::Cursor, Reply::Nothing) => Some(json!({})),
        (Host::ClaudeCode | Host::Codex, Reply::Tell(text)) => {
            Some(json!({"hookSpecificOutput": {"hookEventName": event_name(event), "additionalContext": text}}))
        }
        (Host::Cursor, Reply::Tell(text)) => Some(json!({"additional_context": text})),
        (Host::ClaudeCode | Host::Codex, Reply::Deny(text)) => Some(json!({"hookSpecificOutput": {
            "hookEventName": event_name(event), "permissionDecision": "deny", "permissionDecisionReason": text,
        }})),
        (Host::Cursor, Reply::Deny(text)) => Some(json!({"permission": "deny", "user_message": text, "agent_message": text})),
    }
}

fn event_name(event: &HookEvent) -> &'static str {
    match event {
        HookEvent::SessionStart => "SessionStart",
        HookEvent::PreEdit | HookEvent::PreRead(_) => "PreToolUse",
    }
}
