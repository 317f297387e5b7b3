//! Arguments about engines: the flags of commands that start agents, and `proctor engines`.

use std::path::{Path, PathBuf};

use clap::Args;
use proctor_domain::procedure::RunStarted;
use proctor_domain::session::EngineName;
use proctor_engine::agent::EngineKind;
use proctor_orchestrator::{RunSettings, UnknownEngine};

/// Which engine drives the agents of this command.
#[derive(Debug, Clone, Default, Args)]
pub struct EngineArgs {
    /// What drives agents, in place of the settings' choice; `proctor engines` lists the names
    #[arg(long, value_name = "NAME")]
    pub engine: Option<EngineName>,

    /// What drives judges, where that is to be another engine than the one that drives agents
    #[arg(long, value_name = "NAME")]
    pub judge: Option<EngineName>,

    /// The file that the scripted engine follows; takes that engine unless `--engine` says otherwise
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub script: Option<PathBuf>,

    /// Ask the engine even if a session was told to leave its account alone until a certain time
    #[arg(long)]
    pub ignore_limits: bool,
}

/// List what can drive agents here
///
/// For each engine: whether its program is found, its version and the versions that it was tested with, whether
/// somebody is logged in as far as that can be known without a call, what it can do by itself, and what the tiers of
/// models are called. Then the box in which agents run. Exits 0 whatever it finds; `proctor doctor` judges.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proctor engines --json | jq -r '.engines[] | select(.usable) | .name'")]
pub struct EnginesArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

impl EngineArgs {
    /// For a run that goes on: what was given, else what drove it when it was started. Cards are tried with a script so
    /// that they start no real agent, and going on must not start one either.
    pub fn apply_to_run(&self, settings: &mut RunSettings, directory: &Path, started: &RunStarted) -> Result<(), UnknownEngine> {
        if let (None, None, Some(engine)) = (&self.engine, &self.script, &started.engine) {
            settings.agents.follow(engine)?;
        }
        self.apply(settings, directory)
    }

    /// Puts what was given over the settings. A relative script begins in `directory`.
    pub fn apply(&self, settings: &mut RunSettings, directory: &Path) -> Result<(), UnknownEngine> {
        let agents = &mut settings.agents;
        agents.ignore_limits = self.ignore_limits;
        // A script alone must not start, and pay for, a real agent.
        let implied = self.script.as_ref().map(|_| EngineKind::Scripted.engine_name());
        if let Some(name) = self.engine.clone().or(implied) {
            agents.choose(&name)?;
            agents.choose_judge(None)?;
        }
        if let Some(name) = &self.judge {
            agents.choose_judge(Some(name))?;
        }
        if let Some(script) = &self.script {
            agents.follow_script(&directory.join(script));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proctor_orchestrator::AgentSettings;

    use super::*;

    #[test]
    fn a_script_alone_takes_the_scripted_engine() {
        let settled = |engine: Option<EngineKind>, script: Option<&str>| {
            let agents = AgentSettings::usual("/bin/proctor".into());
            let limit = Duration::from_secs(1);
            let mut settings = RunSettings {
                records: None,
                pass_env: Vec::new(),
                linger: Vec::new(),
                shell_timeout: limit,
                known_here: true,
                proposals: true,
                agents,
            };
            let engine = engine.map(EngineKind::engine_name);
            EngineArgs { engine, judge: None, script: script.map(PathBuf::from), ignore_limits: false }
                .apply(&mut settings, Path::new("/here"))
                .unwrap();
            let scripted = settings.agents.setups.iter().find(|setup| setup.kind == EngineKind::Scripted);
            (settings.agents.engine.kind, scripted.and_then(|setup| setup.script.clone()))
        };

        assert_eq!(settled(None, None), (EngineKind::Claude, None));
        assert_eq!(settled(None, Some("a.toml")), (EngineKind::Scripted, Some("/here/a.toml".into())));
        assert_eq!(settled(Some(EngineKind::Claude), Some("/a.toml")), (EngineKind::Claude, Some("/a.toml".into())));
        assert_eq!(settled(Some(EngineKind::Scripted), None), (EngineKind::Scripted, None));
    }
}
