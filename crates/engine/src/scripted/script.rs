//! What a scripted agent will do: the parsed form of a script file. `docs/scripted-engine.md` explains the format.
//!
//! TOML, because people write these by hand with several lines of text in them, and because its reader is in the tree, says
//! where a mistake is, and knows no clever spellings: what looks like a text is one. The keys are the types below; a key that
//! is in none of them is a mistake.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use proctor_domain::session::Usage;
use proctor_domain::{Cost, MicroDollars};
use regex::Regex;
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_spanned::Spanned;

/// Why there is no script to follow.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file can't be read.
    #[error("read the script {}", path.display())]
    File {
        /// The script file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Not TOML, an unknown key, a value of the wrong kind, or one that can't be meant.
    #[error("read the script {}: line {line}, column {column}: {message} in `{text}`", path.display())]
    Mistake {
        /// The script file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// What is wrong there.
        message: String,
        /// The line itself.
        text: String,
    },
}

/// Reads the whole of a script file for mistakes. A session reads of its script only what it needs.
///
/// # Errors
/// The first mistake, by its place.
pub fn check_script(path: &Path) -> Result<(), ScriptError> {
    let script = Script::read(path)?;
    script.scenarios.iter().filter_map(|scenario| scenario.pattern.as_ref()).try_for_each(|pattern| script.compile(pattern).map(drop))
}

/// A script that was read.
#[derive(Debug)]
pub(super) struct Script {
    path: PathBuf,
    text: String,
    /// INVARIANT: never empty; the last one is the fallback, which has no conditions.
    scenarios: Vec<Scenario>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Shape {
    #[serde(default)]
    scenario: Vec<Scenario>,
    default: Option<Fallback>,
}

/// What is done for the prompts that match.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Scenario {
    /// For the reader of the script.
    #[allow(dead_code, reason = "a name that tells people what the scenario is for")]
    name: Option<String>,
    #[serde(rename = "match")]
    pattern: Option<Spanned<String>>,
    contains: Option<String>,
    on: Option<Visit>,
    if_file: Option<PathBuf>,
    unless_file: Option<PathBuf>,
    pub(super) fail_start: Option<String>,
    #[serde(rename = "continue", default)]
    pub(super) goes_on: bool,
    #[serde(rename = "turn", default)]
    pub(super) turns: Vec<Turn>,
    #[serde(default)]
    pub(super) after: Vec<Action>,
}

/// What is done for all other prompts: a scenario without conditions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Fallback {
    fail_start: Option<String>,
    #[serde(rename = "continue", default)]
    goes_on: bool,
    #[serde(rename = "turn", default)]
    turns: Vec<Turn>,
    #[serde(default)]
    after: Vec<Action>,
}

/// Whether a conversation begins or goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Visit {
    Start,
    Resume,
}

/// One answer of the model, with what its tools did.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Turn {
    #[serde(rename = "do", default)]
    pub(super) actions: Vec<Action>,
    #[serde(default)]
    usage: UsageShape,
    #[serde(default = "nothing", deserialize_with = "cost")]
    pub(super) cost: Cost,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct UsageShape {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

/// One thing that the agent does.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Action {
    Say(String),
    Think(String),
    Run(String),
    Write(File),
    Commit(Commit),
    Wait(Wait),
    Hear(Hear),
    Busy(While),
    Heartbeat(While),
    Print(String),
    PrintPart(String),
    HugeLine(Mebibytes),
    Stderr(String),
    Result(Answer),
    Results(Answers),
    UnvalidatedResult(Answer),
    Leave(Leave),
    Call(Call),
    IgnoreTerm,
    Hang,
    Exit(u8),
    Die(Death),
    Fail(Failure),
    Refuse(String),
    RateLimit(Reset),
    UsageLimit(Reset),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) content: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Commit {
    pub(super) message: String,
    #[serde(default = "everything")]
    pub(super) paths: Vec<String>,
}

/// Waits for a file; it is an error when it does not come.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Wait {
    pub(super) file: PathBuf,
    #[serde(default = "a_minute")]
    pub(super) ms: u64,
}

/// Waits until something is said to it, and repeats it; it is an error when nothing is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Hear {
    #[serde(default = "a_minute")]
    pub(super) ms: u64,
}

/// Goes on until a file is there or the time is over, whichever comes first.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct While {
    pub(super) until_file: Option<PathBuf>,
    #[serde(default = "a_minute")]
    pub(super) ms: u64,
}

/// How long a line is, in MiB.
#[derive(Debug)]
pub(super) struct Mebibytes(pub(super) usize);

/// A structured result.
#[derive(Debug)]
pub(super) struct Answer(pub(super) Value);

/// Structured results, each tried after the one before was not what the schema asks for.
#[derive(Debug)]
pub(super) struct Answers(pub(super) Vec<Answer>);

/// A process that outlives the agent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Leave {
    pub(super) command: String,
    #[serde(default)]
    pub(super) hold_stdout: bool,
}

/// A call of one of the session's tools.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) input: Answer,
}

/// The signal that an agent dies of.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Death {
    Kill,
    Term,
    Int,
    Hup,
    Abrt,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Failure {
    pub(super) reason: String,
    #[serde(default = "one")]
    pub(super) exit: u8,
}

/// When a limit resets, as far as the provider says so.
#[derive(Debug)]
pub(super) enum Reset {
    /// Seconds from now.
    After(u64),
    /// Seconds since 1970.
    At(u64),
    Unsaid,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ResetShape {
    resets_in: Option<u64>,
    resets_at: Option<u64>,
}

/// More than any line that something has to live through.
const LONGEST_LINE: usize = 1024;

fn nothing() -> Cost {
    Cost::Known(MicroDollars(0))
}

fn everything() -> Vec<String> {
    vec![".".to_owned()]
}

fn a_minute() -> u64 {
    60_000
}

fn one() -> u8 {
    1
}

impl Script {
    /// Reads a script file.
    pub(super) fn read(path: &Path) -> Result<Self, ScriptError> {
        let text = std::fs::read_to_string(path).map_err(|source| ScriptError::File { path: path.to_owned(), source })?;
        let shape: Shape = toml_edit::de::from_str(&text)
            .map_err(|error| mistake(path, &text, error.span().unwrap_or(0..0), error.message().to_owned()))?;
        let mut scenarios = shape.scenario;
        scenarios.push(shape.default.map_or_else(Scenario::unscripted, Scenario::from));
        Ok(Self { path: path.to_owned(), text, scenarios })
    }

    /// The scenario for this prompt, and its number: the first one whose conditions all hold.
    pub(super) fn choose(&self, prompt: &str, visit: Visit) -> Result<(usize, &Scenario), ScriptError> {
        for (number, scenario) in self.scenarios.iter().enumerate() {
            let holds = scenario.contains.as_ref().is_none_or(|part| prompt.contains(part.as_str()))
                && scenario.on.is_none_or(|on| on == visit)
                && scenario.if_file.as_ref().is_none_or(|file| file.exists())
                && scenario.unless_file.as_ref().is_none_or(|file| !file.exists());
            // The pattern last: compiling one costs more than all else together.
            if holds && scenario.pattern.as_ref().map_or(Ok(true), |pattern| Ok(self.compile(pattern)?.is_match(prompt)))? {
                return Ok((number, scenario));
            }
        }
        // Not reached: the fallback has no conditions.
        Err(self.mistake(0..0, "no scenario is left"))
    }

    /// The scenario with this number, where the script still has one.
    pub(super) fn numbered(&self, number: usize) -> Option<&Scenario> {
        self.scenarios.get(number)
    }

    fn compile(&self, pattern: &Spanned<String>) -> Result<Regex, ScriptError> {
        Regex::new(pattern.get_ref()).map_err(|error| self.mistake(pattern.span(), &format!("`match` is no regular expression: {error}")))
    }

    fn mistake(&self, span: Range<usize>, message: &str) -> ScriptError {
        mistake(&self.path, &self.text, span, message.to_owned())
    }
}

fn mistake(path: &Path, text: &str, span: Range<usize>, message: String) -> ScriptError {
    let before = text.get(..span.start).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    ScriptError::Mistake {
        path: path.to_owned(),
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        message: message.trim_end().to_owned(),
        text: text[line_start..].lines().next().unwrap_or_default().trim().to_owned(),
    }
}

impl Scenario {
    /// For a script that says nothing about a prompt.
    fn unscripted() -> Self {
        let actions = vec![Action::Say("Nothing is scripted for this prompt.".to_owned())];
        Self::from(Fallback {
            fail_start: None,
            goes_on: false,
            turns: vec![Turn { actions, usage: UsageShape::default(), cost: nothing() }],
            after: Vec::new(),
        })
    }
}

impl From<Fallback> for Scenario {
    fn from(fallback: Fallback) -> Self {
        let Fallback { fail_start, goes_on, turns, after } = fallback;
        Self { name: None, pattern: None, contains: None, on: None, if_file: None, unless_file: None, fail_start, goes_on, turns, after }
    }
}

impl Turn {
    /// The tokens that it reports.
    pub(super) fn usage(&self) -> Usage {
        let UsageShape { input, output, cache_read, cache_write } = self.usage;
        Usage { input, output, cache_read, cache_write }
    }
}

impl<'de> Deserialize<'de> for Mebibytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = usize::deserialize(deserializer)?;
        if number > LONGEST_LINE {
            return Err(D::Error::custom(format_args!("a line has at most {LONGEST_LINE} MiB")));
        }
        Ok(Self(number))
    }
}

impl<'de> Deserialize<'de> for Answer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if holds_date(&value) {
            return Err(D::Error::custom("a result holds a date, which JSON does not know; write it in quotes"));
        }
        Ok(Self(value))
    }
}

impl<'de> Deserialize<'de> for Answers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let answers = Vec::deserialize(deserializer)?;
        if answers.is_empty() {
            return Err(D::Error::custom("`results` holds at least one result"));
        }
        Ok(Self(answers))
    }
}

/// The TOML reader hands a date to a type that knows none as a table with one key of its own.
fn holds_date(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(holds_date),
        Value::Object(entries) => entries.contains_key("$__toml_private_datetime") || entries.values().any(holds_date),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

impl<'de> Deserialize<'de> for Reset {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match ResetShape::deserialize(deserializer)? {
            ResetShape { resets_in: Some(seconds), resets_at: None } => Ok(Self::After(seconds)),
            ResetShape { resets_in: None, resets_at: Some(second) } => Ok(Self::At(second)),
            ResetShape { resets_in: None, resets_at: None } => Ok(Self::Unsaid),
            ResetShape { resets_in: Some(_), resets_at: Some(_) } => {
                Err(D::Error::custom("a limit has either `resets-in` or `resets-at`, or neither"))
            }
        }
    }
}

/// Dollars as a number or in quotes, or the word `unknown`.
fn cost<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cost, D::Error> {
    deserializer.deserialize_any(CostVisitor)
}

struct CostVisitor;

impl Visitor<'_> for CostVisitor {
    type Value = Cost;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an amount of dollars or \"unknown\"")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Cost, E> {
        if text == "unknown" { Ok(Cost::Unknown) } else { text.parse().map(Cost::Known).map_err(E::custom) }
    }

    fn visit_f64<E: serde::de::Error>(self, dollars: f64) -> Result<Cost, E> {
        MicroDollars::from_float(dollars).map(Cost::Known).ok_or_else(|| E::custom("no amount of dollars"))
    }

    fn visit_i64<E: serde::de::Error>(self, dollars: i64) -> Result<Cost, E> {
        self.visit_str(&dollars.to_string())
    }
}
