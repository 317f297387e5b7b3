//! What a shell session is given: environment, limits, files.

use std::ffi::{OsStr, OsString};

use proctor_cards::template::{self, Values};
use proctor_domain::procedure::{Definition, Failure, PhaseSpec, Run, StepId, StepSpec, output_variable, variable_name};
use proctor_domain::session::Phase;
use proctor_domain::{RunId, SessionId};
use proctor_engine::SessionSpec;

use crate::Site;

/// Variables of the caller that every shell gets. Anything else needs `pass-env`.
const PASSED: [&str; 24] = [
    "PATH",
    "HOME",
    "USER",
    "SHELL",
    "TERM",
    "TMPDIR",
    "LANG",
    "TZ",
    "SSH_AUTH_SOCK",
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
    "PROCTOR_STATE_DIR",
];
/// Prefixes of further variables that every shell gets.
const PASSED_PREFIXES: [&str; 5] = ["LC_", "XDG_", "GIT_AUTHOR_", "GIT_COMMITTER_", "SSL_"];

/// The run and step that a session belongs to.
pub(crate) struct SessionOwner<'a> {
    pub(crate) run_id: &'a RunId,
    pub(crate) run: &'a Run,
    pub(crate) definition: &'a Definition,
    pub(crate) step: &'a StepSpec,
    pub(crate) attempt: u32,
}

/// The session that runs the shells of `phase`.
///
/// # Errors
/// A template under the step's `env` can't be evaluated; it fails the step.
pub(crate) fn shell_session(site: &Site, owner: &SessionOwner<'_>, session: SessionId, phase: Phase) -> Result<SessionSpec, Failure> {
    let environment = environment(site, owner, &session)?;
    let limit = owner.step.timeout.map_or(site.settings.shell_timeout, Into::into);
    Ok(SessionSpec {
        folder: site.state.session(&session),
        lock: site.state.session_lock(&session),
        session,
        shells: phase_of(owner.step, phase).map(|spec| spec.shells.clone()).unwrap_or_default(),
        directory: site.card_root.clone(),
        environment,
        wall_limit: limit,
        linger: site.settings.linger.clone(),
    })
}

fn phase_of(step: &StepSpec, phase: Phase) -> Option<&PhaseSpec> {
    match phase {
        Phase::Precheck => step.precheck.as_ref().map(|precheck| &precheck.phase),
        Phase::Run => step.run.as_ref(),
        Phase::Validate => step.validate.as_ref().map(|validate| &validate.phase),
    }
}

/// What templates may refer to: the inputs, and the outputs of decided steps.
pub(crate) fn template_values(run: &Run, definition: &Definition) -> Values {
    let outputs = run.steps.iter().map(|record| (record.plan.id.clone(), record.outputs.clone())).collect();
    Values::of(definition, run.started.inputs.clone(), outputs)
}

/// The step's own variables, evaluated.
///
/// # Errors
/// A template can't be evaluated.
pub(crate) fn step_variables(values: &Values, step: &StepSpec) -> Result<Vec<(OsString, OsString)>, Failure> {
    step.env
        .iter()
        .map(|(name, text)| {
            template::render(text, values)
                .map(|value| (OsString::from(name), OsString::from(value)))
                .map_err(|reason| Failure::Template { key: format!("env.{name}"), reason })
        })
        .collect()
}

fn environment(site: &Site, owner: &SessionOwner<'_>, session: &SessionId) -> Result<Vec<(OsString, OsString)>, Failure> {
    let started = &owner.run.started;
    let mut variables: Vec<(OsString, OsString)> =
        site.environment.iter().filter(|(name, _)| is_passed(name, &site.settings.pass_env)).cloned().collect();
    let mut set = |name: &str, value: &OsStr| variables.push((name.into(), value.into()));
    set("CHECK_SKIP", "75".as_ref());
    set("PROCTOR_RUN", owner.run_id.as_str().as_ref());
    set("PROCTOR_PROCEDURE", started.procedure.as_ref());
    set("PROCTOR_STEP", owner.step.id.as_str().as_ref());
    set("PROCTOR_ATTEMPT", owner.attempt.to_string().as_ref());
    set("PROCTOR_DIRECTIVE", started.directive.as_deref().unwrap_or_default().as_ref());
    set("PROCTOR_SESSION", &session_chain(site, session));
    // Objects and references that a step's own git makes survive a power cut, like Proctor's.
    set("GIT_CONFIG_COUNT", "1".as_ref());
    set("GIT_CONFIG_KEY_0", "core.fsync".as_ref());
    set("GIT_CONFIG_VALUE_0", "committed,reference".as_ref());
    for (name, value) in &started.inputs {
        set(&format!("INPUT_{}", variable_name(name)), value.as_ref());
    }
    for (step, name, value) in outputs_before(owner) {
        set(&output_variable(step.as_str(), name), value.as_ref());
    }
    variables.extend(step_variables(&template_values(owner.run, owner.definition), owner.step)?);
    Ok(variables)
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

fn is_passed(name: &OsStr, pass_env: &[String]) -> bool {
    let Some(name) = name.to_str() else { return false };
    PASSED.contains(&name) || PASSED_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || pass_env.iter().any(|passed| passed == name)
}

/// Outputs of this step so far and of the steps before it.
fn outputs_before<'a>(owner: &SessionOwner<'a>) -> impl Iterator<Item = (&'a StepId, &'a str, &'a str)> {
    owner
        .run
        .steps
        .iter()
        .flat_map(|record| record.outputs.iter().map(move |(name, value)| (&record.plan.id, name.as_str(), value.as_str())))
}
