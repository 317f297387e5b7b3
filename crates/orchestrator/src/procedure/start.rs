//! The start of a run: everything that can refuse it, then its first event.

use std::path::Path;
use std::time::Duration;

use proctor_cards::{Source, read_procedure};
use proctor_domain::procedure::{Definition, Isolated, Isolation, Records, Run, RunEngine, RunEvent, RunStarted, StepId, StepPlan, Task};
use proctor_domain::session::Work;
use proctor_domain::{Branch, Clock, Oid, RepoPath, RunId, SessionId, retention};
use proctor_engine::agent::{EngineKind, EngineSetup, engine};
use proctor_journal::{JournalStore, RunFilter, RunsWanted};
use proctor_process::confine::{BoxRules, Net};
use proctor_process::lock::{self, Attempt, HeldLock};
use proctor_process::{ProcessIdentity, Program};
use proctor_process::{find_program, killpoint};
use proctor_workspace::{ChangeKind, Status, worktree_key};

use super::driver::{Context, Driver, DriverLocks, RunEnd, Stored};
use super::isolated::{branch_of, isolation, site_of};
use super::lookup::{is_around_us, living_session, load_run};
use super::{Notice, ProcedureError, Refusal, folder, inputs, paths, restore};
use crate::session::choose_box;
use crate::{Site, random_bits};

/// What the caller of `procedure run` asks for.
#[derive(Debug, Clone)]
pub struct StartRequest {
    /// The card.
    pub source: Source,
    /// The one free text.
    pub directive: Option<String>,
    /// `--input` values, in order.
    pub inputs: Vec<(String, String)>,
    /// The only step to run.
    pub only: Option<String>,
    /// What to do about changes that are there already.
    pub dirty: Dirty,
    /// What to do when another run works in this tree.
    pub when_busy: WhenBusy,
    /// Where the run is recorded, in place of what card, settings and layout say.
    pub records: Option<Records>,
}

/// What to do about changes that are in the working tree before a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dirty {
    /// Refuse the run.
    Refuse,
    /// Save them under a salvage ref and leave them alone.
    Allow,
}

/// What to do when another run works in the same tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenBusy {
    /// Refuse.
    Refuse,
    /// Wait until it is free.
    Wait,
}

/// What a run would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The procedure's name.
    pub procedure: String,
    /// Its description.
    pub description: String,
    /// Where it would be recorded.
    pub records: Records,
    /// The directive.
    pub directive: Option<String>,
    /// The inputs, defaults filled in.
    pub inputs: Vec<(String, String)>,
    /// Its steps.
    pub steps: Vec<PlannedStep>,
}

/// What a run would do in one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStep {
    /// The step's id.
    pub id: StepId,
    /// Its description.
    pub description: String,
    /// Its sessions, in order, if all goes well.
    pub tasks: Vec<Task>,
    /// What a person is asked before it does its work.
    pub approve: Option<String>,
    /// Its condition, not evaluated: it may depend on outputs.
    pub when: Option<String>,
    /// Whether memory is asked before its agents start.
    pub asks_memory: bool,
    /// Whether `--step` chose another one.
    pub selected: bool,
}

/// The card's definition and the request, checked against each other.
struct Checked {
    definition: Definition,
    records: Records,
    inputs: std::collections::BTreeMap<String, String>,
    only: Option<StepId>,
}

fn check(site: &Site, request: &StartRequest) -> Result<Checked, ProcedureError> {
    let definition = read_procedure(&request.source, site.layout, &site.box_defaults).map_err(ProcedureError::Card)?.definition;
    let inputs = inputs::resolve(&definition.inputs, &request.inputs)?;
    if request.directive.as_ref().is_some_and(|directive| directive.len() > inputs::LONGEST_INPUT) {
        return Err(ProcedureError::InputTooLong {
            name: "--directive".to_owned(),
            bytes: request.directive.as_ref().map_or(0, String::len),
        });
    }
    let only = match &request.only {
        None => None,
        Some(wanted) => Some(find_step(&definition, wanted)?),
    };
    let records = request.records.or(definition.records).or(site.settings.records).unwrap_or_else(|| site.layout.default_records());
    Ok(Checked { definition, records, inputs, only })
}

fn find_step(definition: &Definition, wanted: &str) -> Result<StepId, ProcedureError> {
    let known = || definition.steps.iter().map(|step| step.id.clone()).collect::<Vec<_>>();
    let found = definition.steps.iter().find(|step| step.id.as_str() == wanted);
    found.map(|step| step.id.clone()).ok_or_else(|| ProcedureError::UnknownStep { step: wanted.to_owned(), known: known() })
}

/// What `procedure run` would do. Touches nothing.
///
/// # Errors
/// The card or the request has mistakes.
pub fn plan_run(site: &Site, request: &StartRequest) -> Result<Plan, ProcedureError> {
    let checked = check(site, request)?;
    let plans = StepPlan::of(&checked.definition);
    let steps = checked.definition.steps.iter().zip(plans).map(|(step, plan)| PlannedStep {
        id: step.id.clone(),
        description: step.description.clone(),
        tasks: plan.tasks(),
        approve: plan.approve,
        when: step.when.clone(),
        asks_memory: step.starts_agents() && site.settings.known_here && checked.definition.uses_memory(&step.id),
        selected: checked.only.as_ref().is_none_or(|only| *only == step.id),
    });
    Ok(Plan {
        steps: steps.collect(),
        procedure: checked.definition.name,
        description: checked.definition.description,
        records: checked.records,
        directive: request.directive.clone(),
        inputs: checked.inputs.into_iter().collect(),
    })
}

/// Refuses a card that needs an engine which can't be started here: better than a run that finds out in the night.
pub(super) fn check_engine(site: &Site, definition: &Definition) -> Result<(), ProcedureError> {
    let agents = &site.settings.agents;
    if agents.net == Net::None && definition.needs_agents() {
        choose_box(site, &BoxRules { net: agents.net, ..BoxRules::default() })?;
    }
    let mut asked = Vec::new();
    for step in &definition.steps {
        let needed = [(step.starts_agents(), Work::Agent(1)), (step.is_judged(), Work::Judge(1))];
        for (_, work) in needed.into_iter().filter(|(is_needed, _)| *is_needed) {
            let setup = agents.driving(work);
            check_setup(site, &step.id, setup)?;
            agents.network_suffices(setup)?;
            // To ask a program takes most of a second.
            if !asked.contains(&&setup.name) {
                check_options(site, &step.id, setup)?;
                asked.push(&setup.name);
            }
        }
    }
    Ok(())
}

fn check_setup(site: &Site, step: &StepId, setup: &EngineSetup) -> Result<(), Refusal> {
    let missing = |reason| no_engine(step, setup, reason);
    if find_program(&setup.program, site.variable("PATH").unwrap_or_default()).is_none() {
        return Err(missing(format!("its program `{}` is not found", setup.program.display())));
    }
    if let Some(name) = setup.missing_variable(&|name| site.variable(name).map(ToOwned::to_owned)) {
        return Err(missing(format!("its settings take a value from the variable {name}, which is not set")));
    }
    match (setup.kind, &setup.script) {
        (EngineKind::Scripted, None) => Err(missing("no script says what it does".to_owned())),
        (EngineKind::Scripted, Some(script)) if !script.is_file() => Err(missing(format!("its script {} is not there", script.display()))),
        (EngineKind::Scripted | EngineKind::Claude | EngineKind::Codex | EngineKind::OpenCode, _)
        | (EngineKind::Acp | EngineKind::Command, _) => Ok(()),
    }
}

fn no_engine(step: &StepId, setup: &EngineSetup, reason: String) -> Refusal {
    Refusal::NoEngine { step: step.clone(), engine: setup.name.clone(), kind: setup.kind, reason }
}

/// What the installed version lacks is found before the run, and not by its first agent.
fn check_options(site: &Site, step: &StepId, setup: &EngineSetup) -> Result<(), Refusal> {
    match unknown_option(site, setup) {
        None => Ok(()),
        Some(option) => {
            let reason =
                format!("its program knows no `{option}`, which a setting of yours needs; install a newer one, or leave the setting out");
            Err(no_engine(step, setup, reason))
        }
    }
}

/// How long a program may take to say what it knows.
const PATIENCE: Duration = Duration::from_secs(20);

/// An option that the settings want and the engine's program does not know. One that does not say what it knows is believed
/// to know it.
fn unknown_option(site: &Site, setup: &EngineSetup) -> Option<&'static str> {
    let wanted = engine(setup.kind).wanted_options(setup);
    if wanted.is_empty() {
        return None;
    }
    let path = site.variable("PATH").unwrap_or_default();
    let variables = ["PATH", "HOME"].into_iter().filter_map(|name| Some((name, site.variable(name)?)));
    let help = Program::new(find_program(&setup.program, path)?).args(&setup.arguments).arg("--help").dir(&site.card_root).env(variables);
    let finished = help.own_group().run(Some(PATIENCE)).ok().filter(|finished| !finished.timed_out && finished.status.is_success())?;
    let help = String::from_utf8_lossy(&finished.stdout);
    let is_word = |option: &str| help.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-').any(|word| word == option);
    wanted.into_iter().find(|option| !is_word(option))
}

/// Starts a run and drives it as far as it goes.
///
/// # Errors
/// It is refused, or we failed. What its steps do is told by the [`RunEnd`].
pub fn start_run(
    site: &Site,
    journal: &mut dyn JournalStore,
    clock: &dyn Clock,
    notify: &mut dyn FnMut(Notice<'_>),
    request: &StartRequest,
) -> Result<RunEnd, ProcedureError> {
    let checked = check(site, request)?;
    check_engine(site, &checked.definition)?;
    let run_id = RunId::from_bits(random_bits()?);
    make_folders(site)?;
    // An isolated run works elsewhere, and leaves this tree to whoever is in it.
    let tree = match checked.definition.isolation {
        Some(Isolation::Worktree) => None,
        Some(Isolation::InPlace) | None => Some(lock_tree(site, journal, notify, &run_id, request.when_busy)?),
    };
    // Before the first look at the tree, and kept for resumes: what a step plants in git's settings must not be taken
    // for the user's own later.
    let settings = site.state.git_settings(&run_id);
    site.repository.guard_config(Some(&settings))?;
    let status = site.repository.status()?;
    refuse_unready(site, journal, &status, request.dirty).inspect_err(|_| {
        // A run that never was has nobody else to remove it.
        let _ = std::fs::remove_file(&settings);
    })?;
    let run_lock = lock_run(site, &run_id)?.ok_or_else(|| Refusal::Live { run: run_id.clone() })?;
    let snapshot = journal.put_snapshot(&request.source.text)?;
    let isolated = isolation(site, &checked.definition, &status)?;
    let started = started(site, clock, request, &checked, (&run_id, snapshot, &status, isolated))?;
    let steps = started.steps.len();
    (notify)(Notice::Started { run: &run_id, procedure: &started.procedure, steps, isolated: started.isolated.as_ref() });
    let run = Run::start(clock.now(), started);
    let stored = Stored { run_id, run, definition: checked.definition, version: 0 };
    let Some(tree) = tree else {
        return drive_isolated(Context { site, journal, clock, notify }, stored, run_lock, request.when_busy);
    };
    let locks = DriverLocks { _run: run_lock, _tree: tree };
    let started = stored.run.started.clone();
    let mut driver = Driver::new(Context { site, journal, clock, notify }, locks, stored)?;
    driver.record_start(started);
    driver.resting = Some(status);
    driver.drive()
}

/// Drives a new run in a worktree of its own. It is recorded before the worktree is made, so that nothing is made that
/// nobody knows of.
fn drive_isolated(context: Context<'_>, mut stored: Stored, run_lock: HeldLock, when_busy: WhenBusy) -> Result<RunEnd, ProcedureError> {
    let Context { site, journal, clock, notify } = context;
    let start = RunEvent::Started(Box::new(stored.run.started.clone()));
    killpoint::reach("before append");
    stored.version = journal.append(&stored.run_id, 0, &[(stored.run.started_at, start)])?;
    killpoint::reach("after append");
    let stopped = |source: ProcedureError| ProcedureError::Stopped { run: stored.run_id.clone(), source: Box::new(source) };
    let own = site_of(site, &stored.run).map_err(stopped)?;
    let site = own.as_ref().unwrap_or(site);
    let tree = lock_tree(site, journal, notify, &stored.run_id, when_busy)?;
    site.repository.guard_config(Some(&site.state.git_settings(&stored.run_id)))?;
    Driver::new(Context { site, journal, clock, notify }, DriverLocks { _run: run_lock, _tree: tree }, stored)?.drive()
}

/// What the run is to know of itself, and where an isolated one works.
fn started(
    site: &Site,
    clock: &dyn Clock,
    request: &StartRequest,
    checked: &Checked,
    (run_id, snapshot, status, isolated): (&RunId, String, &Status, Option<Isolated>),
) -> Result<RunStarted, ProcedureError> {
    let definition = &checked.definition;
    // What is uncommitted stays in the tree where it is: an isolated run begins with the commit.
    let foreign = if isolated.is_some() { Vec::new() } else { status.paths() };
    let foreign_snapshot = if foreign.is_empty() { None } else { Some(save_foreign(site, run_id, &foreign, status)?) };
    let folder = match checked.records {
        Records::Git => Some(folder::free(site, &definition.name, clock.now())),
        Records::State => None,
    };
    let (worktree, branch) = match &isolated {
        Some(_) => (paths::stored(&site.state.worktree(run_id)), Branch::Named(branch_of(run_id, &definition.name))),
        None => (paths::stored(&site.repository.work_tree), status.branch.clone()),
    };
    Ok(RunStarted {
        procedure: definition.name.clone(),
        card: relative_to(&site.repository.work_tree, &site.card_root.join(&request.source.path)),
        snapshot,
        steps: StepPlan::of(definition),
        records: checked.records,
        directive: request.directive.clone(),
        inputs: checked.inputs.clone(),
        only: checked.only.clone(),
        worktree,
        card_root: relative_to(&site.repository.work_tree, &site.card_root),
        branch,
        head: status.head.clone(),
        folder,
        foreign,
        foreign_snapshot,
        run_expiry: definition.run_expiry.unwrap_or(retention::COMPLETED),
        failed_run_expiry: definition.failed_run_expiry.unwrap_or(retention::FAILED),
        isolated,
        engine: definition.needs_agents().then(|| engine_of(site)),
    })
}

/// What drives agents here.
fn engine_of(site: &Site) -> RunEngine {
    let agents = &site.settings.agents;
    let script = agents.engine.script.as_ref().or(agents.judge.as_ref().and_then(|judge| judge.script.as_ref()));
    RunEngine {
        name: agents.engine.name.clone(),
        script: script.map(|script| paths::stored(script)),
        judge: agents.judge.as_ref().map(|judge| judge.name.clone()),
    }
}

fn save_foreign(site: &Site, run_id: &RunId, paths: &[RepoPath], status: &Status) -> Result<Oid, ProcedureError> {
    let tree = site.repository.snapshot(paths)?;
    let reference = format!("{}/foreign", restore::salvage_prefix(run_id));
    let message = format!("Saved before {run_id} started with --allow-dirty\n");
    site.repository.save(&reference, &tree, status.head.as_ref(), &message)?;
    Ok(tree)
}

/// `path` relative to the top of the work tree where it lies inside, else as it is.
fn relative_to(work_tree: &Path, path: &Path) -> RepoPath {
    paths::stored(path.strip_prefix(work_tree).unwrap_or(path))
}

fn refuse_unready(site: &Site, journal: &dyn JournalStore, status: &Status, dirty: Dirty) -> Result<(), ProcedureError> {
    // Better than a run that stops at its first commit.
    site.repository.wait_for_index(site.repository.lock_patience)?;
    if let Some(operation) = &status.operation {
        return Err(Refusal::Operation { operation: operation.clone() }.into());
    }
    if !status.changes.is_empty() && dirty == Dirty::Refuse {
        let left_by = unended_here(site, journal)?.into_iter().find(|run| can_have_left(journal, run, &status.paths()));
        return Err(Refusal::Dirty { paths: status.paths(), left_by }.into());
    }
    refuse_unusable(status)?;
    site.repository.identity_works()?;
    site.repository.probe_signing()?;
    Ok(())
}

/// What no run can work around, with or without `--allow-dirty`.
fn refuse_unusable(status: &Status) -> Result<(), Refusal> {
    for change in &status.changes {
        let reason = match change.kind {
            ChangeKind::Unmerged => "it is in a conflict",
            ChangeKind::SubmoduleDirty => "it is a submodule with uncommitted changes of its own",
            ChangeKind::Modified | ChangeKind::Added | ChangeKind::Deleted | ChangeKind::Untracked | ChangeKind::SubmoduleMoved => continue,
            ChangeKind::NestedRepository => "it is a repository of its own, which can't be set aside",
        };
        return Err(Refusal::Unusable { path: change.path.clone(), reason });
    }
    Ok(())
}

/// Whether a run left one of these paths, or stopped in the middle of a step without a word about its tree.
fn can_have_left(journal: &dyn JournalStore, run: &RunId, dirty: &[RepoPath]) -> bool {
    load_run(journal, run).is_ok_and(|loaded| match &loaded.run.left {
        Some(left) => left.paths.iter().any(|path| dirty.contains(path)),
        None => loaded.run.current_step().is_some(),
    })
}

fn unended_here(site: &Site, journal: &dyn JournalStore) -> Result<Vec<RunId>, ProcedureError> {
    let filter =
        RunFilter { worktree: Some(paths::stored(&site.repository.work_tree)), wanted: RunsWanted::Resumable, ..RunFilter::default() };
    Ok(journal.runs(&filter)?.into_iter().map(|row| row.run).collect())
}

/// Takes the lock of the working tree, and makes sure that no host of a dead driver is at work in it.
pub(super) fn lock_tree(
    site: &Site,
    journal: &dyn JournalStore,
    notify: &mut dyn FnMut(Notice<'_>),
    run_id: &RunId,
    when_busy: WhenBusy,
) -> Result<HeldLock, ProcedureError> {
    make_folders(site)?;
    let path = site.state.worktree_lock(&worktree_key(&site.repository.work_tree));
    let holder_text = holder_text(run_id)?;
    loop {
        let held = match lock::try_acquire(&path, &holder_text)? {
            Attempt::Acquired(held) => held,
            Attempt::Held { holder } => {
                let holder = run_in_holder(&holder);
                refuse_if_busy(site, journal, &holder, when_busy)?;
                notify(Notice::Waiting { holder });
                lock::acquire(&path, &holder_text)?
            }
        };
        let Some((other, session)) = at_work_without_a_driver(site, journal, run_id)? else { return Ok(held) };
        refuse_if_busy(site, journal, other.as_str(), when_busy)?;
        // Its next driver needs the tree's lock.
        drop(held);
        notify(Notice::Waiting { holder: other.to_string() });
        lock::wait_until_free(&site.state.session_lock(&session))?;
    }
}

/// Somebody may have cleared the state folder since it was made.
fn make_folders(site: &Site) -> Result<(), ProcedureError> {
    for folder in site.state.folders() {
        std::fs::create_dir_all(&folder).map_err(|source| ProcedureError::Write { path: folder, source })?;
    }
    Ok(())
}

/// Refuses unless the caller waits, and waiting can have an end: whoever is around us waits for us.
fn refuse_if_busy(site: &Site, journal: &dyn JournalStore, holder: &str, when_busy: WhenBusy) -> Result<(), Refusal> {
    if holder.parse().is_ok_and(|run: RunId| is_around_us(site, journal, &run)) {
        return Err(Refusal::Nested { outer: holder.to_owned() });
    }
    match when_busy {
        WhenBusy::Refuse => Err(Refusal::Busy { holder: holder.to_owned() }),
        WhenBusy::Wait => Ok(()),
    }
}

/// Another run in this working tree whose session is going on.
fn at_work_without_a_driver(site: &Site, journal: &dyn JournalStore, run_id: &RunId) -> Result<Option<(RunId, SessionId)>, ProcedureError> {
    for other in unended_here(site, journal)?.into_iter().filter(|other| other != run_id) {
        if let Some(session) = living_session(site, journal, &other)? {
            return Ok(Some((other, session)));
        }
    }
    Ok(None)
}

/// Takes the lock of a run; `None` when its driver is alive.
pub(super) fn lock_run(site: &Site, run_id: &RunId) -> Result<Option<HeldLock>, ProcedureError> {
    Ok(match lock::try_acquire(&site.state.run_lock(run_id), &holder_text(run_id)?)? {
        Attempt::Acquired(held) => Some(held),
        Attempt::Held { .. } => None,
    })
}

/// What a driver writes into its locks: its run, and how to signal it.
pub(super) fn holder_text(run_id: &RunId) -> Result<String, ProcedureError> {
    let identity = ProcessIdentity::current()?;
    Ok(format!("{run_id} {identity}"))
}

pub(super) fn run_in_holder(holder: &str) -> String {
    holder.split_whitespace().next().unwrap_or("another process").to_owned()
}
