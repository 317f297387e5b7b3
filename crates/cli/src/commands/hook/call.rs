//! What a host says on standard input. It is text from outside: whatever is missing or of another kind counts as not said.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

/// A file that is written is in the JSON as a whole, so this is generous.
const LONGEST: u64 = 32 << 20;

/// Why a call can't be understood.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    #[error("its input can't be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("its input is longer than 32 MiB")]
    TooLong,
    #[error("its input is no JSON: {0}")]
    NoJson(#[from] serde_json::Error),
}

/// What a host's agent is about to do, or has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Tool {
    /// Change files.
    Edit { files: Vec<String> },
    /// Read a file, with a limit or without.
    Read { file: String, has_limit: bool },
    /// Run a shell.
    Shell { command: String },
    /// Something else, or nothing.
    Other,
}

/// One call of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    /// Whose context the answer goes to: the session, and the agent in it where that is another one.
    pub(super) session: Option<String>,
    /// Where the agent works.
    pub(super) directory: Option<PathBuf>,
    /// Why a session starts, in the host's words.
    pub(super) source: Option<String>,
    pub(super) tool: Tool,
}

impl Call {
    /// Reads to the end, so that the host can write all that it has to say.
    pub(super) fn read(mut input: impl Read) -> Result<Self, CallError> {
        let mut bytes = Vec::new();
        input.by_ref().take(LONGEST).read_to_end(&mut bytes)?;
        if io::copy(&mut input, &mut io::sink())? > 0 {
            return Err(CallError::TooLong);
        }
        Ok(Self::of(&serde_json::from_slice(&bytes)?))
    }

    fn of(value: &Value) -> Self {
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        let session = text("session_id").or_else(|| text("conversation_id")).filter(|id| !id.is_empty());
        let agent = text("agent_id").unwrap_or_default();
        let tool = Tool::of(value);
        let stated = |value: &Value| value.as_str().map(PathBuf::from).filter(|path| path.is_absolute());
        Self {
            session: session.map(|session| format!("{session}\n{agent}")),
            directory: [&value["tool_input"]["working_directory"], &value["cwd"], &value["workspace_roots"][0]]
                .into_iter()
                .find_map(stated),
            source: text("source"),
            tool,
        }
    }

    /// The path of a file that the host named, where it names one.
    pub(super) fn path(&self, file: &str, otherwise: &Path) -> PathBuf {
        self.directory.as_deref().unwrap_or(otherwise).join(file)
    }
}

impl Tool {
    fn of(value: &Value) -> Self {
        let input = &value["tool_input"];
        let first = |keys: &[&str]| keys.iter().find_map(|key| input[*key].as_str()).filter(|text| !text.is_empty()).map(str::to_owned);
        let file = || first(&["file_path", "notebook_path", "path", "target_file"]);
        match value["tool_name"].as_str().unwrap_or_default() {
            "apply_patch" => Self::Edit { files: patched(&first(&["command", "patch", "input"]).unwrap_or_default()) },
            "Edit" | "Write" | "MultiEdit" | "NotebookEdit" | "StrReplace" | "Delete" => Self::Edit { files: file().into_iter().collect() },
            "Read" => file().map_or(Self::Other, |file| Self::Read { file, has_limit: input["limit"].is_number() }),
            "Bash" | "Shell" => first(&["command"]).map_or(Self::Other, |command| Self::Shell { command }),
            _ => Self::Other,
        }
    }
}

/// The files that a patch in the form of `apply_patch` is about.
fn patched(patch: &str) -> Vec<String> {
    const LEADS: [&str; 4] = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "];
    let named = |line: &str| LEADS.iter().find_map(|lead| line.strip_prefix(lead)).map(|file| file.trim().to_owned());
    patch.lines().filter_map(named).filter(|file| !file.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(value: &Value) -> Tool {
        Call::of(value).tool
    }

    #[test]
    fn every_host_s_tools_are_understood() {
        let edit = |files: &[&str]| Tool::Edit { files: files.iter().map(|file| (*file).to_owned()).collect() };
        let read = |has_limit| Tool::Read { file: "/w/a".to_owned(), has_limit };
        let patch =
            "*** Begin Patch\n*** Update File: a.rs\n*** Move to: b.rs\n@@\n-*** Add File: no\n*** Add File: c d.rs\n+x\n*** End Patch";
        for (value, expected) in [
            (json!({"tool_name": "Edit", "tool_input": {"file_path": "/w/a", "old_string": "x"}}), edit(&["/w/a"])),
            (json!({"tool_name": "NotebookEdit", "tool_input": {"notebook_path": "n.ipynb"}}), edit(&["n.ipynb"])),
            (json!({"tool_name": "apply_patch", "tool_input": {"command": patch}}), edit(&["a.rs", "b.rs", "c d.rs"])),
            (json!({"tool_name": "Read", "tool_input": {"file_path": "/w/a"}}), read(false)),
            (json!({"tool_name": "Read", "tool_input": {"file_path": "/w/a", "offset": 3}}), read(false)),
            (json!({"tool_name": "Read", "tool_input": {"file_path": "/w/a", "limit": 3}}), read(true)),
            (json!({"tool_name": "Read", "tool_input": {"path": "/w/a", "limit": "3"}}), read(false)),
            (json!({"tool_name": "Shell", "tool_input": {"command": "ls"}}), Tool::Shell { command: "ls".to_owned() }),
            (json!({"tool_name": "Bash", "tool_input": {"command": ["ls"]}}), Tool::Other),
            (json!({"tool_name": "Edit", "tool_input": "x"}), edit(&[])),
            (json!({"tool_name": 7}), Tool::Other),
            (json!([1, "x"]), Tool::Other),
            (json!(null), Tool::Other),
        ] {
            assert_eq!(tool(&value), expected, "{value}");
        }
    }

    #[test]
    fn an_agent_in_a_session_has_a_context_of_its_own() {
        let of = |value: Value| Call::of(&value);

        let outer = of(json!({"session_id": "s", "cwd": "/w"}));
        let inner = of(json!({"session_id": "s", "agent_id": "a", "cwd": "w"}));
        let cursor = of(json!({"conversation_id": "c", "workspace_roots": ["/r", "/s"]}));

        assert_ne!(outer.session, inner.session);
        assert_eq!((outer.directory, inner.directory), (Some(PathBuf::from("/w")), None));
        assert_eq!((cursor.session.as_deref(), cursor.directory), (Some("c\n"), Some(PathBuf::from("/r"))));
        assert_eq!(of(json!({"session_id": ""})).session, None);
    }

    #[test]
    fn what_is_no_json_or_too_long_is_read_to_its_end_and_refused() {
        let garbage = Call::read(&b"\xff\x00{"[..]);
        let deep = Call::read("[".repeat(100_000).as_bytes());
        let long = Call::read(io::repeat(b' ').take(LONGEST + 5));

        assert!(matches!(garbage, Err(CallError::NoJson(_))));
        assert!(matches!(deep, Err(CallError::NoJson(_))));
        assert!(matches!(long, Err(CallError::TooLong)));
    }
}
