//! The recorded runs of a repository, for the commands that look at them, or end and remove them, and start no
//! step.
//!
//! What only looks makes nothing, so that it works on read-only state and in a repository that never ran
//! anything. Nothing here asks for consent to a repository's settings: they matter to what is started, and a run
//! must be seen and stopped whatever its `proctor.toml` says by now.

use proctor_domain::procedure::Position;
use proctor_domain::session::AgentReport;
use proctor_domain::{RunId, SessionId, Timestamp};
use proctor_engine::agent::EngineKind;
use proctor_engine::replay_transcript;
use proctor_journal::{Journal, JournalError, JournalStore, ResolveError};
use proctor_orchestrator::Site;
use proctor_orchestrator::procedure::{LoadedRun, ProcedureError, Standing, find_run, is_alive, last_sign, load_run};
use proctor_process::lock;

use crate::Invocation;
use crate::commands::CommandError;
use crate::place::Place;
use crate::report::{Kind, Report};
use crate::settings::trust::Consent;

/// The journal of a repository and the place it belongs to.
pub struct Archive {
    /// The place.
    pub site: Site,
    /// The journal.
    pub journal: Journal,
}

/// What an id on the command line means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A run.
    Run(RunId),
    /// A session, and its run.
    Session(RunId, SessionId),
}

/// A run and how it stands at this moment.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The run.
    pub loaded: LoadedRun,
    /// How it stands.
    pub standing: Standing,
    /// Who drives it.
    pub driver: DriverFound,
    /// The last moment at which it is known to have lived, or to have come to where it stands.
    pub last_sign: Timestamp,
}

/// Whether somebody drives a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriverFound {
    /// A driver holds its lock.
    Alive,
    /// Nobody does; a session may be at work all the same.
    Gone,
}

impl Archive {
    /// Opens the journal for reading; `None` where nothing was ever recorded.
    ///
    /// # Errors
    /// There is no usable repository, or what is there can't be read.
    pub fn open(invocation: &Invocation) -> Result<Option<Self>, Report> {
        let Some(site) = find_site(invocation)? else { return Ok(None) };
        match Journal::open_read_only(site.state.root()) {
            Ok(journal) => {
                if let Some(warning) = journal.warning() {
                    invocation.printer.warn(&warning);
                }
                Ok(Some(Self { site, journal }))
            }
            Err(JournalError::Missing { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The same for commands that add to the journal or remove from it.
    ///
    /// # Errors
    /// As [`Archive::open`]; or it can't be written.
    pub fn open_to_change(invocation: &Invocation) -> Result<Option<Self>, Report> {
        let Some(site) = find_site(invocation)? else { return Ok(None) };
        if !site.state.root().join(proctor_journal::FILE_NAME).exists() {
            return Ok(None);
        }
        let journal = Journal::open(site.state.root())?;
        Ok(Some(Self { site, journal }))
    }

    /// The run that `text` means.
    ///
    /// # Errors
    /// There is none, or several.
    pub fn run(&self, text: &str) -> Result<RunId, Report> {
        Ok(find_run(&self.site, &self.journal, text)?)
    }

    /// The run or session that `text` means. Without its prefix an id may be either.
    ///
    /// # Errors
    /// There is none, or several.
    pub fn target(&self, text: &str) -> Result<Target, Report> {
        if text.trim().to_ascii_lowercase().starts_with(SessionId::PREFIX) {
            let (run, session) = self.journal.resolve_session(text)?;
            return Ok(Target::Session(run, session));
        }
        let run = find_run(&self.site, &self.journal, text);
        if text.trim().to_ascii_lowercase().starts_with(RunId::PREFIX) {
            return Ok(Target::Run(run?));
        }
        match (run, self.journal.resolve_session(text)) {
            (Ok(run), Err(ResolveError::NotFound { .. })) => Ok(Target::Run(run)),
            (Err(ProcedureError::Resolve(ResolveError::NotFound { .. })), Ok((run, session))) => Ok(Target::Session(run, session)),
            (Err(ProcedureError::Resolve(ResolveError::NotFound { .. })), Err(ResolveError::NotFound { .. })) => Err(nothing_like(text)),
            (Ok(run), Ok((_, session))) => {
                Err(Report::new(Kind::User, format!("`{text}` begins the ids of a run and of a session: {run}, {session}"))
                    .hint("give more of the id"))
            }
            (Err(error), _) => Err(error.into()),
            (_, Err(error)) => Err(error.into()),
        }
    }

    /// A run, and how it stands.
    ///
    /// # Errors
    /// Its record can't be read.
    pub fn look(&self, run: &RunId) -> Result<Seen, Report> {
        let mut loaded = load_run(&self.journal, run)?;
        let standing = self.standing(&mut loaded)?;
        let (driver, last_sign) = self.signs(&loaded);
        Ok(Seen { loaded, standing, driver, last_sign })
    }

    /// Brings `seen` up to date; whether anything was recorded since.
    ///
    /// # Errors
    /// The run's record can't be read.
    pub fn look_again(&self, seen: &mut Seen) -> Result<Change, Report> {
        let version = seen.loaded.version;
        self.catch_up(&mut seen.loaded)?;
        seen.standing = self.standing(&mut seen.loaded)?;
        (seen.driver, seen.last_sign) = self.signs(&seen.loaded);
        Ok(if seen.loaded.version == version { Change::Nothing } else { Change::Recorded })
    }

    fn signs(&self, loaded: &LoadedRun) -> (DriverFound, Timestamp) {
        let held = lock::holder_if_held(&self.site.state.run_lock(&loaded.run_id)).is_ok_and(|holder| holder.is_some());
        (if held { DriverFound::Alive } else { DriverFound::Gone }, last_sign(&self.site, loaded))
    }

    /// What the transcript of a session without a report says. The journal does not say which engine printed it, but only its
    /// own reader finds a conversation there. `None` where the model had not answered: what it was about to answer is paid for.
    pub fn transcribed(&self, session: &SessionId) -> Option<AgentReport> {
        let folder = self.site.state.session(session);
        let replay = |kind: EngineKind| replay_transcript(&folder, kind.engine_name(), kind).filter(|report| report.conversation.is_some());
        EngineKind::ALL.into_iter().find_map(replay).filter(|report| report.responded || !report.spent.is_empty())
    }

    fn standing(&self, loaded: &mut LoadedRun) -> Result<Standing, Report> {
        loop {
            if matches!(loaded.run.position, Position::Ended(_)) {
                return Ok(Standing::at_rest(&loaded.run));
            }
            if is_alive(&self.site, loaded)? {
                return Ok(Standing::Running);
            }
            // A driver that ended between the reading and the look at its lock has recorded more by now. Once
            // it is seen to be gone and nothing was added, nothing will be.
            if self.catch_up(loaded)? == Change::Nothing {
                return Ok(Standing::at_rest(&loaded.run));
            }
        }
    }

    fn catch_up(&self, loaded: &mut LoadedRun) -> Result<Change, Report> {
        let added = self.journal.read_after(&loaded.run_id, loaded.version)?;
        let change = if added.is_empty() { Change::Nothing } else { Change::Recorded };
        for (at, event) in added {
            let damaged = |source| ProcedureError::DamagedRun { run: loaded.run_id.clone(), source };
            loaded.run.apply(at, event).map_err(damaged)?;
            loaded.version += 1;
            loaded.newest_event = at;
        }
        Ok(change)
    }
}

/// Whether a run's record grew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It did not.
    Nothing,
    /// It did.
    Recorded,
}

/// The error for an id where nothing was ever recorded.
pub fn nothing_like(text: &str) -> Report {
    Report::new(Kind::User, format!("there is no run or session whose id begins with `{text}`"))
        .hint("`proctor runs --all` lists every run")
}

fn find_site(invocation: &Invocation) -> Result<Option<Site>, Report> {
    let place = Place::find(invocation)?;
    let Some(state) = place.find_state(invocation)? else { return Ok(None) };
    // What needs consent decides about steps that are started, and none is.
    let program = std::env::current_exe().map_err(CommandError::OwnProgram)?;
    let settings = place.run_settings(invocation, Consent::Missing, &program, None)?;
    Ok(Some(Site {
        // A box whose settings can't be read must not keep its runs from being seen and stopped.
        box_defaults: place.box_defaults().unwrap_or_default(),
        layout: place.layout.value,
        repository: place.repository,
        card_root: place.card_root,
        state,
        settings,
        memory: None,
        program,
        environment: invocation.environment.pairs(),
    }))
}
