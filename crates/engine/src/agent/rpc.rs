//! The messages of JSON-RPC 2.0, one a line, and how fields are read that an agent may fill with anything.
//!
//! A field that can't be read counts as one that is not there. What an agent says is untrusted all the same: an id is only
//! ever compared or given back, and nothing here grows beyond the line.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The longest id of a request that is given back; a longer one is nobody's counter.
const LONGEST_ID: usize = 256;

/// A line, as it was sent.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(default, borrow)]
    id: Option<&'a RawValue>,
    #[serde(default, borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
    #[serde(default, borrow)]
    result: Option<&'a RawValue>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

/// What a line is.
pub(crate) enum Line<'a> {
    /// It wants an answer with this id.
    Request { id: &'a RawValue, method: Cow<'a, str>, params: &'a str },
    /// It wants none.
    Note { method: Cow<'a, str>, params: &'a str },
    /// It answers our request of this id, if we made one.
    Answer { id: Option<u64>, outcome: Result<&'a str, RpcError> },
    /// An object that is none of these.
    Other,
}

/// What an agent says about a request that it could not do.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct RpcError {
    #[serde(default, deserialize_with = "field")]
    pub(crate) code: i64,
    #[serde(default, deserialize_with = "field")]
    pub(crate) message: String,
    #[serde(default, deserialize_with = "field")]
    pub(crate) data: serde_json::Value,
}

impl<'a> Line<'a> {
    /// What this line is; `None` when it is no JSON object.
    pub(crate) fn of(line: &'a [u8]) -> Option<Self> {
        // A list would be taken for the fields in their order.
        let message: Message<'a> = serde_json::from_slice(line).ok().filter(|_| line.starts_with(b"{"))?;
        let params = message.params.map_or("null", RawValue::get);
        Some(match (message.method, message.id) {
            (Some(method), Some(id)) if is_id(id.get()) => Self::Request { id, method, params },
            (Some(_), Some(_)) => Self::Other,
            (Some(method), None) => Self::Note { method, params },
            (None, None) if message.error.is_none() => Self::Other,
            (None, id) => Self::Answer { id: id.and_then(|id| parsed(id.get())), outcome: outcome(message.result, message.error) },
        })
    }
}

fn outcome<'a>(result: Option<&'a RawValue>, error: Option<&'a RawValue>) -> Result<&'a str, RpcError> {
    match error {
        Some(error) => Err(parsed(error.get()).unwrap_or_default()),
        // Some agents answer with `null` where there is nothing to say.
        None => Ok(result.map_or("null", RawValue::get)),
    }
}

fn is_id(text: &str) -> bool {
    text.len() <= LONGEST_ID && text.starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit())
}

/// A part of a message as this type; `None` when it is not built like that.
pub(crate) fn parsed<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    serde_json::from_str(text).ok()
}

/// A field that counts as not there when it can't be read.
pub(crate) fn field<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(source: D) -> Result<T, D::Error> {
    let raw = <&RawValue>::deserialize(source)?;
    Ok(parsed(raw.get()).unwrap_or_default())
}

/// A list without the items that can't be read; `None` when it is not there.
pub(crate) fn listed<'de, D: Deserializer<'de>, T: Deserialize<'de>>(source: D) -> Result<Option<Vec<T>>, D::Error> {
    let raw = <&RawValue>::deserialize(source)?;
    let items: Option<Vec<&RawValue>> = parsed(raw.get());
    Ok(items.map(|items| items.into_iter().filter_map(|item| parsed(item.get())).collect()))
}

/// A list without the items that can't be read.
pub(crate) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(source: D) -> Result<Vec<T>, D::Error> {
    listed(source).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(line: &str) -> &'static str {
        match Line::of(line.as_bytes()) {
            Some(Line::Request { .. }) => "request",
            Some(Line::Note { .. }) => "note",
            Some(Line::Answer { id: Some(_), outcome: Ok(_) }) => "result",
            Some(Line::Answer { id: Some(_), outcome: Err(_) }) => "error",
            Some(Line::Answer { id: None, .. }) => "answer to nothing",
            Some(Line::Other) => "other",
            None => "no message",
        }
    }

    #[test]
    fn a_line_is_told_by_its_method_and_its_id() {
        assert_eq!(is(r#"{"jsonrpc":"2.0","id":"a","method":"fs/read_text_file","params":{}}"#), "request");
        assert_eq!(is(r#"{"jsonrpc":"2.0","id":0,"method":"x"}"#), "request");
        assert_eq!(is(r#"{"jsonrpc":"2.0","method":"session/update","params":{}}"#), "note");
        assert_eq!(is(r#"{"jsonrpc":"2.0","id":1,"result":null}"#), "result");
        assert_eq!(is(r#"{"jsonrpc":"2.0","id":1,"error":{"code":"?"}}"#), "error");
        assert_eq!(is(r#"{"jsonrpc":"2.0","id":"1","result":{}}"#), "answer to nothing");
        assert_eq!(is(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#), "answer to nothing");
        assert_eq!(is(r#"{"jsonrpc":"2.0","id":{"a":1},"method":"x"}"#), "other");
        assert_eq!(is(r#"{"level":"info"}"#), "other");
        assert_eq!(is("[]"), "no message");
        assert_eq!(is("starting up"), "no message");
    }

    #[test]
    fn a_field_that_cannot_be_read_is_not_there_and_the_rest_is() {
        let error: RpcError = parsed(r#"{"code":-32000,"message":7,"data":[1]}"#).unwrap();

        assert_eq!((error.code, error.message.as_str(), error.data), (-32000, "", serde_json::json!([1])));
    }
}
