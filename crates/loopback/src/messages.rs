//! Anthropic's Messages API.

use serde_json::{Value, json};

use crate::answer::{Answer, Block, Stop};
use crate::conversation::{Conversation, Said, delivery, joined, list, model, text_at};
use crate::format::{Asked, ErrorAnswer, Format, Limit, Refused};
use crate::http::{Event, Request};
use crate::script::{Usage, Window};
use crate::text::{DELTA, chunks};
use crate::tools::Tool;

/// The header by which `claude` says whose request it is.
const SESSION: &str = "x-claude-code-session-id";
/// Clients send it back unread.
const SIGNATURE: &str = "c2NyaXB0ZWQ=";

/// The format of `claude`.
pub(crate) struct Messages;

impl Format for Messages {
    fn asked(&self, path: &str) -> Option<Asked> {
        match path {
            "/v1/messages" => Some(Asked::Answer),
            "/v1/messages/count_tokens" => Some(Asked::TokenCount),
            _ => None,
        }
    }

    fn read(&self, request: &Request, body: &Value) -> Conversation {
        let session = request.header(SESSION).or(text_at(&body["metadata"], "user_id"));
        let mut conversation = Conversation {
            model: model(body),
            session: session.unwrap_or_default().to_owned(),
            tools: list(&body["tools"]).iter().filter_map(|tool| text_at(tool, "name")).map(Tool::plain).collect(),
            delivery: delivery(body),
            messages: list(&body["messages"]).len(),
            ..Conversation::default()
        };
        for message in list(&body["messages"]) {
            conversation.hear(match text_at(message, "role").unwrap_or_default() {
                "user" => read_user(&message["content"]),
                "assistant" => Said::Answer,
                _ => Said::Other,
            });
        }
        conversation
    }

    fn whole(&self, answer: &Answer) -> Value {
        let content: Vec<Value> = answer.blocks.iter().map(whole_block).collect();
        message(answer, &json!(content), &json!(stop_reason(&answer.stop)), &used(answer.usage, answer.usage.output))
    }

    fn streamed(&self, answer: &Answer) -> Vec<Event> {
        let beginning = message(answer, &json!([]), &Value::Null, &used(answer.usage, 1));
        let mut events = vec![json!({"type": "message_start", "message": beginning})];
        for (index, block) in answer.blocks.iter().enumerate() {
            let (start, deltas) = block_events(block);
            events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
            events.extend(deltas.into_iter().map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})));
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
        events.push(json!({
            "type": "message_delta", "delta": {"stop_reason": stop_reason(&answer.stop), "stop_sequence": null},
            "usage": used(answer.usage, answer.usage.output),
        }));
        events.push(json!({"type": "message_stop"}));
        events.iter().map(Event::named_by_type).collect()
    }

    fn failure(&self, _answer: &Answer, refused: &Refused) -> Event {
        Event::named_by_type(&self.refusal(refused).body)
    }

    fn refusal(&self, refused: &Refused) -> ErrorAnswer {
        let kind = refused.kind.unwrap_or_else(|| error_type(refused.status));
        ErrorAnswer {
            body: json!({"type": "error", "error": {"type": kind, "message": refused.message}}),
            headers: refused.limit.map(limit_headers).unwrap_or_default(),
        }
    }
}

/// A message with a tool's result goes on with the same answer, whatever stands beside it.
fn read_user(content: &Value) -> Said {
    match list(content).iter().rfind(|block| block["type"] == "tool_result") {
        Some(result) => Said::Output(joined(&result["content"])),
        None => Said::Prompt(joined(content)),
    }
}

fn stop_reason(stop: &Stop) -> &str {
    match stop {
        Stop::End => "end_turn",
        Stop::ToolUse => "tool_use",
        Stop::MaxTokens => "max_tokens",
        Stop::Refusal => "refusal",
        Stop::Other(reason) => reason,
    }
}

fn message(answer: &Answer, content: &Value, stop_reason: &Value, usage: &Value) -> Value {
    json!({
        "id": format!("msg_{}", answer.id), "type": "message", "role": "assistant", "model": answer.model, "content": content,
        "stop_reason": stop_reason, "stop_sequence": null, "usage": usage,
    })
}

fn used(usage: Usage, output: u64) -> Value {
    json!({
        "input_tokens": usage.input, "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read, "output_tokens": output, "service_tier": "standard",
    })
}

fn whole_block(block: &Block) -> Value {
    match block {
        Block::Thinking { text, .. } => json!({"type": "thinking", "thinking": text, "signature": SIGNATURE}),
        Block::Text { text, .. } => json!({"type": "text", "text": text}),
        Block::ToolUse { id, call } => {
            json!({"type": "tool_use", "id": format!("toolu_{id}"), "name": call.name, "input": call.input.to_json()})
        }
    }
}

fn block_events(block: &Block) -> (Value, Vec<Value>) {
    match block {
        Block::Thinking { text, .. } => {
            let mut deltas: Vec<Value> = chunks(text, DELTA).map(|chunk| json!({"type": "thinking_delta", "thinking": chunk})).collect();
            deltas.push(json!({"type": "signature_delta", "signature": SIGNATURE}));
            (json!({"type": "thinking", "thinking": "", "signature": ""}), deltas)
        }
        Block::Text { text, .. } => {
            (json!({"type": "text", "text": ""}), chunks(text, DELTA).map(|chunk| json!({"type": "text_delta", "text": chunk})).collect())
        }
        Block::ToolUse { id, call } => {
            let input = call.input.to_json().to_string();
            let deltas = chunks(&input, DELTA).map(|chunk| json!({"type": "input_json_delta", "partial_json": chunk})).collect();
            (json!({"type": "tool_use", "id": format!("toolu_{id}"), "name": call.name, "input": {}}), deltas)
        }
    }
}

fn error_type(status: u16) -> &'static str {
    match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        _ => "api_error",
    }
}

/// What Anthropic says about the limit of a plan.
fn limit_headers(limit: Limit) -> Vec<(String, String)> {
    let (claim, short) = match limit.window {
        Window::FiveHours => ("five_hour", "5h"),
        Window::SevenDays => ("seven_day", "7d"),
    };
    let reset = limit.reset.to_string();
    let headers = [
        ("status", "rejected"),
        ("reset", &reset),
        ("representative-claim", claim),
        (&format!("{short}-status"), "rejected"),
        (&format!("{short}-reset"), &reset),
        (&format!("{short}-utilization"), "1.0"),
        ("overage-status", "rejected"),
        ("overage-disabled-reason", "org_level_disabled"),
    ];
    headers.into_iter().map(|(name, value)| (format!("anthropic-ratelimit-unified-{name}"), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(messages: &Value) -> (String, usize, String) {
        let conversation = Messages.read(&Request::default(), &json!({"messages": messages}));
        (conversation.prompt, conversation.answers, conversation.last_tool_output)
    }

    #[test]
    fn the_last_prompt_counts_and_tool_results_are_none() {
        let messages = json!([
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": "answer"},
            {"role": "user", "content": [{"type": "text", "text": "<system-reminder>\nfirst</system-reminder>"}, {"type": "text", "text": "second"}]},
            {"role": "system", "content": "first"},
            {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "out"}]}, {"type": "text", "text": "by the way"}]},
        ]);

        assert_eq!(read(&messages), ("second".to_owned(), 1, "out".to_owned()));
    }

    #[test]
    fn what_the_client_says_of_its_own_begins_no_answer() {
        let messages = json!([
            {"role": "user", "content": "judge this"},
            {"role": "assistant", "content": "fine"},
            {"role": "user", "content": "[structured-output-enforce] use the tool"},
            {"role": "assistant", "content": "fine, I said"},
            {"role": "user", "content": "<system-reminder>\nbe brief</system-reminder>"},
            {"role": "assistant", "content": "fine"},
            {"role": "user", "content": [{"type": "text", "text": "<system-reminder>be brief</system-reminder>"}]},
        ]);

        assert_eq!(read(&messages), ("judge this".to_owned(), 3, String::new()));
    }

    #[test]
    fn shapes_that_no_client_sends_are_read_as_nothing() {
        for messages in [json!(null), json!([1, "x", {"role": 3}, {"role": "user", "content": {"a": 1}}]), json!({"role": "user"})] {
            assert_eq!(read(&messages), (String::new(), 0, String::new()), "{messages}");
        }
    }
}
