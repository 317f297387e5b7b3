//! Where a command works: the repository, the card root, the settings and the state.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use proctor_cards::{BoxDefaults, Layout, load_box_defaults};
use proctor_domain::procedure::Records;
use proctor_engine::agent::{EngineKind, EngineSetup, ModelTable};
use proctor_orchestrator::{AgentSettings, RunSettings, Site, StateFolder, UnknownEngine};
use proctor_process::confine::ContainerSetup;
use proctor_workspace::{GitEnvironment, Repository, WorkspaceError};

use crate::Invocation;
use crate::commands::CommandError;
use crate::commands::engines::learn_versions;
use crate::memory::memory_of_runs;
use crate::report::Report;
use crate::settings::{Layers, LayoutRule, REPOSITORY_FILE, RecordsRule, Setting, Settings, Source, trust};
use crate::state::{self, StateHome};

/// Everything that can be known about a place without making anything there.
pub struct Place {
    /// The repository and working tree.
    pub repository: Repository,
    /// Where cards are looked up and shells run: the folder of the nearest `proctor.toml`, else of the nearest box,
    /// else the top of the working tree.
    pub card_root: PathBuf,
    /// The settings, layer by layer.
    pub layers: Layers,
    /// Where cards and run folders lie, and who says so.
    pub layout: Setting<Layout>,
}

impl Place {
    /// Looks around from where the command was asked to work.
    ///
    /// # Errors
    /// There is no usable repository, or settings can't be read.
    pub fn find(invocation: &Invocation) -> Result<Self, Report> {
        let git = GitEnvironment::from_user(invocation.environment.pairs());
        let repository = Repository::discover(&invocation.directory, &git)?;
        let (card_root, settings_file) = card_root(&invocation.directory, &repository.work_tree);
        let layers = Layers::read(&invocation.environment, settings_file.as_deref())?;
        // No consent is needed to know the layout: it is not sensitive.
        let rule = layers.settle(trust::Consent::Missing).layout;
        let value = match rule.value {
            LayoutRule::Find => Layout::find(&card_root),
            LayoutRule::Fixed(layout) => layout,
        };
        Ok(Self { repository, card_root, layers, layout: Setting { value, source: rule.source } })
    }

    /// The folder that holds the state of all repositories.
    ///
    /// # Errors
    /// There is no place for it.
    pub fn state_home(&self, invocation: &Invocation) -> Result<StateHome, Report> {
        Ok(StateHome::of(self.layers.state_dir().value.as_deref(), &invocation.environment)?)
    }

    /// The repository's state, if it has any yet. Makes nothing.
    ///
    /// # Errors
    /// What is there can't be read.
    pub fn find_state(&self, invocation: &Invocation) -> Result<Option<StateFolder>, Report> {
        Ok(state::find(&self.state_home(invocation)?, &self.repository)?)
    }

    /// The repository's state, made where there is none.
    ///
    /// # Errors
    /// It can't be made or used.
    pub fn establish_state(&self, invocation: &Invocation) -> Result<StateFolder, Report> {
        Ok(state::establish(&self.state_home(invocation)?, &self.repository)?)
    }

    /// Whether the user accepted the repository's sensitive settings.
    ///
    /// # Errors
    /// The list of what was accepted can't be read.
    pub fn consent(&self, state: Option<&StateFolder>) -> Result<trust::Consent, Report> {
        Ok(trust::consent(&self.layers.sensitive(), state.map(StateFolder::root))?)
    }

    /// Where runs are recorded whose card does not say.
    pub fn records(&self) -> Records {
        match self.layers.settle(trust::Consent::Missing).records.value {
            RecordsRule::ByLayout => self.layout.value.default_records(),
            RecordsRule::Fixed(records) => records,
        }
    }

    /// The box's own settings, where the layout has them.
    ///
    /// # Errors
    /// They can't be read.
    pub fn box_defaults(&self) -> Result<BoxDefaults, Report> {
        match self.layout.value {
            Layout::Proctor => Ok(BoxDefaults::default()),
            Layout::BeeBox => load_box_defaults(&self.card_root)
                .map_err(|finding| Report::from_findings("the box's settings can't be used", vec![finding])),
        }
    }

    /// The settings that concern runs. `records` is the flag's choice.
    ///
    /// # Errors
    /// They choose an engine that they don't know.
    pub fn run_settings(
        &self,
        invocation: &Invocation,
        consent: trust::Consent,
        program: &Path,
        records: Option<Records>,
    ) -> Result<RunSettings, UnknownEngine> {
        run_settings(self.layers.settle(consent), records, program, &invocation.directory)
    }

    /// The place as runs need it, with its state made. `records` is the flag's choice.
    ///
    /// # Errors
    /// Sensitive settings were not accepted, or state can't be made.
    pub fn into_site(self, invocation: &Invocation, records: Option<Records>) -> Result<Site, Report> {
        let state = self.establish_state(invocation)?;
        let consent = self.consent(Some(&state))?;
        if let (trust::Consent::Missing, Some(path)) = (consent, &self.layers.repository_file) {
            let keys = self.layers.sensitive().asks.iter().map(|ask| ask.key.name()).collect();
            return Err(CommandError::NeedsConsent { path: path.clone(), keys }.into());
        }
        let box_defaults = self.box_defaults()?;
        let program = own_program()?;
        let mut settings = self.run_settings(invocation, consent, &program, records)?;
        learn_versions(invocation, &mut settings.agents);
        let memory = memory_of_runs(invocation, &self.repository, &self.card_root, &settings.agents.secrets);
        Ok(Site {
            memory: Some(Rc::new(memory)),
            repository: self.repository,
            card_root: self.card_root,
            layout: self.layout.value,
            box_defaults,
            state,
            settings,
            program,
            environment: invocation.environment.pairs(),
        })
    }
}

/// The settings where a command works, be that in a repository or not.
pub struct SettingsHere {
    /// What holds.
    pub settings: Settings,
    /// The part that concerns agents, as runs get it.
    pub agents: AgentSettings,
    /// Settings of the repository that do not count because the user has not accepted them.
    pub not_accepted: Vec<&'static str>,
    /// Our own program.
    pub program: PathBuf,
}

impl SettingsHere {
    /// Looks around from where the command was asked to work.
    ///
    /// # Errors
    /// Settings can't be read, or the repository is there and can't be used.
    pub fn find(invocation: &Invocation) -> Result<Self, Report> {
        let git = GitEnvironment::from_user(invocation.environment.pairs());
        if let Err(WorkspaceError::NotARepository { .. }) = Repository::discover(&invocation.directory, &git) {
            return Self::of(invocation, &Layers::read(&invocation.environment, None)?, trust::Consent::NotNeeded);
        }
        let place = Place::find(invocation)?;
        let consent = place.consent(place.find_state(invocation)?.as_ref())?;
        Self::of(invocation, &place.layers, consent)
    }

    /// What comes of these layers.
    ///
    /// # Errors
    /// Our own program can't be found.
    pub fn of(invocation: &Invocation, layers: &Layers, consent: trust::Consent) -> Result<Self, Report> {
        let program = own_program()?;
        let settings = layers.settle(consent);
        let agents = agent_settings(&settings, &program, &invocation.directory)?;
        let not_accepted = match consent {
            trust::Consent::Missing => layers.sensitive().asks.iter().map(|ask| ask.key.name()).collect(),
            trust::Consent::Given | trust::Consent::NotNeeded => Vec::new(),
        };
        Ok(Self { settings, agents, not_accepted, program })
    }
}

/// Our own program, which hosts sessions. Where it was replaced since we were started, as by an upgrade, its path
/// leads nowhere, and only the kernel still knows what we are.
pub(crate) fn own_program() -> Result<PathBuf, CommandError> {
    let program = std::env::current_exe().map_err(CommandError::OwnProgram)?;
    Ok(if program.exists() { program } else { PathBuf::from("/proc/self/exe") })
}

fn run_settings(settings: Settings, records: Option<Records>, program: &Path, directory: &Path) -> Result<RunSettings, UnknownEngine> {
    let agents = agent_settings(&settings, program, directory)?;
    let rule = settings.records.or_flag("--records", records.map(RecordsRule::Fixed));
    Ok(RunSettings {
        records: match rule.value {
            RecordsRule::ByLayout => None,
            RecordsRule::Fixed(records) => Some(records),
        },
        pass_env: settings.pass_env.value,
        linger: settings.linger.value,
        shell_timeout: settings.shell_timeout.value.into(),
        known_here: settings.known_here.value,
        proposals: settings.proposals.value,
        agents,
    })
}

fn agent_settings(settings: &Settings, program: &Path, directory: &Path) -> Result<AgentSettings, UnknownEngine> {
    let programs = settings.programs.iter().map(|engine| EngineSetup {
        program: engine.program.program(directory),
        inherit: engine.inherit.value,
        permission: engine.permission.value,
        effort: engine.effort.value.clone(),
        fallback_model: engine.fallback_model.value.clone(),
        servers: engine.servers.value.clone(),
        ..EngineSetup::usual(engine.kind)
    });
    let script = settings.script.value.as_ref().map(|script| settings.script.source.folder(directory).join(script));
    let scripted = EngineSetup { program: program.to_owned(), script, ..EngineSetup::usual(EngineKind::Scripted) };
    let own = settings.own_engines.iter().map(|(name, engine)| EngineSetup {
        name: name.clone(),
        program: Setting { value: PathBuf::from(&engine.value.program), source: engine.source.clone() }.program(directory),
        arguments: engine.value.arguments.clone(),
        environment: engine.value.environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        inherit: engine.value.inherit,
        permission: engine.value.permission,
        effort: engine.value.abilities.effort.clone(),
        fallback_model: engine.value.abilities.fallback_model.clone(),
        servers: engine.value.abilities.servers.clone(),
        ..EngineSetup::usual(engine.value.kind)
    });
    let own_models = settings
        .own_engines
        .iter()
        .flat_map(|(name, engine)| engine.value.models.iter().map(|(tier, model)| ((name.clone(), *tier), model.clone())));
    let models = settings.models.iter().map(|setting| ((setting.kind.engine_name(), setting.tier), setting.model.value.clone()));
    let mut agents = AgentSettings {
        setups: programs.chain([scripted]).chain(own).collect(),
        models: ModelTable { overrides: models.chain(own_models).collect() },
        timeout: settings.agent_timeout.value.into(),
        silence: settings.agent_silence.value.into(),
        confine: settings.confine.value,
        net: settings.net.value,
        container: container_setup(settings, directory),
        secrets: settings.secrets.value.clone(),
        ..AgentSettings::usual(program.to_owned())
    };
    agents.choose(&settings.engine.value)?;
    agents.choose_judge(settings.judge.value.as_ref())?;
    Ok(agents)
}

/// What settings say about containers.
fn container_setup(settings: &Settings, directory: &Path) -> ContainerSetup {
    let program = settings.box_program.value.clone().map(|value| Setting { value, source: settings.box_program.source.clone() });
    ContainerSetup { program: program.map(|program| program.program(directory)), image: settings.box_image.value.clone() }
}

/// The card root and, if it has one, its settings file. The walk ends at the top of the working tree: what lies
/// above belongs to somebody else.
pub fn card_root(directory: &Path, work_tree: &Path) -> (PathBuf, Option<PathBuf>) {
    let inside = || directory.ancestors().take_while(|folder| folder.starts_with(work_tree));
    if let Some(folder) = inside().find(|folder| folder.join(REPOSITORY_FILE).is_file()) {
        return (folder.to_owned(), Some(folder.join(REPOSITORY_FILE)));
    }
    let boxed = inside().find(|folder| Layout::find(folder) == Layout::BeeBox);
    (boxed.unwrap_or(work_tree).to_owned(), None)
}

/// How a layout was chosen, for people.
pub fn layout_reason(layout: &Setting<Layout>) -> String {
    match &layout.source {
        Source::Default => "found".to_owned(),
        source @ (Source::User(_) | Source::Repository(_) | Source::Environment(_) | Source::Flag(_)) => format!("from {source}"),
    }
}
