//! The environment of a session: a list of the caller's variables, and what Proctor sets.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use proctor_cards::template::{self, Values};
use proctor_domain::SessionId;
use proctor_domain::procedure::{Definition, Failure, Run, StepId, StepRecord, StepSpec, output_variable, variable_name};

use super::SessionOwner;
use crate::Site;

/// Variables of the caller that every session gets. Anything else needs `pass-env`.
const PASSED: [&str; 22] = [
    "PATH",
    "HOME",
    "USER",
    "SHELL",
    "TERM",
    "TMPDIR",
    "LANG",
    "TZ",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "LOGNAME",
];
/// Prefixes of further variables that every session gets.
const PASSED_PREFIXES: [&str; 5] = ["LC_", "XDG_", "GIT_AUTHOR_", "GIT_COMMITTER_", "SSL_"];
/// What only shells get, which the user wrote: with these an agent could speak in the user's name elsewhere.
const PASSED_TO_SHELLS: [&str; 2] = ["SSH_AUTH_SOCK", "PROCTOR_STATE_DIR"];

type Variables = Vec<(OsString, OsString)>;

/// What templates may refer to: the inputs, and the outputs of decided steps.
pub(crate) fn template_values(run: &Run, definition: &Definition) -> Values {
    template_values_with(run, definition, &|_, _, value| value.to_owned())
}

/// The same, with every output as `show` writes it.
pub(super) fn template_values_with(run: &Run, definition: &Definition, show: &dyn Fn(&StepId, &str, &str) -> String) -> Values {
    let outputs_of = |record: &StepRecord| {
        let shown = record.outputs.iter().map(|(name, value)| (name.clone(), show(&record.plan.id, name, value)));
        (record.plan.id.clone(), shown.collect())
    };
    Values::of(definition, run.started.inputs.clone(), run.steps.iter().map(outputs_of).collect())
}

/// The step's own variables, evaluated.
///
/// # Errors
/// A template can't be evaluated.
pub(crate) fn step_variables(values: &Values, step: &StepSpec) -> Result<Variables, Failure> {
    step.env
        .iter()
        .map(|(name, text)| {
            template::render(text, values)
                .map(|value| (OsString::from(name), OsString::from(value)))
                .map_err(|reason| Failure::Template { key: format!("env.{name}"), reason })
        })
        .collect()
}

/// The environment of a shell session.
///
/// # Errors
/// A template under the step's `env` can't be evaluated.
pub(super) fn of_shells(site: &Site, owner: &SessionOwner<'_>, session: &SessionId) -> Result<Variables, Failure> {
    let mut variables = passed(site, &PASSED_TO_SHELLS);
    variables.push(("CHECK_SKIP".into(), "75".into()));
    of_every_session(site, owner, session, &mut variables)?;
    Ok(variables)
}

/// The environment of an agent's session. `engine` names what its engine needs; a name may end in `*`.
///
/// # Errors
/// A template under the step's `env` can't be evaluated.
pub(super) fn of_agents(site: &Site, owner: &SessionOwner<'_>, session: &SessionId, engine: &[&str]) -> Result<Variables, Failure> {
    let mut variables = passed(site, engine);
    of_every_session(site, owner, session, &mut variables)?;
    Ok(variables)
}

/// The values that must never be written: those of the variables that the settings name as secrets.
pub(super) fn secret_values(site: &Site) -> Vec<Vec<u8>> {
    let secrets = &site.settings.agents.secrets;
    secrets.iter().filter_map(|name| site.variable(name)).map(|value| value.as_bytes().to_vec()).collect()
}

fn of_every_session(site: &Site, owner: &SessionOwner<'_>, session: &SessionId, variables: &mut Variables) -> Result<(), Failure> {
    let started = &owner.run.started;
    let mut set = |name: &str, value: &OsStr| variables.push((name.into(), value.into()));
    set("PROCTOR_RUN", owner.run_id.as_str().as_ref());
    set("PROCTOR_PROCEDURE", started.procedure.as_ref());
    set("PROCTOR_STEP", owner.step.id.as_str().as_ref());
    set("PROCTOR_ATTEMPT", owner.record.attempts.to_string().as_ref());
    set("PROCTOR_DIRECTIVE", started.directive.as_deref().unwrap_or_default().as_ref());
    set("PROCTOR_SESSION", &session_chain(site, session));
    // Objects and references that a step's own git makes survive a power cut, like Proctor's.
    set("GIT_CONFIG_COUNT", "1".as_ref());
    set("GIT_CONFIG_KEY_0", "core.fsync".as_ref());
    set("GIT_CONFIG_VALUE_0", "committed,reference".as_ref());
    for (name, value) in &started.inputs {
        set(&format!("INPUT_{}", variable_name(name)), value.as_ref());
    }
    for record in &owner.run.steps {
        for (name, value) in &record.outputs {
            set(&output_variable(record.plan.id.as_str(), name), value.as_ref());
        }
    }
    variables.extend(step_variables(&template_values(owner.run, owner.definition), owner.step)?);
    Ok(())
}

/// The ids of the sessions around this one, outermost first, then its own.
fn session_chain(site: &Site, session: &SessionId) -> OsString {
    let mut chain = site.variable("PROCTOR_SESSION").map(OsStr::to_owned).unwrap_or_default();
    if !chain.is_empty() {
        chain.push(":");
    }
    chain.push(session.as_str());
    chain
}

fn passed(site: &Site, more: &[&str]) -> Variables {
    let pass_env = &site.settings.pass_env;
    site.environment.iter().filter(|(name, _)| is_passed(name, pass_env, more)).cloned().collect()
}

fn is_passed(name: &OsStr, pass_env: &[String], more: &[&str]) -> bool {
    let Some(name) = name.to_str() else { return false };
    let is_meant = |pattern: &&str| pattern.strip_suffix('*').map_or(*pattern == name, |prefix| name.starts_with(prefix));
    PASSED.contains(&name)
        || PASSED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || more.iter().any(is_meant)
        || pass_env.iter().any(|passed| passed == name)
}
