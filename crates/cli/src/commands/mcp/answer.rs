//! What a tool answers.

use proctor_recall::StoreError;
use proctor_recall::hygiene::block;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

use crate::report::Report;

/// What a tool says when it did what was asked: the same for who reads and for who parses.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) object: Value,
}

/// Why a tool did not do what was asked. It is a result of the tool and no failure of the protocol, so that the model sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) text: String,
}

impl Refusal {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }
}

impl From<Report> for Refusal {
    fn from(report: Report) -> Self {
        Self { text: report.in_words() }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Report::from(error).into()
    }
}

/// What goes over the wire.
///
/// INVARIANT: the text of a refusal may quote what somebody else wrote, so it goes through the hygiene functions here; the tools
/// see to the rest where they know what is theirs. Our own backticks would become references there, which nobody wants to read.
pub(super) fn result(answer: Result<Answer, Refusal>) -> CallToolResult {
    match answer {
        Ok(Answer { text, object }) => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = Some(object);
            result
        }
        Err(Refusal { text }) => CallToolResult::error(vec![ContentBlock::text(block(&text.replace('`', "'"), 1))]),
    }
}
