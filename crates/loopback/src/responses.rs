//! OpenAI's Responses API.

use serde_json::{Value, json};

use crate::answer::{Answer, Block, Stop};
use crate::conversation::{Conversation, Said, delivery, joined, list, model, text_at};
use crate::format::{Asked, ErrorAnswer, Format, Refused};
use crate::http::{Event, Request};
use crate::openai;
use crate::text::{DELTA, chunks};
use crate::tools::{Input, Takes, Tool, ToolCall};

/// The header by which `codex` says whose request it is.
const SESSION: &str = "session-id";
/// The group of the tools that are in none.
const UNGROUPED: &str = "functions";
/// Clients send it back unread.
const ENCRYPTED: &str = "c2NyaXB0ZWQ=";

/// The format of `codex`.
pub(crate) struct Responses;

impl Format for Responses {
    fn asked(&self, path: &str) -> Option<Asked> {
        match path {
            "/v1/responses" => Some(Asked::Answer),
            "/v1/responses/input_tokens" => Some(Asked::TokenCount),
            _ => None,
        }
    }

    fn read(&self, request: &Request, body: &Value) -> Conversation {
        let session = request.header(SESSION).or(text_at(body, "prompt_cache_key"));
        let mut conversation = Conversation {
            model: model(body),
            session: session.unwrap_or_default().to_owned(),
            tools: list(&body["tools"]).iter().chain(added_tools(body)).flat_map(tools).collect(),
            delivery: delivery(body),
            form: openai::form(&body["text"]["format"], &body["text"]["format"]["schema"]),
            messages: list(&body["input"]).len(),
            ..Conversation::default()
        };
        if let Some(prompt) = text_at(body, "input") {
            conversation.hear(Said::Prompt(prompt.to_owned()));
        }
        for item in list(&body["input"]) {
            conversation.hear(read_item(item));
        }
        conversation
    }

    fn whole(&self, answer: &Answer) -> Value {
        let output = answer.blocks.iter().map(item).collect();
        ended(answer, output)
    }

    fn streamed(&self, answer: &Answer) -> Vec<Event> {
        let mut events = vec![json!({"type": "response.created", "response": response(answer, "in_progress", Vec::new())})];
        let items: Vec<Value> = answer.blocks.iter().map(item).collect();
        for (index, (block, item)) in answer.blocks.iter().zip(&items).enumerate() {
            events.extend(item_events(block, item).into_iter().map(|mut event| {
                event["output_index"] = json!(index);
                event
            }));
        }
        let kind = if incomplete(&answer.stop).is_some() { "response.incomplete" } else { "response.completed" };
        events.push(json!({"type": kind, "response": ended(answer, items)}));
        for (number, event) in events.iter_mut().enumerate() {
            event["sequence_number"] = json!(number);
        }
        events.iter().map(Event::named_by_type).collect()
    }

    fn failure(&self, answer: &Answer, refused: &Refused) -> Event {
        let error = &openai::refusal(refused).body["error"];
        let code = if error["code"].is_null() { &error["type"] } else { &error["code"] };
        let mut failed = response(answer, "failed", Vec::new());
        failed["error"] = json!({"code": code, "message": error["message"]});
        Event::named_by_type(&json!({"type": "response.failed", "sequence_number": 0, "response": failed}))
    }

    fn tokens(&self, count: usize) -> Value {
        json!({"object": "response.input_tokens", "input_tokens": count})
    }

    fn refusal(&self, refused: &Refused) -> ErrorAnswer {
        openai::refusal(refused)
    }
}

/// Tools that are offered in the middle of a conversation; `codex` offers all of them so to the models it knows.
fn added_tools(body: &Value) -> impl Iterator<Item = &Value> {
    list(&body["input"]).iter().filter(|item| item["type"] == "additional_tools").flat_map(|item| list(&item["tools"]))
}

/// The tools of an entry: one, those of a group, or none that a script could call.
fn tools(entry: &Value) -> Vec<Tool> {
    let takes = if entry["type"] == "custom" { Takes::Text } else { Takes::Json };
    match (entry["type"].as_str(), text_at(entry, "name")) {
        (Some("namespace"), Some(namespace)) => list(&entry["tools"])
            .iter()
            .flat_map(tools)
            .map(|tool| Tool { namespace: (namespace != UNGROUPED).then(|| namespace.to_owned()), ..tool })
            .collect(),
        (_, Some(name)) => vec![Tool { namespace: None, name: name.to_owned(), takes }],
        (_, None) => Vec::new(),
    }
}

fn read_item(item: &Value) -> Said {
    match (text_at(item, "type").unwrap_or("message"), text_at(item, "role").unwrap_or_default()) {
        ("message", "user") => Said::Prompt(joined(&item["content"])),
        ("message", "assistant") | ("reasoning", _) => Said::Answer,
        (kind, _) if kind.ends_with("_call") => Said::Answer,
        (kind, _) if kind.ends_with("_call_output") => Said::Output(output(&item["output"])),
        _ => Said::Other,
    }
}

fn output(value: &Value) -> String {
    if value.is_object() { joined(&value["content"]) } else { joined(value) }
}

fn response(answer: &Answer, status: &str, output: Vec<Value>) -> Value {
    json!({
        "id": format!("resp_{}", answer.id), "object": "response", "created_at": 0, "model": answer.model, "status": status,
        "output": output, "error": null, "incomplete_details": null, "usage": null,
    })
}

fn ended(answer: &Answer, output: Vec<Value>) -> Value {
    let reason = incomplete(&answer.stop);
    let mut ended = response(answer, if reason.is_some() { "incomplete" } else { "completed" }, output);
    if let Some(reason) = reason {
        ended["incomplete_details"] = json!({"reason": reason});
    }
    let usage = answer.usage;
    ended["usage"] = json!({
        "input_tokens": usage.read(), "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": usage.total(),
    });
    ended
}

/// Why an answer lacks its end, if it does.
fn incomplete(stop: &Stop) -> Option<&str> {
    match stop {
        Stop::End | Stop::ToolUse => None,
        Stop::MaxTokens => Some("max_output_tokens"),
        Stop::Refusal => Some("content_filter"),
        Stop::Other(reason) => Some(reason),
    }
}

fn item(block: &Block) -> Value {
    match block {
        Block::Thinking { id, text } => json!({
            "type": "reasoning", "id": format!("rs_{id}"), "encrypted_content": ENCRYPTED,
            "summary": [{"type": "summary_text", "text": text}],
        }),
        Block::Text { id, text } => json!({
            "type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }),
        Block::ToolUse { id, call } => call_item(id, call),
    }
}

fn call_item(id: &str, call: &ToolCall) -> Value {
    let (kind, prefix, key) = match call.input {
        Input::Json(_) => ("function_call", "fc", "arguments"),
        Input::Text(_) => ("custom_tool_call", "ctc", "input"),
    };
    let mut item = json!({
        "type": kind, "id": format!("{prefix}_{id}"), "call_id": format!("call_{id}"), "status": "completed",
        "name": call.name, key: call.input.to_text(),
    });
    if let Some(namespace) = &call.namespace {
        item["namespace"] = json!(namespace);
    }
    item
}

/// The events by which an item arrives, without its index.
fn item_events(block: &Block, item: &Value) -> Vec<Value> {
    let mut begun = item.clone();
    let between = match block {
        Block::Thinking { text, .. } => {
            begun["summary"] = json!([]);
            summary_events(item, text)
        }
        Block::Text { text, .. } => {
            begun["content"] = json!([]);
            text_events(item, text)
        }
        Block::ToolUse { call, .. } => {
            let (event, key) = match call.input {
                Input::Json(_) => ("response.function_call_arguments", "arguments"),
                Input::Text(_) => ("response.custom_tool_call_input", "input"),
            };
            begun[key] = json!("");
            let text = call.input.to_text();
            let mut events = deltas(event, &json!({"item_id": item["id"]}), &text);
            events.push(json!({"type": format!("{event}.done"), "item_id": item["id"], key: text}));
            events
        }
    };
    if item["status"] == "completed" {
        begun["status"] = json!("in_progress");
    }
    let mut events = vec![json!({"type": "response.output_item.added", "item": begun})];
    events.extend(between);
    events.push(json!({"type": "response.output_item.done", "item": item}));
    events
}

fn summary_events(item: &Value, text: &str) -> Vec<Value> {
    let place = json!({"item_id": item["id"], "summary_index": 0});
    let part = |text: &str| json!({"type": "summary_text", "text": text});
    let mut events = vec![placed("response.reasoning_summary_part.added", &place, "part", part(""))];
    events.extend(deltas("response.reasoning_summary_text", &place, text));
    events.push(placed("response.reasoning_summary_text.done", &place, "text", json!(text)));
    events.push(placed("response.reasoning_summary_part.done", &place, "part", part(text)));
    events
}

fn text_events(item: &Value, text: &str) -> Vec<Value> {
    let place = json!({"item_id": item["id"], "content_index": 0});
    let part = json!({"type": "output_text", "text": "", "annotations": []});
    let mut events = vec![placed("response.content_part.added", &place, "part", part)];
    events.extend(deltas("response.output_text", &place, text));
    events.push(placed("response.output_text.done", &place, "text", json!(text)));
    events.push(placed("response.content_part.done", &place, "part", item["content"][0].clone()));
    events
}

fn deltas(event: &str, place: &Value, text: &str) -> Vec<Value> {
    let name = format!("{event}.delta");
    chunks(text, DELTA).map(|chunk| placed(&name, place, "delta", json!(chunk))).collect()
}

/// An event about a place in an item.
fn placed(name: &str, place: &Value, key: &str, value: Value) -> Value {
    let mut event = place.clone();
    event["type"] = json!(name);
    event[key] = value;
    event
}
