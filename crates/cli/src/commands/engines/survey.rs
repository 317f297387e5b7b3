//! What can be found out about an engine without a call to its provider.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_engine::agent::{EngineKind, EngineSetup, Login, engine};
use proctor_engine::check_script;
use proctor_orchestrator::AgentSettings;
use proctor_process::confine::{self, Available, BoxRules, ChosenBox, Confine, ConfineError, OpenCell};
use proctor_process::{Program, find_program};

use super::versions::Versions;
use crate::Invocation;
use crate::environment;
use crate::settings::Key;

/// A program that does not say its version in this time does not work.
const PATIENCE: Duration = Duration::from_secs(10);

/// One engine as it is here.
pub(crate) struct Surveyed {
    /// How it is to be used.
    pub(crate) setup: EngineSetup,
    /// Its program, where there is one.
    pub(crate) found: Option<PathBuf>,
    /// What its program says about itself.
    pub(crate) version: Option<String>,
    /// Whether that is among the versions that it was tested with.
    pub(crate) in_tested_range: Option<bool>,
    /// Whether somebody is logged in.
    pub(crate) login: Login,
    /// What stands in the way of using it.
    pub(crate) troubles: Vec<Trouble>,
}

/// Something about an engine or a box that is not as it should be.
pub(crate) struct Trouble {
    /// How bad it is.
    pub(crate) weight: Weight,
    /// What it is.
    pub(crate) detail: String,
    /// An exact command, key or action.
    pub(crate) remedy: String,
}

/// How bad a trouble is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// No agent can run.
    Hindrance,
    /// Agents can run, and perhaps not well.
    Doubt,
}

impl Trouble {
    fn hindrance(detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { weight: Weight::Hindrance, detail: detail.into(), remedy: remedy.into() }
    }

    fn doubt(detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { weight: Weight::Doubt, detail: detail.into(), remedy: remedy.into() }
    }
}

impl Surveyed {
    /// Whether its agents can run.
    pub(crate) fn is_usable(&self) -> bool {
        self.troubles.iter().all(|trouble| trouble.weight != Weight::Hindrance)
    }
}

/// Looks at one engine.
pub(crate) fn survey(invocation: &Invocation, setup: &EngineSetup) -> Surveyed {
    let kind = setup.kind;
    let path = invocation.environment.get(&environment::PATH).unwrap_or_default();
    let found = find_program(&setup.program, path);
    let mut troubles = Vec::new();
    let version = match &found {
        None => {
            let detail = format!("its program `{}` is not found", setup.program.display());
            let key = EngineKind::built_in(&setup.name)
                .map_or_else(|| format!("engines.{}", setup.name), |kind| Key::Program(kind).name().to_owned());
            troubles.push(Trouble::hindrance(detail, format!("install it, or name it: `{key}` in your settings")));
            None
        }
        // Nothing is known of a program that the settings make up, not even that it has a version.
        Some(_) if engine(kind).tested().is_none() => None,
        Some(program) => version_of(invocation, kind, program).map_err(|trouble| troubles.push(trouble)).ok(),
    };
    let in_tested_range = engine(kind).tested().zip(version.as_deref()).map(|(tested, version)| is_tested(version, tested));
    if let (Some(version), Some((first, last)), Some(false)) = (&version, engine(kind).tested(), in_tested_range) {
        let remedy = format!("install {last}, or look closely at its first runs");
        troubles.push(Trouble::doubt(not_tested(version, (first, last)), remedy));
    }
    let login = login(invocation, setup);
    if login == Login::No {
        troubles.push(Trouble::doubt("nobody is logged in", how_to_log_in(kind)));
    }
    if let Some(name) = setup.missing_variable(&|name| of_caller(invocation, name)) {
        let detail = format!("its settings take a value from the variable {name}, which is not set");
        troubles.push(Trouble::hindrance(detail, format!("set {name}, or mend `engines.{}.env`", setup.name)));
    }
    if kind == EngineKind::Scripted {
        troubles.extend(script_trouble(setup.script.as_deref()));
    }
    Surveyed { setup: setup.clone(), found, version, in_tested_range, login, troubles }
}

/// What is doubtful about the version of an engine's program, in one sentence.
pub(crate) fn doubt_about_version(invocation: &Invocation, setup: &EngineSetup) -> Option<String> {
    let tested = engine(setup.kind).tested()?;
    let version = version_here(invocation, setup)?;
    (!is_tested(&version, tested)).then(|| not_tested(&version, tested))
}

/// Finds out the version of the programs that are run in another way where they are old.
pub(crate) fn learn_versions(invocation: &Invocation, agents: &mut AgentSettings) {
    for setup in agents.of_kind(EngineKind::Codex) {
        setup.version = version_here(invocation, setup);
    }
}

fn version_here(invocation: &Invocation, setup: &EngineSetup) -> Option<String> {
    let program = find_program(&setup.program, invocation.environment.get(&environment::PATH).unwrap_or_default())?;
    version_of(invocation, setup.kind, &program).ok()
}

fn not_tested(version: &str, (first, last): (&str, &str)) -> String {
    let range = if first == last { first.to_owned() } else { format!("{first} to {last}") };
    format!("version {version} is not among those that it was tested with, {range}")
}

fn version_of(invocation: &Invocation, kind: EngineKind, program: &Path) -> Result<String, Trouble> {
    let versions = Versions::read(invocation);
    if let Some(version) = versions.of(program).and_then(|said| engine(kind).version(said)) {
        return Ok(version);
    }
    let (version, said) = ask_version(invocation, kind, program)?;
    versions.keep(program, &said);
    Ok(version)
}

/// Asks a program; its version, and what it said.
fn ask_version(invocation: &Invocation, kind: EngineKind, program: &Path) -> Result<(String, String), Trouble> {
    let broken = |reason: String| {
        let remedy = format!("see what `{} --version` says", program.display());
        Trouble::doubt(format!("`{} --version` {reason}", program.display()), remedy)
    };
    let finished = Program::new(program)
        .arg("--version")
        .dir(invocation.directory.as_path())
        .env(invocation.environment.pairs())
        .own_group()
        .run(Some(PATIENCE))
        .map_err(|error| Trouble::hindrance(format!("failed to {error}"), "install it again"))?;
    if finished.timed_out {
        return Err(broken(format!("says nothing in {} s", PATIENCE.as_secs())));
    }
    if !finished.status.is_success() {
        return Err(broken(format!("fails (exit {})", finished.status.shell_code())));
    }
    let printed = String::from_utf8_lossy(&finished.stdout);
    engine(kind).version(&printed).map(|version| (version, printed.to_string())).ok_or_else(|| {
        let first = printed.lines().next().unwrap_or_default();
        broken(format!("says `{}`, which is no version of {kind}", crate::run_text::short_line(first, 60)))
    })
}

/// Whether a version lies between these two, compared number by number.
fn is_tested(version: &str, (first, last): (&str, &str)) -> bool {
    (numbers(first)..=numbers(last)).contains(&numbers(version))
}

fn numbers(version: &str) -> Vec<u64> {
    version.split(|letter: char| !letter.is_ascii_digit()).map_while(|number| number.parse().ok()).collect()
}

fn login(invocation: &Invocation, setup: &EngineSetup) -> Login {
    let home = invocation.environment.folder(&environment::HOME).unwrap_or_default();
    engine(setup.kind).login(&home, &|name| setup.variable(name, &|name| of_caller(invocation, name)))
}

fn of_caller(invocation: &Invocation, name: &str) -> Option<OsString> {
    invocation.environment.pairs().into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

fn how_to_log_in(kind: EngineKind) -> &'static str {
    match kind {
        EngineKind::Claude => "start `claude` and log in, or set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN",
        EngineKind::Codex => "run `codex login`, or set CODEX_API_KEY",
        EngineKind::OpenCode => "run `opencode auth login`",
        EngineKind::Acp | EngineKind::Command | EngineKind::Scripted => "",
    }
}

fn script_trouble(script: Option<&Path>) -> Option<Trouble> {
    let Some(script) = script else {
        let remedy = format!("give `--script FILE`, or set `{}`", Key::Script.name());
        return Some(Trouble::hindrance("no script says what it does", remedy));
    };
    if !script.is_file() {
        return Some(Trouble::hindrance(format!("its script {} is not there", script.display()), "give the path of a script"));
    }
    check_script(script).err().map(|error| Trouble::hindrance(format!("failed to {error}"), format!("mend {}", script.display())))
}

/// The box of agents here.
pub(crate) struct BoxSurvey {
    /// What this machine has.
    pub(crate) available: Available,
    /// What agents get, or why they don't run.
    pub(crate) used: Result<ChosenBox, ConfineError>,
    /// What it leaves open.
    pub(crate) open: Vec<OpenCell>,
    /// What is not as it should be.
    pub(crate) trouble: Option<Trouble>,
}

/// Tries which boxes can be made here. `program` is our own.
pub(crate) fn survey_boxes(agents: &AgentSettings, program: &Path) -> BoxSurvey {
    let available = confine::probe(program, agents.net, &agents.container);
    let rules = BoxRules { net: agents.net, ..BoxRules::default() };
    let engines = std::iter::once(&agents.engine).chain(&agents.judge);
    let network = engines.map(|setup| agents.network_suffices(setup)).collect::<Result<Vec<()>, ConfineError>>();
    let used = network.and_then(|_| confine::choose(agents.confine, &available, &rules));
    let is_auto = agents.confine == Confine::Auto;
    let install = "install bubblewrap; where it is there and fails, docs/boxes.md says what forbids it";
    let trouble = match &used {
        Err(error @ ConfineError::Network { .. }) => {
            Some(Trouble::hindrance(format!("failed to {error}"), "take `net` back, or an engine and a box that do without"))
        }
        Err(error) => Some(Trouble::hindrance(format!("failed to {error}"), "set `confine` to a box that can be made here, or to `auto`")),
        Ok(ChosenBox::None) if is_auto => Some(Trouble::doubt("no box can be made here, so agents run in none", install)),
        Ok(ChosenBox::Landlock { .. }) if is_auto => {
            Some(Trouble::doubt("without bwrap, agents that change files in the main checkout run in no box", install))
        }
        Ok(ChosenBox::None | ChosenBox::Bwrap | ChosenBox::Landlock { .. } | ChosenBox::Container(_)) => None,
    };
    let open = used.as_ref().map(|chosen| chosen.open_cells(agents.net)).unwrap_or_default();
    BoxSurvey { available, used, open, trouble }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let range = ("2.1.197", "2.1.332");
        for (version, expected) in
            [("2.1.197", true), ("2.1.332", true), ("2.1.1000", false), ("2.1.99", false), ("2.2.0", false), ("1.9.300", false)]
        {
            assert_eq!(is_tested(version, range), expected, "{version}");
        }
    }
}
