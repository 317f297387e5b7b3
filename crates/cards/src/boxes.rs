//! What a box's own settings say that matters here.

use std::path::Path;

use crate::Finding;

/// What `_config/box.json` says that matters here. The file belongs to another program, so keys
/// that mean nothing to us are fine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BoxDefaults {
    /// `version`.
    pub version: Option<String>,
    /// `timezone`: an IANA name.
    pub timezone: Option<String>,
    /// `agentEngine`.
    pub agent_engine: Option<String>,
    /// `agentModel`: used by agents whose card names no model.
    pub agent_model: Option<String>,
    /// `publicUrl`.
    pub public_url: Option<String>,
}

/// Reads the text of `_config/box.json`.
pub fn read_box_json(_text: &str) -> Result<BoxDefaults, Finding> {
    todo!()
}

/// Reads `_config/box.json` below `root`; the defaults of no box when it is not there.
pub fn load_box_defaults(_root: &Path) -> Result<BoxDefaults, Finding> {
    todo!()
}
