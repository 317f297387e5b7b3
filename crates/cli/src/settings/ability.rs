//! Keys that only those engines have that can do something with them: `effort`, `fallback-model` and `mcp`.

use proctor_engine::agent::{Capabilities, EngineKind, engine};
use proctor_engine::tools::ToolServer;
use serde_json::{Map, Value};

use super::file::{Entry, Mistake};
use super::value;

/// Whether an engine that can do this much has a use for a key.
type IsAble = fn(Capabilities) -> bool;

/// The keys, and what an engine has to be able to do for each.
const KEYS: [(&str, IsAble); 3] = [
    ("effort", |capabilities| capabilities.effort),
    ("fallback-model", |capabilities| capabilities.fallback_model),
    ("mcp", |capabilities| capabilities.mcp_servers),
];

/// Longest name of a server.
const LONGEST_NAME: usize = 40;

/// What holds of an engine beyond what every engine has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Abilities {
    /// `effort`
    pub effort: Option<String>,
    /// `fallback-model`
    pub fallback_model: Option<String>,
    /// `mcp`: servers by their names, as the engine is told of them.
    pub servers: Map<String, Value>,
}

/// The mistake where this is one of the keys and an engine of this kind has no use for it.
pub(super) fn of_no_use(entry: &Entry<'_>, kind: EngineKind) -> Option<Mistake> {
    let (key, is_able) = KEYS.iter().find(|(key, _)| *key == entry.word())?;
    if is_able(engine(kind).capabilities()) {
        return None;
    }
    let able: Vec<&str> = EngineKind::ALL.into_iter().filter(|kind| is_able(engine(*kind).capabilities())).map(EngineKind::name).collect();
    let message = format!("`{kind}` has no use for `{key}`; it is for engines that are spoken to as {}", able.join(", "));
    Some(Mistake::at(&entry.key_span, message))
}

/// How hard models are to think: a word that the engine has for it, since a wrong one is found out by the provider alone, and late.
pub(super) fn effort(kind: EngineKind, text: &str) -> Result<String, String> {
    let known = engine(kind).efforts();
    if known.contains(&text) { Ok(text.to_owned()) } else { Err(format!("`{text}` is none of {}", known.join(", "))) }
}

/// Models that answer when the one that was asked for can't, separated by commas.
pub(super) fn fallback_model(text: &str) -> Result<String, String> {
    text.split(',').try_for_each(|model| value::model(model).map(drop))?;
    Ok(text.to_owned())
}

/// Servers, each as a table: a program with its arguments, or an address.
pub(super) fn servers(entry: &Entry<'_>) -> Result<Map<String, Value>, Mistake> {
    entry.entries()?.iter().map(|server| Ok((name(server)?, self::server(server)?))).collect()
}

fn name(entry: &Entry<'_>) -> Result<String, Mistake> {
    let name = entry.word();
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(fits) {
        let reason = format!("`{name}` is no server's name: it wants at most {LONGEST_NAME} letters, digits, `-` and `_`");
        return Err(Mistake::at(&entry.key_span, reason));
    }
    if name == ToolServer::NAME {
        return Err(Mistake::at(&entry.key_span, format!("`{name}` is the server of the session's own tools")));
    }
    Ok(name.to_owned())
}

fn server(entry: &Entry<'_>) -> Result<Value, Mistake> {
    let mut server = Map::new();
    for inner in entry.entries()? {
        let value = match inner.word() {
            "command" | "url" | "type" => inner.text()?.into(),
            "args" => inner.texts()?.into_iter().map(|(text, _)| Value::from(text)).collect(),
            "env" | "headers" => {
                let pairs = inner.entries()?.into_iter().map(|pair| Ok((pair.word().to_owned(), pair.text()?.into())));
                Value::Object(pairs.collect::<Result<_, Mistake>>()?)
            }
            _ => {
                let known = "known keys: command, args, env, url, headers, type";
                return Err(Mistake::at(&inner.key_span, format!("unknown key `{}`", inner.name)).hint(known));
            }
        };
        server.insert(inner.word().to_owned(), value);
    }
    if server.contains_key("command") == server.contains_key("url") {
        return Err(entry.refuse(format!("`{}` wants either a `command` or a `url`", entry.name)));
    }
    Ok(Value::Object(server))
}

/// A server in one line, for whoever is to accept it.
pub(super) fn told((name, server): (&String, &Value)) -> String {
    format!("{name}: {server}")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Reach, SettingsError, layer};
    use super::*;

    fn read(text: &str) -> Result<layer::Layer, Vec<String>> {
        match layer::from_text(Path::new("proctor.toml"), text, Reach::Repository) {
            Ok(layer) => Ok(layer),
            Err(SettingsError::Findings { findings, .. }) => Err(findings.into_iter().map(|finding| finding.message).collect()),
            Err(other) => panic!("{other}"),
        }
    }

    fn mistake(text: &str) -> String {
        read(text).expect_err("a mistake").join("; ")
    }

    #[test]
    fn an_engine_without_an_ability_has_no_key_for_it_and_says_which_have() {
        for (text, message) in [
            (
                "engines.opencode.effort = 'high'",
                "`opencode` has no use for `effort`; it is for engines that are spoken to as claude, codex",
            ),
            (
                "engines.codex.fallback-model = 'x'",
                "`codex` has no use for `fallback-model`; it is for engines that are spoken to as claude",
            ),
            (
                "engines.scripted.mcp.a.command = 'x'",
                "`scripted` has no use for `mcp`; it is for engines that are spoken to as claude, codex",
            ),
            (
                "[engines.mine]\nacp = ['a']\neffort = 'low'",
                "`acp` has no use for `effort`; it is for engines that are spoken to as claude, codex",
            ),
        ] {
            assert_eq!(mistake(text), message);
        }
    }

    #[test]
    fn an_effort_is_one_of_the_engines_words() {
        assert_eq!(mistake("engines.claude.effort = 'hard'"), "`engines.claude.effort`: `hard` is none of low, medium, high, xhigh, max");
        let words = "none, minimal, low, medium, high, xhigh, max, ultra";
        assert_eq!(mistake("engines.codex.effort = 'hgih'"), format!("`engines.codex.effort`: `hgih` is none of {words}"));
        assert_eq!(mistake("engines.claude.fallback-model = 'a,--b'"), "`engines.claude.fallback-model`: `--b` is no model's name");
        assert_eq!(read("engines.claude.effort = 'max'").expect("settings").efforts[&EngineKind::Claude], "max");
    }

    #[test]
    fn servers_are_told_to_the_engine_as_they_are_written() {
        let text = "[engines.claude.mcp]\ndesk = { command = 'desk', args = ['-v'], env = { A = 'b' } }\nfar = { url = 'https://example.com/mcp' }";

        let servers = Value::from(read(text).expect("settings").servers[&EngineKind::Claude].clone());

        let wanted = r#"{"desk":{"command":"desk","args":["-v"],"env":{"A":"b"}},"far":{"url":"https://example.com/mcp"}}"#;
        assert_eq!(servers, serde_json::from_str::<Value>(wanted).expect("JSON"));
    }

    #[test]
    fn what_is_no_server_is_a_mistake_at_its_place() {
        for (text, message) in [
            ("engines.claude.mcp = 'a.json'", "`engines.claude.mcp` wants a table, this is a string"),
            ("engines.claude.mcp.a = {}", "`engines.claude.mcp.a` wants either a `command` or a `url`"),
            ("engines.claude.mcp.a = { command = 'a', url = 'b' }", "`engines.claude.mcp.a` wants either a `command` or a `url`"),
            ("engines.claude.mcp.a = { commnad = 'a' }", "unknown key `engines.claude.mcp.a.commnad`"),
            ("engines.claude.mcp.proctor = { command = 'a' }", "`proctor` is the server of the session's own tools"),
            ("engines.claude.mcp.'a b' = { command = 'a' }", "`a b` is no server's name: it wants at most 40 letters, digits, `-` and `_`"),
            (
                "engines.claude.mcp.a = { command = 'a', env = { A = 1 } }",
                "`engines.claude.mcp.a.env.A` wants a string, this is an integer",
            ),
        ] {
            assert_eq!(mistake(text), message, "{text}");
        }
    }
}
