//! `proctor engines`: what can drive agents here, and in which box they run.
//!
//! It says how things are and judges nothing, so it exits with 0 whatever it finds; `doctor` is for judging.

mod survey;
mod versions;

use std::collections::BTreeMap;

use proctor_domain::ExitCode;
use proctor_domain::session::{EngineName, Work};
use proctor_engine::agent::{Capabilities, EngineKind, EngineSetup, Login, Permission, TIERS, engine};
use proctor_process::confine::Container;
use serde::Serialize;

use crate::Invocation;
use crate::args::Format;
use crate::args::engine::EnginesArgs;
use crate::place::SettingsHere;
use crate::printer::{Stream, Style, visible_line};
use crate::report::Report;
use crate::settings::Settings;
pub(crate) use survey::{BoxSurvey, Surveyed, Weight, doubt_about_version, learn_versions, survey, survey_boxes};

#[derive(Serialize)]
struct Listing<'here> {
    version: u32,
    /// The engine that runs use unless they are told otherwise, and who says so.
    engine: Said<'here>,
    /// What drives judges.
    judge: Said<'here>,
    engines: Vec<EngineObject<'here>>,
    tiers: Vec<TierObject>,
    confine: Said<'here>,
    #[serde(rename = "box")]
    boxes: BoxObject,
    /// Settings of the repository that were left out because they were not accepted.
    not_accepted: Vec<&'static str>,
}

#[derive(Serialize)]
struct Said<'here> {
    name: &'here str,
    source: String,
}

#[derive(Serialize)]
struct EngineObject<'here> {
    name: &'here str,
    kind: &'static str,
    usable: bool,
    program: String,
    found: Option<String>,
    version: Option<&'here str>,
    tested: Option<[&'static str; 2]>,
    in_tested_range: Option<bool>,
    /// `logged-in`, `logged-out`, `not-needed` or `unknown`.
    login: &'static str,
    login_by: Option<&'here str>,
    inherit: bool,
    permission: &'static str,
    effort: Option<&'here str>,
    fallback_model: Option<&'here str>,
    /// The names of its servers.
    mcp: Vec<&'here str>,
    script: Option<String>,
    capabilities: BTreeMap<&'static str, bool>,
    models: BTreeMap<&'static str, String>,
    troubles: Vec<TroubleObject<'here>>,
}

#[derive(Serialize)]
struct TroubleObject<'here> {
    hindrance: bool,
    detail: &'here str,
    remedy: &'here str,
}

#[derive(Serialize)]
struct TierObject {
    name: &'static str,
    alias: &'static str,
}

#[derive(Serialize)]
struct BoxObject {
    /// What agents get, as far as it can express what they may write; null where they don't run.
    used: Option<&'static str>,
    /// What they reach of the network.
    net: &'static str,
    /// What such a box is to keep them from and this one does not.
    open: Vec<OpenObject>,
    problem: Option<String>,
    bwrap: KindObject,
    landlock: KindObject,
    container: KindObject,
}

#[derive(Serialize)]
struct OpenObject {
    name: &'static str,
    reason: &'static str,
}

#[derive(Serialize)]
struct KindObject {
    works: bool,
    /// What is there, or why it does not work.
    detail: String,
}

/// The abilities of an engine by their names, in the order of the documentation.
pub(crate) fn abilities(capabilities: Capabilities) -> [(&'static str, bool); 11] {
    let Capabilities {
        resume,
        structured_result,
        turn_cap,
        money_cap,
        tool_list,
        system_prompt,
        cost,
        steering,
        effort,
        fallback_model,
        mcp_servers,
    } = capabilities;
    [
        ("resume", resume),
        ("structured_result", structured_result),
        ("turn_cap", turn_cap),
        ("money_cap", money_cap),
        ("tool_list", tool_list),
        ("system_prompt", system_prompt),
        ("cost", cost),
        ("steering", steering),
        ("effort", effort),
        ("fallback_model", fallback_model),
        ("mcp_servers", mcp_servers),
    ]
}

/// Lists them.
pub fn run(invocation: &Invocation, args: &EnginesArgs) -> Result<ExitCode, Report> {
    let here = SettingsHere::find(invocation)?;
    let engines = here.agents.setups.iter().map(|setup| survey(invocation, setup)).collect::<Vec<_>>();
    let boxes = survey_boxes(&here.agents, &here.program);
    match Format::from_flag(args.json) {
        Format::Json => invocation.printer.json(&listing(&here, &engines, &boxes)),
        Format::Text => print(invocation, &here, &engines, &boxes),
    }
    Ok(ExitCode::Done)
}

fn listing<'here>(here: &'here SettingsHere, engines: &'here [Surveyed], boxes: &BoxSurvey) -> Listing<'here> {
    let settings = &here.settings;
    Listing {
        version: 1,
        engine: Said { name: settings.engine.value.as_str(), source: settings.engine.source.to_string() },
        judge: Said { name: here.agents.driving(Work::Judge(1)).name.as_str(), source: settings.judge.source.to_string() },
        engines: engines.iter().map(|engine| engine_object(here, engine)).collect(),
        tiers: TIERS.iter().map(|row| TierObject { name: row.name, alias: row.alias }).collect(),
        confine: Said { name: settings.confine.value.name(), source: settings.confine.source.to_string() },
        boxes: BoxObject {
            used: boxes.used.as_ref().ok().map(|chosen| chosen.kind().name()),
            net: settings.net.value.name(),
            open: boxes.open.iter().map(|cell| OpenObject { name: cell.name, reason: cell.reason }).collect(),
            problem: boxes.trouble.as_ref().map(|trouble| trouble.detail.clone()),
            bwrap: kind_object(boxes.available.bwrap.as_ref().map(|path| path.display().to_string())),
            landlock: kind_object(boxes.available.landlock.as_ref().map(|version| format!("version {version}"))),
            container: kind_object(boxes.available.container.as_ref().map(Container::describe)),
        },
        not_accepted: here.not_accepted.clone(),
    }
}

fn engine_object<'here>(here: &SettingsHere, surveyed: &'here Surveyed) -> EngineObject<'here> {
    let kind = surveyed.setup.kind;
    let trouble = |trouble: &'here survey::Trouble| TroubleObject {
        hindrance: trouble.weight == Weight::Hindrance,
        detail: &trouble.detail,
        remedy: &trouble.remedy,
    };
    EngineObject {
        name: surveyed.setup.name.as_str(),
        kind: kind.name(),
        usable: surveyed.is_usable(),
        program: surveyed.setup.program.display().to_string(),
        found: surveyed.found.as_ref().map(|path| path.display().to_string()),
        version: surveyed.version.as_deref(),
        tested: engine(kind).tested().map(|(first, last)| [first, last]),
        in_tested_range: surveyed.in_tested_range,
        login: match &surveyed.login {
            Login::By(_) => "logged-in",
            Login::No => "logged-out",
            Login::NotNeeded => "not-needed",
            Login::Unknown => "unknown",
        },
        login_by: login_by(&surveyed.login),
        inherit: surveyed.setup.inherit,
        permission: permission(surveyed.setup.permission),
        effort: surveyed.setup.effort.as_deref(),
        fallback_model: surveyed.setup.fallback_model.as_deref(),
        mcp: surveyed.setup.servers.keys().map(String::as_str).collect(),
        script: surveyed.setup.script.as_ref().map(|path| path.display().to_string()),
        capabilities: abilities(engine(kind).capabilities()).into(),
        models: models(here, &surveyed.setup).into(),
        troubles: surveyed.troubles.iter().map(trouble).collect(),
    }
}

fn kind_object(outcome: Result<String, &String>) -> KindObject {
    match outcome {
        Ok(detail) => KindObject { works: true, detail },
        Err(reason) => KindObject { works: false, detail: reason.clone() },
    }
}

fn login_by(login: &Login) -> Option<&str> {
    match login {
        Login::By(what) => Some(what),
        Login::No | Login::NotNeeded | Login::Unknown => None,
    }
}

fn permission(permission: Permission) -> &'static str {
    match permission {
        Permission::Ask => "ask",
        Permission::Bypass => "bypass",
    }
}

/// What the engine is used for here, and who says so.
fn in_use(settings: &Settings, name: &EngineName) -> String {
    let engine = (*name == settings.engine.value).then(|| format!(" (in use, {})", settings.engine.source));
    let judge = (settings.judge.value.as_ref() == Some(name)).then(|| format!(" (judges, {})", settings.judge.source));
    engine.into_iter().chain(judge).collect()
}

/// What each tier is called.
fn models(here: &SettingsHere, setup: &EngineSetup) -> [(&'static str, String); 4] {
    TIERS.map(|row| (row.name, here.agents.models.model(&setup.name, setup.kind, row.name)))
}

fn print(invocation: &Invocation, here: &SettingsHere, engines: &[Surveyed], boxes: &BoxSurvey) {
    let printer = &invocation.printer;
    for surveyed in engines {
        let name = &surveyed.setup.name;
        let in_use = in_use(&here.settings, name);
        printer.line(&format!("{}{}", printer.paint(Stream::Out, Style::Strong, name.as_str()), visible_line(&in_use)));
        for (name, value) in rows(here, surveyed) {
            printer.line(&format!("  {name:<9} {}", visible_line(&value)));
        }
        for trouble in &surveyed.troubles {
            print_trouble(invocation, trouble);
        }
    }
    let used = match &boxes.used {
        Ok(chosen) => chosen.kind().name(),
        Err(_) => "refused",
    };
    printer.line(&format!("{} {used}", printer.paint(Stream::Out, Style::Strong, "box")));
    let setting = &here.settings.confine;
    printer.line(&format!("  {:<9} {} ({})", "confine", setting.value.name(), visible_line(&setting.source.to_string())));
    let setting = &here.settings.net;
    printer.line(&format!("  {:<9} {} ({})", "net", setting.value.name(), visible_line(&setting.source.to_string())));
    let row = |name: &str, outcome: Result<String, &String>| {
        let text = outcome.unwrap_or_else(|reason| format!("does not work: {reason}"));
        printer.line(&format!("  {name:<9} {}", visible_line(&text)));
    };
    row("bwrap", boxes.available.bwrap.as_ref().map(|path| path.display().to_string()));
    row("landlock", boxes.available.landlock.as_ref().map(|version| format!("version {version}")));
    row("container", boxes.available.container.as_ref().map(Container::describe));
    if !boxes.open.is_empty() && used != "none" {
        row("open", Ok(boxes.open.iter().map(|cell| cell.name).collect::<Vec<_>>().join(", ")));
    }
    boxes.trouble.iter().for_each(|trouble| print_trouble(invocation, trouble));
    if !here.not_accepted.is_empty() {
        printer
            .say(&format!("left out until you accept it with `proctor trust`, and no run starts before: {}", here.not_accepted.join(", ")));
    }
}

fn print_trouble(invocation: &Invocation, trouble: &survey::Trouble) {
    let printer = &invocation.printer;
    let (sign, style) = match trouble.weight {
        Weight::Hindrance => ("✗", Style::Bad),
        Weight::Doubt => ("!", Style::Doubtful),
    };
    printer.line(&format!("  {} {}", printer.paint(Stream::Out, style, sign), visible_line(&trouble.detail)));
    printer.line(&format!("    {} {}", printer.paint(Stream::Out, Style::Strong, "remedy:"), visible_line(&trouble.remedy)));
}

fn settings_text(setup: &EngineSetup) -> String {
    let mut text = format!("inherit {}, permission {}", setup.inherit, permission(setup.permission));
    for (name, value) in [("effort", &setup.effort), ("fallback model", &setup.fallback_model)] {
        text.extend(value.iter().map(|value| format!(", {name} {value}")));
    }
    if !setup.servers.is_empty() {
        text.push_str(&format!(", mcp {}", setup.servers.keys().cloned().collect::<Vec<_>>().join(" ")));
    }
    text
}

/// What is said of an engine line by line.
fn rows(here: &SettingsHere, surveyed: &Surveyed) -> Vec<(&'static str, String)> {
    let kind = surveyed.setup.kind;
    let found = surveyed.found.as_ref().map_or_else(|| "not found".to_owned(), |path| path.display().to_string());
    let program = std::iter::once(found).chain(surveyed.setup.arguments.iter().cloned()).collect::<Vec<_>>().join(" ");
    let version = surveyed.version.as_deref().unwrap_or("unknown");
    let able = abilities(engine(kind).capabilities()).into_iter().filter(|(_, able)| *able).map(|(name, _)| name.replace('_', " "));
    let settings = match kind {
        EngineKind::Claude | EngineKind::Codex | EngineKind::OpenCode | EngineKind::Acp | EngineKind::Command => {
            ("settings", settings_text(&surveyed.setup))
        }
        EngineKind::Scripted => {
            ("script", surveyed.setup.script.as_ref().map_or_else(|| "none".to_owned(), |path| path.display().to_string()))
        }
    };
    vec![
        ("program", program),
        (
            "version",
            match engine(kind).tested() {
                Some((first, last)) if first != last => format!("{version} (tested with {first} to {last})"),
                Some(_) | None => version.to_owned(),
            },
        ),
        (
            "login",
            match &surveyed.login {
                Login::By(what) => format!("by {what}"),
                Login::No => "nobody".to_owned(),
                Login::NotNeeded => "not needed".to_owned(),
                Login::Unknown => "can't be known without a call".to_owned(),
            },
        ),
        ("can", able.collect::<Vec<_>>().join(", ")),
        ("models", models(here, &surveyed.setup).map(|(tier, model)| format!("{tier} = {model}")).join(", ")),
        settings,
    ]
}
