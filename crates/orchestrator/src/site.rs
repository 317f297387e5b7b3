//! Where a command works: repository, cards, state and settings, resolved by the command line.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use proctor_cards::{BoxDefaults, Layout};
use proctor_domain::procedure::{Records, RunEngine};
use proctor_domain::session::{EngineName, Work};
use proctor_engine::agent::{EngineKind, EngineSetup, ModelTable};
use proctor_process::confine::{Confine, ContainerSetup, Net};
use proctor_workspace::Repository;

use crate::StateFolder;
use crate::memory::Memory;
use crate::procedure::absolute;

/// Everything about a place that a run needs to know. It does not change while a command runs.
pub struct Site {
    /// The repository and working tree.
    pub repository: Repository,
    /// The folder of `proctor.toml`: where cards are looked up and shells run.
    pub card_root: PathBuf,
    /// Where cards and run folders lie.
    pub layout: Layout,
    /// What the layout's own settings file says (`_config/box.json`).
    pub box_defaults: BoxDefaults,
    /// The repository's state.
    pub state: StateFolder,
    /// The settings that concern runs.
    pub settings: RunSettings,
    /// Memory, where there is a place for it.
    pub memory: Option<Rc<Memory>>,
    /// Our own program, which hosts sessions.
    pub program: PathBuf,
    /// The caller's environment; sessions get a list of it.
    pub environment: Vec<(OsString, OsString)>,
}

/// Settings that concern runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSettings {
    /// Where runs are recorded; the card decides first, then this, then the layout.
    pub records: Option<Records>,
    /// Variables that shells get beyond the list.
    pub pass_env: Vec<String>,
    /// Programs that may outlive a session.
    pub linger: Vec<String>,
    /// Wall-clock limit of a shell phase without a `timeout` of its own.
    pub shell_timeout: Duration,
    /// Whether agents are shown what memory knows.
    pub known_here: bool,
    /// Whether memory is told what runs taught.
    pub proposals: bool,
    /// How agents are run.
    pub agents: AgentSettings,
}

/// Settings that concern agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSettings {
    /// The engine that drives them.
    pub engine: EngineSetup,
    /// The engine of judges, where that is another one: who looks at a work need not think like who did it.
    pub judge: Option<EngineSetup>,
    /// Every engine that can be chosen, and how it is to be used.
    pub setups: Vec<EngineSetup>,
    /// What tiers of models are called.
    pub models: ModelTable,
    /// Wall-clock limit of an agent's session whose step has no `timeout`.
    pub timeout: Duration,
    /// How long an agent may give no sign of life.
    pub silence: Duration,
    /// The box they are held in.
    pub confine: Confine,
    /// What they reach of the network.
    pub net: Net,
    /// What a container is made with, where that is their box.
    pub container: ContainerSetup,
    /// Names of variables whose values are never written.
    pub secrets: Vec<String>,
    /// Whether an account is asked although a session was told to leave it alone for a while.
    pub ignore_limits: bool,
}

/// A name that none of the engines has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("choose the engine `{name}`; there are {}", known.iter().map(EngineName::as_str).collect::<Vec<_>>().join(", "))]
pub struct UnknownEngine {
    /// The name.
    pub name: EngineName,
    /// Those that there are.
    pub known: Vec<EngineName>,
}

impl AgentSettings {
    /// What holds where nobody says anything. The scripted engine is this program itself.
    pub fn usual(own_program: PathBuf) -> Self {
        let setups = EngineKind::BUILT_IN.map(EngineSetup::usual).into_iter().map(|setup| match setup.kind {
            EngineKind::Scripted => EngineSetup { program: own_program.clone(), ..setup },
            EngineKind::Claude | EngineKind::Codex | EngineKind::OpenCode | EngineKind::Acp | EngineKind::Command => setup,
        });
        Self {
            engine: EngineSetup::usual(EngineKind::Claude),
            judge: None,
            setups: setups.collect(),
            models: ModelTable::default(),
            timeout: Duration::from_secs(60 * 60),
            silence: Duration::from_secs(15 * 60),
            confine: Confine::Auto,
            net: Net::All,
            container: ContainerSetup::default(),
            secrets: Vec::new(),
            ignore_limits: false,
        }
    }

    /// Takes the engine of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn choose(&mut self, name: &EngineName) -> Result<(), UnknownEngine> {
        self.engine = self.named(name)?;
        Ok(())
    }

    /// Takes the engine of this name for judges; `None` for the one that drives agents.
    ///
    /// # Errors
    /// There is none.
    pub fn choose_judge(&mut self, name: Option<&EngineName>) -> Result<(), UnknownEngine> {
        self.judge = name.map(|name| self.named(name)).transpose()?;
        Ok(())
    }

    fn named(&self, name: &EngineName) -> Result<EngineSetup, UnknownEngine> {
        let known = || self.setups.iter().map(|setup| setup.name.clone()).collect();
        let named = self.setups.iter().find(|setup| setup.name == *name).cloned();
        named.ok_or_else(|| UnknownEngine { name: name.clone(), known: known() })
    }

    /// What drives this work.
    pub fn driving(&self, work: Work) -> &EngineSetup {
        match work {
            Work::Judge(_) => self.judge.as_ref().unwrap_or(&self.engine),
            Work::Shells | Work::Agent(_) | Work::Repair => &self.engine,
        }
    }

    /// Has the scripted engine follow this script.
    pub fn follow_script(&mut self, path: &Path) {
        self.of_kind(EngineKind::Scripted).for_each(|setup| setup.script = Some(path.to_owned()));
    }

    /// How the engines of this kind are used, those that were chosen among them.
    pub fn of_kind(&mut self, kind: EngineKind) -> impl Iterator<Item = &mut EngineSetup> {
        self.setups.iter_mut().chain([&mut self.engine]).chain(&mut self.judge).filter(move |setup| setup.kind == kind)
    }

    /// Takes what drove a run when it was started.
    ///
    /// # Errors
    /// The settings don't know that engine any more.
    pub fn follow(&mut self, engine: &RunEngine) -> Result<(), UnknownEngine> {
        self.choose(&engine.name)?;
        self.choose_judge(engine.judge.as_ref())?;
        if let Some(script) = &engine.script {
            self.follow_script(&absolute(script));
        }
        Ok(())
    }
}

impl Site {
    /// The same place in another working tree of the repository.
    pub(crate) fn moved_to(&self, repository: Repository, card_root: PathBuf) -> Self {
        Self {
            repository,
            card_root,
            layout: self.layout,
            box_defaults: self.box_defaults.clone(),
            state: self.state.clone(),
            settings: self.settings.clone(),
            memory: self.memory.clone(),
            program: self.program.clone(),
            environment: self.environment.clone(),
        }
    }

    /// A variable as the sessions of this engine see it.
    pub(crate) fn engine_variable(&self, setup: &EngineSetup, name: &str) -> Option<OsString> {
        setup.variable(name, &|name| self.variable(name).map(ToOwned::to_owned))
    }

    /// A variable of the caller's environment.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.environment.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_os_str())
    }
}
