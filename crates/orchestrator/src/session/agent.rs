//! The session of an agent or a judge.

use std::ffi::OsString;

use proctor_cards::template;
use proctor_domain::procedure::{AgentSpec, Failure, StepId, Unjudged};
use proctor_domain::session::{Usage, Work};
use proctor_domain::{Clock, MicroDollars, SessionId, Timestamp};
use proctor_engine::agent::{Access, AgentFiles, AgentTask, EngineSetup, Opening, Permission, engine};
use proctor_engine::tools::ToolServer;
use proctor_engine::{AgentPlace, AgentRun, SessionSpec, SessionWork, agent_files};
use proctor_process::confine::{BoxKind, ChosenBox};

use super::confinement::rules_for;
use super::frame::Frames;
use super::{SessionOwner, box_rules, environment, prompts};
use crate::Site;

/// What a judge's result must be.
pub(crate) const VERDICT_SCHEMA: &str = r#"{"type":"object","properties":{"passed":{"type":"boolean"},"reasoning":{"type":"string"}},"required":["passed","reasoning"],"additionalProperties":false}"#;

/// Turns of an agent whose card says nothing.
const USUAL_TURNS: u32 = 20;
/// What a repair may cost at most.
const REPAIR_BUDGET: MicroDollars = MicroDollars::dollars(2);
/// What is left for a session when its step has used up its budget: it ends after its first turn.
const SMALLEST_BUDGET: MicroDollars = MicroDollars(10_000);

/// What an agent's session is for.
pub(crate) enum AgentErrand {
    /// The agent with this number, from 1, does the step's work.
    Work {
        /// Its number.
        number: u32,
        /// Whether an earlier session of it was cut off.
        interrupted: bool,
        /// The conversation that goes on.
        conversation: Option<String>,
    },
    /// The step's only agent repairs what a check found.
    Repair {
        /// What was found.
        failure: Failure,
        /// The conversation that goes on.
        conversation: Option<String>,
    },
    /// A judge looks at the step's work.
    Judge {
        /// Which try it is, from 1.
        number: u32,
        /// The work, as a diff.
        evidence: String,
    },
}

impl AgentErrand {
    /// The work that it is.
    fn work(&self) -> Work {
        match self {
            Self::Work { number, .. } => Work::Agent(*number),
            Self::Repair { .. } => Work::Repair,
            Self::Judge { number, .. } => Work::Judge(*number),
        }
    }
}

/// The session of an agent or a judge, in a box of this kind.
///
/// # Errors
/// A template can't be evaluated; it fails the step.
pub(crate) fn agent_session(
    site: &Site,
    clock: &dyn Clock,
    owner: &SessionOwner<'_>,
    session: SessionId,
    (errand, confined): (AgentErrand, ChosenBox),
) -> Result<SessionSpec, Failure> {
    let settings = &site.settings.agents;
    let setup = setup(site, confined.kind(), &errand);
    let now = clock.now();
    let tells_memory = site.settings.proposals && site.memory.is_some() && owner.definition.uses_memory(&owner.step.id);
    let hears_lessons = tells_memory && matches!(errand, AgentErrand::Repair { .. });
    let task = task(site, now, owner, &session, (&setup, errand))?;
    let used_before = used_before(owner, task.resume.as_deref());
    let folder = site.state.session(&session);
    let tools = ToolServer::of(&site.program, &folder);
    let files = AgentFiles { tools, ..agent_files(&folder, &site.state.conversations()) };
    let place = AgentPlace { directory: &site.card_root, silence_limit: settings.silence };
    let run = AgentRun::new(&setup, &task, &files, &|name| site.engine_variable(&setup, name), place);
    let rules = rules_for(site, confined.kind(), box_rules(site, &setup, &session, task.access), task.access);
    let mut variables = environment::of_agents(site, owner, &session, engine(setup.kind).passed_variables())?;
    let mut set = setup.variables(&|name| site.variable(name).map(ToOwned::to_owned));
    set.push(("TMPDIR".into(), folder.join("tmp").into()));
    if confined.kind() == BoxKind::Container {
        // A run was not begun without one; without it only the agent's own commits fail.
        let identity = site.repository.identity_variables().unwrap_or_default();
        set.extend(identity.into_iter().map(|(name, value)| (name.into(), value.into())));
    }
    let is_kept_out = |name: &OsString| name.to_str().is_some_and(|name| setup.keeps_out(name));
    variables.retain(|(name, _)| set.iter().all(|(newer, _)| newer != name) && !is_kept_out(name));
    variables.append(&mut set);
    let run = run.within(|argv| confined.wrap(&rules, &site.program, argv));
    let opening = Opening { begun: Some(now), used_before, hears_lessons, ..run.opening };
    Ok(SessionSpec {
        work: SessionWork::Agent(Box::new(AgentRun { opening, ..run })),
        directory: site.card_root.clone(),
        environment: variables,
        secrets: environment::secret_values(site),
        wall_limit: owner.step.timeout.map_or(settings.timeout, Into::into),
        linger: site.settings.linger.clone(),
        lock: site.state.session_lock(&session),
        folder,
        session,
    })
}

/// What the sessions of this conversation have told that they used, as far as the step knows.
fn used_before(owner: &SessionOwner<'_>, conversation: Option<&str>) -> Usage {
    let Some(conversation) = conversation else { return Usage::default() };
    let reports = owner.record.present_sessions().iter().filter_map(|session| session.report.as_ref()?.agent.as_ref());
    let same = reports.filter(|report| report.conversation.as_deref() == Some(conversation));
    same.flat_map(|report| &report.spent).map(|spending| spending.usage).fold(Usage::default(), |sum, usage| sum + usage)
}

fn setup(site: &Site, confined: BoxKind, errand: &AgentErrand) -> EngineSetup {
    let mut setup = site.settings.agents.driving(errand.work()).clone();
    if confined != BoxKind::None {
        setup.permission = Permission::Bypass;
    }
    // A judge sees the evidence and nothing else: no memory of the user's, no tools of theirs.
    if matches!(errand, AgentErrand::Judge { .. }) {
        setup.inherit = false;
        setup.servers.clear();
    }
    setup
}

fn task(
    site: &Site,
    now: Timestamp,
    owner: &SessionOwner<'_>,
    session: &SessionId,
    (setup, errand): (&EngineSetup, AgentErrand),
) -> Result<AgentTask, Failure> {
    let frames = Frames::of(session);
    let context = || prompts::context(site, owner, &frames, &date(now));
    let models = &site.settings.agents.models;
    let model = |asked: Option<&str>| asked.map(|asked| models.model(&setup.name, setup.kind, asked));
    let left = budget_left(owner);
    let agent = |number: u32| owner.step.run.as_ref().and_then(|run| run.agents.get(number as usize - 1));
    Ok(match errand {
        AgentErrand::Work { number, interrupted, conversation } => {
            let spec = agent(number);
            let prompt = prompt(owner, spec, &frames)?;
            let whole = if interrupted { prompts::interrupted(&prompt, conversation.is_some()) } else { prompt };
            AgentTask {
                system: context(),
                prompt: going_on(owner, &frames, conversation.is_some(), whole),
                resume: conversation,
                model: model(spec.and_then(|spec| spec.model.as_deref())),
                schema: None,
                max_turns: Some(spec.and_then(|spec| spec.max_turns).unwrap_or(USUAL_TURNS)),
                max_cost: left,
                access: Access::Full,
            }
        }
        AgentErrand::Repair { failure, conversation } => {
            let spec = agent(1);
            let repair = prompts::repair(owner, &frames, &failure);
            let fresh = conversation.is_none();
            let whole = if fresh { format!("{repair}\nThe task was:\n\n{}", prompt(owner, spec, &frames)?) } else { repair };
            AgentTask {
                system: context(),
                prompt: going_on(owner, &frames, !fresh, whole),
                resume: conversation,
                model: model(spec.and_then(|spec| spec.model.as_deref())),
                schema: None,
                max_turns: Some(spec.and_then(|spec| spec.max_turns).unwrap_or(USUAL_TURNS)),
                max_cost: Some(left.map_or(REPAIR_BUDGET, |left| left.min(REPAIR_BUDGET))),
                access: Access::Full,
            }
        }
        AgentErrand::Judge { number, evidence } => AgentTask {
            system: prompts::judge(owner, &frames),
            prompt: prompts::evidence(owner, &frames, &evidence),
            resume: None,
            model: model(Some(owner.step.validate.as_ref().and_then(|validate| validate.model.as_deref()).unwrap_or("balanced"))),
            schema: Some(VERDICT_SCHEMA.to_owned()),
            max_turns: Some(Unjudged::turns(number)),
            // Its turns are few. Work that used up the step's budget is judged all the same: else it never could be.
            max_cost: None,
            access: Access::ReadOnly,
        },
    })
}

/// What an agent is asked, given what a person has answered its step. A conversation that ended with the question goes on with
/// the answer; any other is told both, since it may not have come to them.
fn going_on(owner: &SessionOwner<'_>, frames: &Frames, conversation_goes_on: bool, prompt: String) -> String {
    let Some(newest) = owner.record.answers.last() else { return prompt };
    let mut reports = owner.record.present_sessions().iter().rev().filter_map(|session| session.report.as_ref());
    let asked = reports.next().and_then(|report| report.agent.as_ref()?.told.question.as_deref());
    if conversation_goes_on && asked == Some(newest.question.as_str()) {
        return prompts::answered(newest);
    }
    format!("{prompt}\n{}", prompts::answers(owner, frames))
}

/// The card's prompt, its templates filled in. What a step wrote is in a frame there too; what the caller gave is theirs.
fn prompt(owner: &SessionOwner<'_>, spec: Option<&AgentSpec>, frames: &Frames) -> Result<String, Failure> {
    let framed = |step: &StepId, name: &str, value: &str| frames.inline(&format!("output {name} of {step}"), value);
    let values = environment::template_values_with(owner.run, owner.definition, &framed);
    let text = spec.map_or("", |spec| spec.prompt.as_str());
    template::render(text, &values).map_err(|reason| Failure::Template { key: "run.agents[].prompt".to_owned(), reason })
}

/// What the step's sessions may still cost, where the card sets a limit. What a session cost that did not say so is not
/// known and not counted, which `show` says.
fn budget_left(owner: &SessionOwner<'_>) -> Option<MicroDollars> {
    let budget = owner.step.budget?;
    let costs = owner.record.present_sessions().iter().filter_map(|session| session.report.as_ref()?.agent.as_ref());
    let spent: u64 = costs.filter_map(|agent| agent.cost().known()).map(|cost| cost.0).sum();
    Some(MicroDollars(budget.0.saturating_sub(spent)).max(SMALLEST_BUDGET))
}

fn date(now: Timestamp) -> String {
    let moment = jiff::Timestamp::from_millisecond(now.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    moment.to_string().split('T').next().unwrap_or_default().to_owned()
}
