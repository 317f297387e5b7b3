//! The repository, its settings and cards; then, where there is any, its state.

use std::time::Duration;

use proctor_cards::{Level, list_procedures};
use proctor_workspace::{GitEnvironment, Repository, WorkspaceError};

use super::{Check, agents, leftovers, listed, state};
use crate::Invocation;
use crate::place::Place;
use crate::report::Report;
use crate::run_text::counted;
use crate::settings::trust::Consent;

pub(super) fn check(invocation: &Invocation) -> Vec<Check> {
    let git = GitEnvironment::from_user(invocation.environment.pairs());
    let repository = match Repository::discover(&invocation.directory, &git) {
        Ok(repository) => repository,
        Err(error) => return vec![Check::from_report("repository", &error.into())],
    };
    let mut checks = vec![usable(&repository), identity(&repository), signing(&repository)];
    let place = match Place::find(invocation) {
        Ok(place) => place,
        Err(report) => {
            checks.push(Check::from_report("settings", &report));
            return checks;
        }
    };
    checks.push(cards(&place));
    if let Err(report) = place.box_defaults() {
        checks.push(Check::from_report("box", &report));
    }
    match place.state_home(invocation).and_then(|home| Ok((place.find_state(invocation)?, home))) {
        Err(report) => checks.push(Check::from_report("state", &report)),
        Ok((None, home)) => {
            checks.push(trust(&place, place.consent(None)));
            checks.extend(agents::check(invocation, &place, place.consent(None).unwrap_or(Consent::Missing)));
            checks.extend(state::of_new_repository(home.path()));
        }
        Ok((Some(folder), _)) => {
            checks.push(trust(&place, place.consent(Some(&folder))));
            checks.extend(agents::check(invocation, &place, place.consent(Some(&folder)).unwrap_or(Consent::Missing)));
            checks.extend(state::check(&folder));
            checks.extend(leftovers::check(invocation, &folder));
        }
    }
    checks
}

/// Whether git can work in the repository now.
fn usable(repository: &Repository) -> Check {
    const NAME: &str = "repository";
    match repository.wait_for_index(Duration::ZERO) {
        Ok(()) => {}
        Err(error @ WorkspaceError::Locked { live: true, .. }) => {
            return Check::warning(NAME, format!("failed to {error}"), error.hint().unwrap_or_default());
        }
        Err(error) => return Check::from_report(NAME, &error.into()),
    }
    if let Some(operation) = repository.operation_in_progress() {
        let remedy = format!("finish it or end it: `git {operation} --continue` or `git {operation} --abort`");
        return Check::warning(NAME, format!("a {operation} is in progress, so no run can start"), remedy);
    }
    match repository.status() {
        Ok(status) => {
            let changes = match status.changes.len() {
                0 => "clean".to_owned(),
                count => format!("{} not committed", counted(count, "change")),
            };
            Check::ok(NAME, format!("{}, on {}, {changes}", repository.work_tree.display(), status.branch))
        }
        Err(error) => Check::from_report(NAME, &error.into()),
    }
}

fn identity(repository: &Repository) -> Check {
    match repository.identity_works() {
        Ok(()) => Check::ok("identity", "git knows who commits"),
        Err(error) => Check::from_report("identity", &error.into()),
    }
}

fn signing(repository: &Repository) -> Check {
    match repository.probe_signing() {
        Ok(()) => Check::ok("signing", "commits can be made as the settings want them"),
        Err(error) => Check::from_report("signing", &error.into()),
    }
}

fn cards(place: &Place) -> Check {
    let cards = list_procedures(&place.card_root, place.layout.value);
    let broken: Vec<&str> = cards.iter().filter(|card| card.result.is_err()).map(|card| card.name.as_str()).collect();
    if !broken.is_empty() {
        return Check::failure("cards", format!("can't be read: {}", listed(&broken, 5)), "proctor procedure lint");
    }
    let warnings = cards
        .iter()
        .filter_map(|card| card.result.as_ref().ok())
        .flat_map(|card| &card.warnings)
        .filter(|finding| finding.level == Level::Warning)
        .count();
    let count = counted(cards.len(), "procedure");
    if warnings > 0 {
        return Check::warning("cards", format!("{count}, with {}", counted(warnings, "warning")), "proctor procedure lint");
    }
    Check::ok("cards", format!("{count} in {}", place.layout.value.procedures_dir()))
}

fn trust(place: &Place, consent: Result<Consent, Report>) -> Check {
    match consent {
        Ok(Consent::NotNeeded) => Check::ok("trust", "the repository's settings ask for nothing that needs your consent"),
        Ok(Consent::Given) => Check::ok("trust", "you have accepted what the repository's settings ask for"),
        Ok(Consent::Missing) => {
            let file = place.layers.repository_file.as_deref().map(|file| file.display().to_string()).unwrap_or_default();
            Check::warning("trust", format!("{file} asks for what you have not accepted, so no run can start"), "proctor trust")
        }
        Err(report) => Check::from_report("trust", &report),
    }
}
