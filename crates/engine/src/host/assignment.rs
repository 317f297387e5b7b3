//! What a driver hands to a host: one session, with the environment that must not lie on a disk.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use crate::agent::{Access, CONVERSATION, EngineKind, Input, Opening, Permission};
use crate::tools::ToolServer;
use proctor_domain::session::{EngineName, Usage};
use proctor_domain::{MicroDollars, RepoPath, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use super::{AgentRun, SessionSpec, SessionWork};

/// A session to run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Assignment {
    folder: RepoPath,
    pub(super) spec: StoredSpec,
    environment: Vec<(RepoPath, RepoPath)>,
    secrets: Vec<RepoPath>,
    /// The agent, where there is one. Its arguments can hold what must not lie on a disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<Agent>,
    /// The point at which the host dies, in a crash test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) killpoint: Option<String>,
}

/// An agent that the host is to run. Its texts are in the session's folder.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Agent {
    pub(super) name: EngineName,
    pub(super) engine: EngineKind,
    argv: Vec<RepoPath>,
    again: Vec<RepoPath>,
    pub(super) input: Input,
    resume: Option<String>,
    model: Option<String>,
    pub(super) schema: Option<String>,
    access: Access,
    permission: Permission,
    begun: Option<Timestamp>,
    used_before: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tools: Option<ToolServer>,
    #[serde(default)]
    pub(super) hears_lessons: bool,
    silence_limit_ms: u64,
    pub(super) max_turns: Option<u32>,
    pub(super) max_cost: Option<MicroDollars>,
}

/// What may lie on a disk of a session's spec: neither environment nor secrets, nor what an agent is started with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredSpec {
    version: u64,
    pub(super) session: SessionId,
    pub(super) shells: usize,
    directory: RepoPath,
    lock: RepoPath,
    wall_limit_ms: u64,
    pub(super) linger: Vec<String>,
    /// The host that it was handed to, when that was running already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) host: Option<String>,
}

impl Assignment {
    /// `environment` is that of the spec with the session's marker.
    pub(super) fn new(spec: &SessionSpec, stored: StoredSpec, environment: &[(OsString, OsString)], killpoint: Option<String>) -> Self {
        Self {
            folder: to_text(spec.folder.as_os_str()),
            spec: stored,
            environment: environment.iter().map(|(name, value)| (to_text(name), to_text(value))).collect(),
            secrets: spec.secrets.iter().cloned().map(RepoPath::new).collect(),
            agent: match &spec.work {
                SessionWork::Shells(_) => None,
                SessionWork::Agent(run) => Some(Agent::of(run)),
            },
            killpoint,
        }
    }

    pub(super) fn secrets(&self) -> Vec<Vec<u8>> {
        self.secrets.iter().map(|secret| secret.as_bytes().to_vec()).collect()
    }

    pub(super) fn folder(&self) -> PathBuf {
        from_text(&self.folder).into()
    }

    pub(super) fn environment(&self) -> impl Iterator<Item = (OsString, OsString)> {
        self.environment.iter().map(|(name, value)| (from_text(name), from_text(value)))
    }
}

impl Agent {
    fn of(run: &AgentRun) -> Self {
        Self {
            name: run.name.clone(),
            engine: run.engine,
            argv: run.argv.iter().map(|argument| to_text(argument)).collect(),
            again: run.again.iter().map(|argument| to_text(argument)).collect(),
            input: run.opening.input,
            resume: run.opening.resume.clone(),
            model: run.opening.model.clone(),
            schema: run.opening.schema.clone(),
            access: run.opening.access,
            permission: run.opening.permission,
            begun: run.opening.begun,
            used_before: run.opening.used_before,
            tools: run.opening.tools.clone(),
            hears_lessons: run.opening.hears_lessons,
            silence_limit_ms: millis(run.silence_limit),
            max_turns: run.max_turns,
            max_cost: run.max_cost,
        }
    }

    pub(super) fn argv(&self) -> Vec<OsString> {
        self.argv.iter().map(from_text).collect()
    }

    /// Program and arguments that go on with this conversation.
    pub(super) fn argv_again(&self, conversation: &str) -> Vec<OsString> {
        let filled = |argument: OsString| if argument == CONVERSATION { conversation.into() } else { argument };
        self.again.iter().map(from_text).map(filled).collect()
    }

    /// What the session begins with; `system` and `prompt` are the texts that its folder holds.
    pub(super) fn opening(&self, system: String, prompt: String, directory: PathBuf) -> Opening {
        Opening {
            system,
            prompt,
            resume: self.resume.clone(),
            model: self.model.clone(),
            schema: self.schema.clone(),
            access: self.access,
            permission: self.permission,
            directory,
            input: self.input,
            begun: self.begun,
            used_before: self.used_before,
            tools: self.tools.clone(),
            hears_lessons: self.hears_lessons,
        }
    }

    pub(super) fn silence_limit(&self) -> Duration {
        Duration::from_millis(self.silence_limit_ms)
    }
}

impl StoredSpec {
    pub(super) fn of(spec: &SessionSpec, host: Option<String>) -> Self {
        Self {
            version: super::files::VERSION,
            session: spec.session.clone(),
            shells: match &spec.work {
                SessionWork::Shells(texts) => texts.len(),
                SessionWork::Agent(_) => 0,
            },
            directory: to_text(spec.directory.as_os_str()),
            lock: to_text(spec.lock.as_os_str()),
            wall_limit_ms: millis(spec.wall_limit),
            linger: spec.linger.clone(),
            host,
        }
    }

    pub(super) fn directory(&self) -> PathBuf {
        from_text(&self.directory).into()
    }

    pub(super) fn lock(&self) -> PathBuf {
        from_text(&self.lock).into()
    }

    pub(super) fn wall_limit(&self) -> Duration {
        Duration::from_millis(self.wall_limit_ms)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Paths and variables are bytes; the one function that writes such as text belongs to [`RepoPath`].
fn to_text(bytes: &OsStr) -> RepoPath {
    RepoPath::new(bytes.as_bytes())
}

fn from_text(text: &RepoPath) -> OsString {
    OsString::from_vec(text.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_opening(spec: &SessionSpec) -> Opening {
        match &spec.work {
            SessionWork::Agent(run) => run.opening.clone(),
            SessionWork::Shells(_) => Opening::default(),
        }
    }

    #[test]
    fn bytes_that_are_no_text_arrive_and_the_stored_part_has_nothing_secret() {
        let odd = |text: &[u8]| OsString::from_vec(text.to_vec());
        let spec = SessionSpec {
            session: SessionId::from_bits(7),
            folder: odd(b"/f\xfe").into(),
            work: SessionWork::Agent(Box::new(AgentRun {
                name: EngineKind::Scripted.engine_name(),
                engine: EngineKind::Scripted,
                argv: vec![odd(b"/bin/agent"), odd(b"--token=\xff")],
                again: vec!["agent".into(), "--resume".into(), CONVERSATION.into()],
                environment: Vec::new(),
                opening: Opening {
                    schema: Some("{}".to_owned()),
                    resume: Some("c".to_owned()),
                    input: Input::Spoken,
                    tools: ToolServer::of("/bin/proctor".as_ref(), "/s".as_ref()),
                    ..Opening::default()
                },
                files: vec![("token".to_owned(), "token".to_owned())],
                silence_limit: Duration::from_millis(2500),
                max_turns: Some(3),
                max_cost: Some(MicroDollars(7)),
            })),
            directory: odd(b"/a\xff\nb").into(),
            environment: vec![(odd(b"TOKEN"), odd(b"\"secret\"\xff\n\t=")), (odd(b"N\xff"), odd(b""))],
            secrets: vec![b"hush\xff".to_vec()],
            wall_limit: Duration::from_millis(1500),
            linger: vec!["sccache".to_owned()],
            lock: odd(b"/\"quoted\"").into(),
        };

        let stored = StoredSpec::of(&spec, None);
        let opening = Opening { system: "s".to_owned(), prompt: "p".to_owned(), directory: "/d".into(), ..run_opening(&spec) };
        let text = serde_json::to_string(&Assignment::new(&spec, stored.clone(), &spec.environment, None)).unwrap();
        let read: Assignment = serde_json::from_str(&text).unwrap();

        let on_disk = serde_json::to_string(&stored).unwrap();
        assert!(!["TOKEN", "token", "hush"].iter().any(|word| on_disk.contains(word)), "{on_disk}");
        assert_eq!((read.folder(), read.spec.directory(), read.spec.lock()), (spec.folder, spec.directory, spec.lock));
        assert_eq!((read.spec.shells, read.spec.wall_limit()), (0, spec.wall_limit));
        assert_eq!(read.secrets(), spec.secrets);
        let agent = read.agent.as_ref().unwrap();
        assert_eq!(agent.argv(), [odd(b"/bin/agent"), odd(b"--token=\xff")]);
        assert_eq!(
            (agent.engine, agent.input, agent.max_turns, agent.max_cost),
            (EngineKind::Scripted, Input::Spoken, Some(3), Some(MicroDollars(7)))
        );
        assert_eq!(agent.opening("s".to_owned(), "p".to_owned(), "/d".into()), opening);
        assert_eq!(agent.argv_again("c-1"), ["agent", "--resume", "c-1"]);
        assert_eq!(agent.silence_limit(), Duration::from_millis(2500));
        assert_eq!(read.environment().collect::<Vec<_>>(), spec.environment);
    }
}
