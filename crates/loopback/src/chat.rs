//! OpenAI's Chat Completions, which many servers and clients speak, `opencode` among them.

use serde_json::{Value, json};

use crate::answer::{Answer, Block, Stop};
use crate::conversation::{Conversation, Said, delivery, joined, list, model, text_at};
use crate::format::{Asked, ErrorAnswer, Format, Refused};
use crate::http::{Event, Request};
use crate::openai;
use crate::script::Usage;
use crate::text::{DELTA, chunks};
use crate::tools::{Tool, ToolCall};

/// The header by which `opencode` says whose request it is.
const SESSION: &str = "x-session-id";

/// The format of `opencode`, when it speaks to a server of the user's own.
pub(crate) struct Chat;

impl Format for Chat {
    fn asked(&self, path: &str) -> Option<Asked> {
        (path == "/v1/chat/completions").then_some(Asked::Answer)
    }

    fn read(&self, request: &Request, body: &Value) -> Conversation {
        let session = request.header(SESSION).or(text_at(body, "user"));
        let mut conversation = Conversation {
            model: model(body),
            session: session.unwrap_or_default().to_owned(),
            tools: list(&body["tools"]).iter().filter_map(|tool| text_at(&tool["function"], "name")).map(Tool::plain).collect(),
            delivery: delivery(body),
            form: openai::form(&body["response_format"], &body["response_format"]["json_schema"]["schema"]),
            messages: list(&body["messages"]).len(),
            ..Conversation::default()
        };
        for message in list(&body["messages"]) {
            let text = || joined(&message["content"]);
            conversation.hear(match text_at(message, "role").unwrap_or_default() {
                "user" => Said::Prompt(text()),
                "tool" => Said::Output(text()),
                "assistant" => Said::Answer,
                _ => Said::Other,
            });
        }
        conversation
    }

    fn whole(&self, answer: &Answer) -> Value {
        let mut message = json!({"role": "assistant", "content": null});
        let (text, thinking) = (texts(answer), thoughts(answer));
        if !text.is_empty() {
            message["content"] = json!(text);
        }
        if !thinking.is_empty() {
            message["reasoning_content"] = json!(thinking);
        }
        let calls: Vec<Value> = calls(answer).map(|(id, call)| tool_call(id, call, &call.input.to_text())).collect();
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason(&answer.stop), "logprobs": null});
        let mut whole = envelope(answer, "chat.completion", &json!([choice]));
        whole["usage"] = used(answer.usage);
        whole
    }

    fn streamed(&self, answer: &Answer) -> Vec<Event> {
        let mut deltas = vec![json!({"role": "assistant", "content": ""})];
        deltas.extend(chunks(&thoughts(answer), DELTA).map(|chunk| json!({"reasoning_content": chunk})));
        deltas.extend(chunks(&texts(answer), DELTA).map(|chunk| json!({"content": chunk})));
        for (index, (id, call)) in calls(answer).enumerate() {
            let mut begun = tool_call(id, call, "");
            begun["index"] = json!(index);
            deltas.push(json!({"tool_calls": [begun]}));
            let arguments = call.input.to_text();
            deltas
                .extend(chunks(&arguments, DELTA).map(|chunk| json!({"tool_calls": [{"index": index, "function": {"arguments": chunk}}]})));
        }
        let mut choices: Vec<Value> = deltas.iter().map(|delta| choice(delta, &Value::Null)).collect();
        choices.push(choice(&json!({}), &json!(finish_reason(&answer.stop))));
        let mut events: Vec<Value> = choices.iter().map(|choices| envelope(answer, "chat.completion.chunk", choices)).collect();
        let mut usage = envelope(answer, "chat.completion.chunk", &json!([]));
        usage["usage"] = used(answer.usage);
        events.push(usage);
        let mut events: Vec<Event> = events.iter().map(Event::unnamed).collect();
        events.push(Event { name: None, text: "[DONE]".to_owned() });
        events
    }

    fn failure(&self, _answer: &Answer, refused: &Refused) -> Event {
        Event::unnamed(&openai::refusal(refused).body)
    }

    fn refusal(&self, refused: &Refused) -> ErrorAnswer {
        openai::refusal(refused)
    }
}

fn texts(answer: &Answer) -> String {
    let texts = answer.blocks.iter().filter_map(|block| match block {
        Block::Text { text, .. } => Some(text.as_str()),
        Block::Thinking { .. } | Block::ToolUse { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn thoughts(answer: &Answer) -> String {
    let thoughts = answer.blocks.iter().filter_map(|block| match block {
        Block::Thinking { text, .. } => Some(text.as_str()),
        Block::Text { .. } | Block::ToolUse { .. } => None,
    });
    thoughts.collect::<Vec<_>>().join("\n")
}

fn calls(answer: &Answer) -> impl Iterator<Item = (&str, &ToolCall)> {
    answer.blocks.iter().filter_map(|block| match block {
        Block::ToolUse { id, call } => Some((id.as_str(), call)),
        Block::Thinking { .. } | Block::Text { .. } => None,
    })
}

fn tool_call(id: &str, call: &ToolCall, arguments: &str) -> Value {
    json!({"id": format!("call_{id}"), "type": "function", "function": {"name": call.name, "arguments": arguments}})
}

fn envelope(answer: &Answer, object: &str, choices: &Value) -> Value {
    json!({"id": format!("chatcmpl-{}", answer.id), "object": object, "created": 0, "model": answer.model, "choices": choices})
}

fn choice(delta: &Value, finish_reason: &Value) -> Value {
    json!([{"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": null}])
}

fn finish_reason(stop: &Stop) -> &str {
    match stop {
        Stop::End => "stop",
        Stop::ToolUse => "tool_calls",
        Stop::MaxTokens => "length",
        Stop::Refusal => "content_filter",
        Stop::Other(reason) => reason,
    }
}

fn used(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.read(), "completion_tokens": usage.output, "total_tokens": usage.total(),
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
    })
}
