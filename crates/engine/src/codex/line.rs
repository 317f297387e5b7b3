//! The lines that `codex exec --json` prints, as far as they are read.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::item::Complaint;
use super::spending::Counted;

/// One line; which fields are there depends on its kind.
#[derive(Deserialize)]
pub(super) struct Line<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    /// Of `thread.started`.
    pub(super) thread_id: Option<String>,
    /// Of `item.*`.
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    /// Of `turn.completed`.
    pub(super) usage: Option<Counted>,
    /// Of `turn.failed`.
    pub(super) error: Option<Complaint>,
    /// Of `error`.
    pub(super) message: Option<String>,
}

/// What kind of line it is, when nothing else of it can be read.
#[derive(Deserialize)]
pub(super) struct Head<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
}
