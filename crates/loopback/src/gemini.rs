//! Google's Gemini API.

use serde_json::{Value, json};

use crate::answer::{Answer, Block, Stop};
use crate::conversation::{Conversation, Delivery, Form, Said, joined, list, text_at};
use crate::format::{Asked, ErrorAnswer, Format, Refused};
use crate::http::{Event, Request};
use crate::script::Usage;
use crate::text::{DELTA, chunks};
use crate::tools::Tool;

/// The format of `gemini`.
pub(crate) struct Gemini;

impl Format for Gemini {
    fn asked(&self, path: &str) -> Option<Asked> {
        match model_and_method(path)?.1 {
            "generateContent" | "streamGenerateContent" => Some(Asked::Answer),
            "countTokens" => Some(Asked::TokenCount),
            _ => None,
        }
    }

    fn read(&self, request: &Request, body: &Value) -> Conversation {
        let (model, method) = model_and_method(&request.path).unwrap_or_default();
        let functions = list(&body["tools"]).iter().flat_map(|tool| list(&tool["functionDeclarations"]));
        let mut conversation = Conversation {
            model: model.to_owned(),
            tools: functions.filter_map(|function| text_at(function, "name")).map(Tool::plain).collect(),
            delivery: if method == "streamGenerateContent" { Delivery::Streamed } else { Delivery::Whole },
            form: form(&body["generationConfig"]),
            messages: list(&body["contents"]).len(),
            ..Conversation::default()
        };
        for content in list(&body["contents"]) {
            conversation.hear(match text_at(content, "role").unwrap_or("user") {
                "user" | "function" => read_user(&content["parts"]),
                "model" => Said::Answer,
                _ => Said::Other,
            });
        }
        conversation
    }

    fn whole(&self, answer: &Answer) -> Value {
        let parts = answer.blocks.iter().flat_map(|block| parts(block, usize::MAX)).collect();
        last(answer, parts)
    }

    fn streamed(&self, answer: &Answer) -> Vec<Event> {
        let mut parts = answer.blocks.iter().flat_map(|block| parts(block, DELTA)).peekable();
        let mut events = Vec::new();
        while let Some(part) = parts.next() {
            // What the stream ends with stands beside its last part.
            let parts_left = parts.peek().is_some();
            events.push(if parts_left { chunk(answer, vec![part], &Value::Null) } else { last(answer, vec![part]) });
        }
        events.iter().map(Event::unnamed).collect()
    }

    fn failure(&self, _answer: &Answer, refused: &Refused) -> Event {
        Event::unnamed(&self.refusal(refused).body)
    }

    fn tokens(&self, count: usize) -> Value {
        json!({"totalTokens": count})
    }

    fn refusal(&self, refused: &Refused) -> ErrorAnswer {
        let status = refused.kind.unwrap_or_else(|| error_status(refused.status));
        let mut details = Vec::new();
        if refused.limit.is_some() {
            details.push(json!({
                "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}],
            }));
        }
        if let Some(seconds) = refused.retry_after {
            details.push(json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{seconds}s")}));
        }
        let error = json!({"code": refused.status, "message": refused.message, "status": status, "details": details});
        ErrorAnswer { body: json!({"error": error}), headers: Vec::new() }
    }
}

/// The two ends of `/v1beta/models/MODEL:METHOD`.
fn model_and_method(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("/v1beta/models/")?.rsplit_once(':')
}

fn form(config: &Value) -> Form {
    if config["responseMimeType"] != "application/json" {
        return Form::Free;
    }
    let schema = ["responseJsonSchema", "responseSchema"].into_iter().find_map(|key| config.get(key));
    Form::Json(schema.cloned().unwrap_or_default())
}

fn read_user(parts: &Value) -> Said {
    match list(parts).iter().rev().find_map(|part| part.get("functionResponse")) {
        Some(result) => Said::Output(output(&result["response"])),
        None => Said::Prompt(joined(parts)),
    }
}

fn output(response: &Value) -> String {
    let text = text_at(response, "output").or(text_at(response, "error"));
    text.map_or_else(|| response.to_string(), str::to_owned)
}

fn parts(block: &Block, length: usize) -> Vec<Value> {
    match block {
        Block::Thinking { text, .. } => cut(text, length).map(|chunk| json!({"text": chunk, "thought": true})).collect(),
        Block::Text { text, .. } => cut(text, length).map(|chunk| json!({"text": chunk})).collect(),
        Block::ToolUse { id, call } => {
            vec![json!({"functionCall": {"id": format!("call_{id}"), "name": call.name, "args": call.input.to_json()}})]
        }
    }
}

/// At least one part, as what ends the answer stands beside one.
fn cut(text: &str, length: usize) -> impl Iterator<Item = &str> {
    text.is_empty().then_some("").into_iter().chain(chunks(text, length))
}

fn chunk(answer: &Answer, parts: Vec<Value>, finish_reason: &Value) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if !finish_reason.is_null() {
        candidate["finishReason"] = finish_reason.clone();
    }
    json!({"candidates": [candidate], "modelVersion": answer.model, "responseId": answer.id})
}

fn last(answer: &Answer, parts: Vec<Value>) -> Value {
    let mut last = chunk(answer, parts, &json!(finish_reason(&answer.stop)));
    last["usageMetadata"] = used(answer.usage);
    last
}

fn finish_reason(stop: &Stop) -> &str {
    match stop {
        Stop::End | Stop::ToolUse => "STOP",
        Stop::MaxTokens => "MAX_TOKENS",
        Stop::Refusal => "SAFETY",
        Stop::Other(reason) => reason,
    }
}

fn used(usage: Usage) -> Value {
    json!({
        "promptTokenCount": usage.read(), "cachedContentTokenCount": usage.cache_read,
        "candidatesTokenCount": usage.output, "totalTokenCount": usage.total(),
    })
}

fn error_status(status: u16) -> &'static str {
    match status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 | 529 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        405..=499 => "FAILED_PRECONDITION",
        _ => "INTERNAL",
    }
}
