//! From text to a script.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use regex::Regex;
use serde_json::Value;

use super::shape::{
    BreakShape, CountShape, FailShape, ScenarioShape, ScriptShape, ToolShape, TurnShape, UsageLimitShape, UsageShape, WindowShape,
};
use super::{
    Audience, Call, Count, Fault, FaultKind, OnDemand, Refusal, Reset, Scenario, Script, ScriptError, Told, Turn, Usage, UsageLimit, Window,
};

/// How the TOML library hands a date to a type that knows none.
const DATE: &str = "$__toml_private_datetime";

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// It is not TOML, has an unknown key, or says what can't be meant; the place is named.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let shape: ScriptShape = toml_edit::de::from_str(text).map_err(|error| form_error(text, &error))?;
        let mut scenarios = shape.scenario.into_iter().enumerate().map(scenario).collect::<Result<Vec<_>, _>>()?;
        let fallback = match shape.default {
            Some(default) => turns("default", default.turn)?,
            None => vec![saying("Nothing is scripted for this prompt.")],
        };
        scenarios.push(Scenario { name: "default".to_owned(), prompt: None, audience: Audience::Session, turns: fallback });
        let side = vec![Turn { on_demand: OnDemand::Sample, ..saying("A scripted answer.") }];
        scenarios.push(Scenario { name: "side".to_owned(), prompt: None, audience: Audience::Side, turns: side });
        let models = if shape.models.is_empty() { vec!["loopback-model".to_owned()] } else { shape.models };
        Ok(Self { models, scenarios })
    }
}

impl FromStr for Script {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Self, ScriptError> {
        Self::parse(text)
    }
}

fn form_error(text: &str, error: &toml_edit::de::Error) -> ScriptError {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    ScriptError::Form {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        message: error.message().to_owned(),
    }
}

fn saying(text: &str) -> Turn {
    Turn { text: Some(text.to_owned()), ..Turn::default() }
}

fn meaning(place: &str, problem: &'static str) -> ScriptError {
    ScriptError::Meaning { place: place.to_owned(), problem }
}

fn scenario((index, shape): (usize, ScenarioShape)) -> Result<Scenario, ScriptError> {
    let name = shape.name.unwrap_or_else(|| format!("scenario {}", index + 1));
    let place = format!("scenario {} (`{name}`)", index + 1);
    let prompt = match &shape.prompt {
        Some(pattern) => Some(Regex::new(pattern).map_err(|source| ScriptError::Match { place: place.clone(), source: Box::new(source) })?),
        None => None,
    };
    let audience = if shape.side { Audience::Side } else { Audience::Session };
    Ok(Scenario { name, prompt, audience, turns: turns(&place, shape.turn)? })
}

fn turns(place: &str, shapes: Vec<TurnShape>) -> Result<Vec<Turn>, ScriptError> {
    if shapes.is_empty() {
        return Err(meaning(place, "there is no `turn`, and something has to be answered"));
    }
    shapes.into_iter().enumerate().map(|(index, shape)| turn(&format!("{place}, turn {}", index + 1), shape)).collect()
}

fn turn(place: &str, shape: TurnShape) -> Result<Turn, ScriptError> {
    if shape.structured.as_ref().is_some_and(holds_date) {
        return Err(meaning(place, "`structured` holds a date, which JSON does not know; write it in quotes"));
    }
    Ok(Turn {
        thinking: shape.thinking,
        text: shape.text,
        calls: shape.tools.into_iter().map(|tool| call(place, tool)).collect::<Result<_, _>>()?,
        structured: shape.structured,
        on_demand: OnDemand::Scripted,
        stop_reason: shape.stop_reason,
        usage: usage(&shape.usage),
        headers: headers(place, shape.headers)?,
        delay: Duration::from_millis(shape.delay_ms),
        chunk_delay: Duration::from_millis(shape.chunk_delay_ms),
        fault: fault(place, shape.fail, shape.cut, shape.hang)?,
    })
}

fn call(place: &str, shape: ToolShape) -> Result<Call, ScriptError> {
    match shape {
        ToolShape { shell: Some(command), write: None, name: None, input: None } => Ok(Call::Shell(command)),
        ToolShape { shell: None, write: Some(write), name: None, input: None } => {
            Ok(Call::Write { path: write.path, content: write.content })
        }
        ToolShape { shell: None, write: None, name: Some(name), input } => {
            let input = input.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
            if holds_date(&input) {
                return Err(meaning(place, "`input` holds a date, which JSON does not know; write it in quotes"));
            }
            if !input.is_object() {
                return Err(meaning(place, "the `input` of a tool is a table"));
            }
            Ok(Call::Named { name, input })
        }
        ToolShape { .. } => Err(meaning(place, "a tool has either `shell`, or `write`, or `name` and perhaps `input`")),
    }
}

fn holds_date(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(holds_date),
        Value::Object(entries) => entries.contains_key(DATE) || entries.values().any(holds_date),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn usage(shape: &UsageShape) -> Usage {
    let unsaid = Usage::default();
    Usage {
        input: shape.input.unwrap_or(unsaid.input),
        output: shape.output.unwrap_or(unsaid.output),
        cache_read: shape.cache_read.unwrap_or(unsaid.cache_read),
        cache_write: shape.cache_write.unwrap_or(unsaid.cache_write),
    }
}

/// A line break in a header would begin the next one, or the body.
fn headers(place: &str, headers: BTreeMap<String, String>) -> Result<Vec<(String, String)>, ScriptError> {
    for (name, value) in &headers {
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_') {
            return Err(meaning(place, "the name of a header has letters, digits, `-` and `_` only"));
        }
        if !value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return Err(meaning(place, "the value of a header has printable ASCII only"));
        }
    }
    Ok(headers.into_iter().collect())
}

fn fault(place: &str, fail: Option<FailShape>, cut: Option<BreakShape>, hang: Option<BreakShape>) -> Result<Option<Fault>, ScriptError> {
    let (kind, times, counted) = match (fail, cut, hang) {
        (None, None, None) => return Ok(None),
        (Some(fail), None, None) => {
            let (times, counted) = (fail.times, fail.count);
            (FaultKind::Refuse(refusal(place, fail)?), times, counted)
        }
        (None, Some(cut), None) => (FaultKind::Cut { after_events: cut.after_events }, cut.times, cut.count),
        (None, None, Some(hang)) => (FaultKind::Hang { after_events: hang.after_events }, hang.times, hang.count),
        (Some(_), _, _) | (None, Some(_), Some(_)) => return Err(meaning(place, "a turn has at most one of `fail`, `cut` and `hang`")),
    };
    let count = match counted {
        CountShape::Session => Count::Session,
        CountShape::Server => Count::Server,
    };
    Ok(Some(Fault { kind, times, count }))
}

fn refusal(place: &str, shape: FailShape) -> Result<Refusal, ScriptError> {
    if !(400..=599).contains(&shape.status) {
        return Err(meaning(place, "the `status` of a failure is between 400 and 599"));
    }
    Ok(Refusal {
        status: shape.status,
        kind: shape.kind,
        message: shape.message.unwrap_or_else(|| "a scripted failure".to_owned()),
        retry_after: shape.retry_after,
        told: if shape.in_stream { Told::ByEvent } else { Told::ByStatus },
        usage_limit: shape.usage_limit.map(|limit| usage_limit(place, &limit)).transpose()?,
    })
}

fn usage_limit(place: &str, shape: &UsageLimitShape) -> Result<UsageLimit, ScriptError> {
    let reset = match (shape.resets_in, shape.resets_at) {
        (Some(seconds), None) => Reset::After(seconds),
        (None, Some(second)) => Reset::At(second),
        (None, None) | (Some(_), Some(_)) => {
            return Err(meaning(place, "a `usage-limit` has either `resets-in` or `resets-at`"));
        }
    };
    let window = match shape.window {
        WindowShape::FiveHours => Window::FiveHours,
        WindowShape::SevenDays => Window::SevenDays,
    };
    Ok(UsageLimit { reset, window })
}
