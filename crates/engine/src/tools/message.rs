//! What a bridge and a host say to each other: one JSON object per line, each with its version.
//!
//! Whoever adds a field keeps the version; whoever changes what one means takes the next version, and a host answers a
//! version that it does not know with a failure that names its own.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of these messages.
pub(crate) const VERSION: u64 = 1;

/// What a bridge asks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Request {
    /// [`VERSION`].
    pub(crate) version: u64,
    /// Comes back with the reply.
    pub(crate) id: u64,
    /// Asks what is offered.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) offer: bool,
    /// Calls this tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<String>,
    /// What the tool is given.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(crate) input: Value,
}

/// What a host answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Reply {
    /// [`VERSION`].
    pub(crate) version: u64,
    /// Of the request.
    pub(crate) id: u64,
    /// What is offered, where that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) offer: Option<Vec<OfferedTool>>,
    /// What the tool says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    /// Whether that is an error.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) failed: bool,
}

/// A tool, as its host describes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OfferedTool {
    /// Its name.
    pub name: String,
    /// What it is for, in words for a model.
    pub description: String,
    /// The JSON schema of what it is given.
    pub input: Value,
}

/// What a tool answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAnswer {
    /// Whether that is an error.
    pub failed: bool,
    /// For the model.
    pub text: String,
}

impl ToolAnswer {
    /// It did what was asked.
    pub(crate) fn done(text: &str) -> Self {
        Self { failed: false, text: text.to_owned() }
    }

    /// It did not, and the text says why.
    pub(crate) fn failed(text: String) -> Self {
        Self { failed: true, text }
    }
}
