//! The lines that Claude Code prints, as far as they are read. What isn't needed is skipped without being kept: the
//! result of a tool stands in its line twice, and lists of tools are longer than most answers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::value::RawValue;

/// What every line has. Its place differs: a `result` of 2.1.332 says late that it is one.
#[derive(Deserialize)]
pub(super) struct Head<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) subtype: Cow<'a, str>,
}

/// `system` of the kinds `init` and `api_retry`.
#[derive(Deserialize)]
pub(super) struct SystemLine {
    pub(super) session_id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) attempt: Option<u32>,
    pub(super) error_status: Option<u16>,
    /// Some versions print a fraction.
    pub(super) retry_delay_ms: Option<f64>,
}

/// What `system/init` says of servers of tools.
#[derive(Deserialize)]
pub(super) struct Servers<'a> {
    #[serde(borrow)]
    pub(super) mcp_servers: Vec<Server<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Server<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) status: Cow<'a, str>,
}

/// `assistant` and `user`.
#[derive(Deserialize)]
pub(super) struct MessageLine<'a> {
    #[serde(borrow)]
    pub(super) message: Message<'a>,
    /// The call that set the agent to work which speaks here; none for the agent that we asked.
    pub(super) parent_tool_use_id: Option<IgnoredAny>,
    pub(super) error: Option<String>,
    pub(super) is_api_error_message: Option<bool>,
    pub(super) api_error_status: Option<u16>,
    pub(super) api_error: Option<String>,
    pub(super) api_error_params: Option<ErrorParameters>,
}

#[derive(Deserialize)]
pub(super) struct ErrorParameters {
    pub(super) rate_limit_info: Option<Quota>,
}

#[derive(Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub(super) id: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) model: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) content: Content<'a>,
}

/// The parts of a message. One that is a mere text has none: it is the prompt, which is known.
#[derive(Default)]
pub(super) struct Content<'a>(pub(super) Vec<Block<'a>>);

/// A part of a message; which fields are there depends on its kind.
#[derive(Deserialize)]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
    pub(super) tool_use_id: Option<String>,
    pub(super) content: Option<Words>,
    pub(super) is_error: Option<bool>,
}

/// What a tool said: a text, or parts of which the texts count.
#[derive(Default)]
pub(super) struct Words(pub(super) String);

/// `rate_limit_event`.
#[derive(Deserialize)]
pub(super) struct QuotaLine {
    pub(super) rate_limit_info: Quota,
}

/// The state of an account's quota.
#[derive(Deserialize)]
pub(super) struct Quota {
    pub(super) status: Option<String>,
    /// Seconds since the epoch.
    #[serde(rename = "resetsAt")]
    pub(super) resets_at: Option<i64>,
    /// Requests beyond the quota are let in, and paid for.
    #[serde(rename = "isUsingOverage")]
    pub(super) is_using_overage: Option<bool>,
}

/// `control_request`: it asks us for something.
#[derive(Deserialize)]
pub(super) struct ControlLine<'a> {
    #[serde(borrow)]
    pub(super) request_id: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) request: Asked<'a>,
}

/// What it asks for.
#[derive(Deserialize)]
pub(super) struct Asked<'a> {
    #[serde(borrow)]
    pub(super) subtype: Cow<'a, str>,
    /// What the tool would be given.
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
}

/// `command_lifecycle`: what became of a message of ours. Not printed by 2.1.197.
#[derive(Deserialize)]
pub(super) struct MessageState<'a> {
    #[serde(borrow)]
    pub(super) command_uuid: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) state: Cow<'a, str>,
}

/// `result`.
#[derive(Deserialize)]
pub(super) struct ResultLine<'a> {
    #[serde(borrow, default)]
    pub(super) subtype: Cow<'a, str>,
    pub(super) is_error: Option<bool>,
    pub(super) terminal_reason: Option<String>,
    pub(super) stop_reason: Option<String>,
    pub(super) interrupted_by_shutdown: Option<bool>,
    pub(super) api_error_status: Option<u16>,
    pub(super) api_error: Option<String>,
    pub(super) result: Option<String>,
    pub(super) errors: Option<Vec<String>>,
    #[serde(borrow)]
    pub(super) structured_output: Option<&'a RawValue>,
    /// Everything since the conversation began, earlier programs included.
    #[serde(rename = "modelUsage")]
    pub(super) model_usage: Option<BTreeMap<String, ModelUsage>>,
    /// What came since this program's previous `result`. Not printed by 2.1.197.
    pub(super) model_usage_since_last_result: Option<BTreeMap<String, ModelUsage>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
pub(super) struct ModelUsage {
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) cache_read_input_tokens: u64,
    pub(super) cache_creation_input_tokens: u64,
    #[serde(rename = "costUSD")]
    pub(super) cost_usd: Option<f64>,
    pub(super) cost_basis: Option<String>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parts;

        impl<'de> Visitor<'de> for Parts {
            type Value = Content<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text or a list of parts")
            }

            fn visit_str<E: de::Error>(self, _text: &str) -> Result<Self::Value, E> {
                Ok(Content::default())
            }

            fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
                Ok(Content::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
                let mut content = Content::default();
                while let Some(part) = parts.next_element()? {
                    content.0.push(part);
                }
                Ok(content)
            }
        }

        deserializer.deserialize_any(Parts)
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parts;

        #[derive(Deserialize)]
        struct Part {
            text: Option<String>,
        }

        impl<'de> Visitor<'de> for Parts {
            type Value = Words;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text or a list of parts")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Words, E> {
                Ok(Words(text.to_owned()))
            }

            fn visit_string<E: de::Error>(self, text: String) -> Result<Words, E> {
                Ok(Words(text))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Words, E> {
                Ok(Words::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Words, A::Error> {
                while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Words::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Words, A::Error> {
                let mut words = String::new();
                while let Some(part) = parts.next_element::<Part>()? {
                    if let Some(text) = part.text {
                        if !words.is_empty() {
                            words.push('\n');
                        }
                        words.push_str(&text);
                    }
                }
                Ok(Words(words))
            }
        }

        deserializer.deserialize_any(Parts)
    }
}
