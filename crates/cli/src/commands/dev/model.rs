//! `proctor dev model`: the scripted model, for people.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_domain::ExitCode;
use proctor_loopback::{Script, ScriptError, Server, ServerError};
use proctor_process::durable::{self, Durability, DurableError};
use proctor_process::{Signal, Signals, SignalsError};
use serde_json::{Value, json};

use crate::Invocation;
use crate::args::dev::ModelArgs;
use crate::report::{Kind, Report};

/// What `--example` prints, and what is said without a script.
const EXAMPLE: &str = include_str!("example.toml");

/// How long one wait for a signal lasts; nothing happens in between.
const WAIT: Duration = Duration::from_secs(3600);

/// Why there is no model.
#[derive(Debug, thiserror::Error)]
enum ModelError {
    #[error("failed to read the script {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("the script {} can't be used", path.display())]
    Script { path: PathBuf, source: ScriptError },
    #[error("failed to start the model")]
    Start(#[source] ServerError),
    #[error("failed to write the port to {}", path.display())]
    PortFile { path: PathBuf, source: DurableError },
    #[error("failed to listen for signals")]
    Signals(#[source] SignalsError),
}

impl From<ModelError> for Report {
    fn from(error: ModelError) -> Self {
        let kind = match &error {
            ModelError::Read { .. } => Kind::User,
            ModelError::Script { .. } => Kind::Config,
            ModelError::Start(_) | ModelError::PortFile { .. } | ModelError::Signals(_) => Kind::Environment,
        };
        let report = Self::new(kind, error.to_string());
        match error.source() {
            Some(source) => report.because(source),
            None => report,
        }
    }
}

/// Prints the example, or runs the model until a signal comes.
pub(super) fn run(invocation: &Invocation, args: &ModelArgs) -> Result<ExitCode, Report> {
    if args.example {
        invocation.printer.text(EXAMPLE);
        return Ok(ExitCode::Done);
    }
    // Before anything is printed: whoever reads the address may send a signal at once.
    let signals = Signals::listen(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup]).map_err(ModelError::Signals)?;
    let script = script(invocation, args.script.as_deref())?;
    let server = Server::start(script, args.port).map_err(ModelError::Start)?;
    if let Some(file) = &args.port_file {
        let path = invocation.directory.join(file);
        let port = format!("{}\n", server.address().port());
        durable::write(&path, port.as_bytes(), Durability::Renamed).map_err(|source| ModelError::PortFile { path, source })?;
    }
    announce(invocation, &server.url());
    while !signals.wait(WAIT).map_err(ModelError::Signals)? {}
    server.stop();
    // A signal is the only way to end it, so that it came is no failure.
    Ok(ExitCode::Done)
}

fn script(invocation: &Invocation, file: Option<&Path>) -> Result<Script, ModelError> {
    let (path, text) = match file {
        None => (PathBuf::from("--example"), EXAMPLE.to_owned()),
        Some(file) => {
            let path = invocation.directory.join(file);
            match std::fs::read_to_string(&path) {
                Ok(text) => (path, text),
                Err(source) => return Err(ModelError::Read { path, source }),
            }
        }
    };
    Script::parse(&text).map_err(|source| ModelError::Script { path, source })
}

fn announce(invocation: &Invocation, url: &str) {
    let printer = &invocation.printer;
    printer.line(&format!("listening on {url}"));
    for (client, lines) in clients(url) {
        printer.line("");
        printer.line(&format!("# {client}"));
        for line in lines {
            printer.line(&line);
        }
    }
    printer.flush();
    printer.say("Give these to the program of an agent, in a shell of its own. Ctrl-C ends the model.");
}

/// What each client has to be told, as lines for a shell. Any key will do, and a real one does not belong here.
fn clients(url: &str) -> [(&'static str, Vec<String>); 5] {
    let export = |(name, value): (&str, &str)| format!("export {name}={value}");
    let exports = |values: &[(&str, &str)]| values.iter().copied().map(export).collect();
    [
        ("any", exports(&[("NO_PROXY", "127.0.0.1")])),
        (
            "claude",
            exports(&[
                ("ANTHROPIC_BASE_URL", url),
                ("ANTHROPIC_API_KEY", "dummy"),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
                ("DISABLE_TELEMETRY", "1"),
                ("DISABLE_ERROR_REPORTING", "1"),
                ("DISABLE_AUTOUPDATER", "1"),
            ]),
        ),
        // It reads no variable for the address.
        ("codex", vec![export(("OPENAI_API_KEY", "dummy")), format!("alias codex='codex -c openai_base_url={url}/v1'")]),
        ("opencode", vec![export(("OPENCODE_CONFIG_CONTENT", &format!("'{}'", opencode(url))))]),
        (
            "gemini",
            vec![
                export(("GOOGLE_GEMINI_BASE_URL", url)),
                export(("GEMINI_API_KEY", "dummy")),
                // With an address of one's own it takes no key before this is set.
                format!("# in ~/.gemini/settings.json: {}", json!({"security": {"auth": {"selectedType": "gemini-api-key"}}})),
            ],
        ),
    ]
}

fn opencode(url: &str) -> Value {
    let options = json!({"baseURL": format!("{url}/v1"), "apiKey": "dummy"});
    let provider = json!({"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"loopback-model": {}}});
    json!({"model": "loopback/loopback-model", "provider": {"loopback": provider}})
}
