//! Whether agents can run here: the engine that is in use, and the box.
//!
//! Where no procedure needs an agent, what is wrong with them is only noted.

use proctor_cards::list_procedures;
use proctor_engine::agent::{EngineSetup, Login};

use super::{Check, State};
use crate::Invocation;
use crate::commands::engines::{Weight, survey, survey_boxes};
use crate::place::{Place, SettingsHere};
use crate::settings::trust::Consent;

pub(super) fn check(invocation: &Invocation, place: &Place, consent: Consent) -> Vec<Check> {
    let here = match SettingsHere::of(invocation, &place.layers, consent) {
        Ok(here) => here,
        Err(report) => return vec![Check::from_report("engine", &report)],
    };
    let needed = list_procedures(&place.card_root, place.layout.value)
        .iter()
        .filter_map(|card| card.result.as_ref().ok())
        .any(|card| card.definition.needs_agents());
    let judge = here.agents.judge.as_ref().map(|judge| engine(invocation, "judge", judge));
    let checks = [engine(invocation, "engine", &here.agents.engine), agent_box(&here)];
    checks.into_iter().chain(judge).map(|check| if needed { check } else { noted(check) }).collect()
}

fn engine(invocation: &Invocation, check: &'static str, setup: &EngineSetup) -> Check {
    let name = &setup.name;
    let surveyed = survey(invocation, setup);
    // What keeps it from running is said before what is only doubtful.
    let worst = surveyed.troubles.iter().find(|trouble| trouble.weight == Weight::Hindrance).or(surveyed.troubles.first());
    match worst {
        Some(trouble) if trouble.weight == Weight::Hindrance => {
            Check::failure(check, format!("{name}: {}", trouble.detail), trouble.remedy.as_str())
        }
        Some(trouble) => Check::warning(check, format!("{name}: {}", trouble.detail), trouble.remedy.as_str()),
        None => {
            let login = match &surveyed.login {
                Login::By(what) => format!(", logged in by {what}"),
                Login::No | Login::NotNeeded | Login::Unknown => String::new(),
            };
            Check::ok(check, format!("{name} {}{login}", surveyed.version.as_deref().unwrap_or_default()))
        }
    }
}

fn agent_box(here: &SettingsHere) -> Check {
    const NAME: &str = "confinement";
    let boxes = survey_boxes(&here.agents, &here.program);
    match (boxes.trouble, boxes.used) {
        (Some(trouble), _) if trouble.weight == Weight::Hindrance => Check::failure(NAME, trouble.detail, trouble.remedy),
        (Some(trouble), _) => Check::warning(NAME, trouble.detail, trouble.remedy),
        (None, used) => {
            let setting = &here.settings.confine;
            let kind = used.as_ref().map_or("none", |chosen| chosen.kind().name());
            let open: Vec<&str> = boxes.open.iter().map(|cell| cell.name).collect();
            let left = if open.is_empty() || kind == "none" { String::new() } else { format!("; it leaves open: {}", open.join(", ")) };
            Check::ok(NAME, format!("{kind} (confine = {}, {}){left}", setting.value.name(), setting.source))
        }
    }
}

fn noted(check: Check) -> Check {
    match check.state {
        State::Ok => check,
        State::Warning | State::Failure => Check::ok(check.name, format!("no procedure needs agents; {}", check.detail)),
    }
}
