//! A session to be run: its folder, its spec, and what the tests ask of it.

use std::ffi::OsString;
use std::io::pipe;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use proctor_domain::SessionId;
use proctor_domain::session::{SessionEnd, SessionReport};
use proctor_engine::agent::{EngineKind, Opening};
use proctor_engine::{AgentRun, Attached, Found, HostError, SessionSpec, SessionWork, Waited, find, start};
use proctor_process::{ProcessIdentity, Program, family};

/// How long anything may take before a test gives up. Generous: machines that run tests are slow.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Ignores every polite request, in a loop of its own, with nothing open and nowhere.
pub(crate) const DEAF: &str = "trap '' TERM HUP INT; exec >/dev/null 2>&1 </dev/null; cd /; while :; do sleep 1000; done";

pub(crate) struct World {
    folder: tempfile::TempDir,
    pub(crate) spec: SessionSpec,
}

/// Waits until `condition` holds; false at the limit.
pub(crate) fn until(mut condition: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < LIMIT {
        if condition() {
            return true;
        }
        family::wait_for_end(&[], Duration::from_millis(2));
    }
    false
}

pub(crate) fn host_program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().and_then(Path::parent).unwrap().join("examples/session_host");
    assert!(program.exists(), "{} is built with the tests of this crate", program.display());
    program
}

fn fresh_id() -> SessionId {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // Two test runs on one machine must not sweep each other's processes.
    SessionId::from_bits((u64::from(std::process::id()) << 20) + NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn path_variable() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into())
}

fn shells_of(texts: &[&str]) -> SessionWork {
    SessionWork::Shells(texts.iter().map(|text| (*text).to_owned()).collect())
}

pub(crate) fn world(shells: &[&str]) -> World {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_owned();
    World::at(folder, &place, shells)
}

/// What lets a bash text print the lines of a scripted agent.
const LINES: &str = r#"started() { echo '{"type":"started","conversation":"c-1","model":"m"}'; }
turn() { echo '{"type":"turn","usage":{"input":1,"output":2,"cache_read":0,"cache_write":0},"cost":"unknown"}'; }
finished() { echo '{"type":"result","stop":"done"}'; }
"#;

/// A session whose agent is this bash text.
pub(crate) fn agent(text: &str) -> World {
    let mut world = world(&[]);
    world.spec.work = SessionWork::Agent(Box::new(AgentRun {
        name: EngineKind::Scripted.engine_name(),
        engine: EngineKind::Scripted,
        argv: vec!["bash".into(), "-c".into(), format!("{LINES}{text}").into()],
        again: Vec::new(),
        environment: Vec::new(),
        opening: Opening::default(),
        files: Vec::new(),
        silence_limit: LIMIT,
        max_turns: None,
        max_cost: None,
    }));
    world
}

impl World {
    /// The agent of this world.
    pub(crate) fn run_mut(&mut self) -> &mut AgentRun {
        match &mut self.spec.work {
            SessionWork::Agent(run) => run,
            SessionWork::Shells(_) => panic!("this session runs shells"),
        }
    }

    /// A world whose session's folder lies in `place`.
    pub(crate) fn at(folder: tempfile::TempDir, place: &Path, shells: &[&str]) -> Self {
        let session = fresh_id();
        // A name that every command line and every script has to take as one.
        let work = folder.path().join("das werk, größer");
        std::fs::create_dir_all(&work).unwrap();
        let spec = SessionSpec {
            folder: place.join(session.as_str()),
            lock: place.join(format!("{session}.lock")),
            work: shells_of(shells),
            directory: work,
            environment: vec![
                ("PATH".into(), path_variable()),
                ("PROCTOR_SESSION".into(), session.as_str().into()),
                ("GREETING".into(), "hello".into()),
            ],
            secrets: Vec::new(),
            wall_limit: LIMIT,
            linger: Vec::new(),
            session,
        };
        Self { folder, spec }
    }

    pub(crate) fn with_limit(mut self, limit: Duration) -> Self {
        self.spec.wall_limit = limit;
        self
    }

    pub(crate) fn with_linger(mut self, program: &str) -> Self {
        self.spec.linger.push(program.to_owned());
        self
    }

    /// A path in the directory that the shells run in.
    pub(crate) fn work(&self, name: &str) -> PathBuf {
        self.spec.directory.join(name)
    }

    /// A file of the session.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.spec.folder.join(name)
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&std::fs::read(self.file(name)).unwrap()).into_owned()
    }

    pub(crate) fn start(&self) -> Attached {
        start(&self.spec, &host_program()).unwrap()
    }

    /// Another session in this world.
    pub(crate) fn next(&mut self, shells: &[&str]) {
        let place = self.spec.folder.parent().unwrap().to_owned();
        let session = fresh_id();
        self.spec.folder = place.join(session.as_str());
        self.spec.lock = place.join(format!("{session}.lock"));
        self.spec.work = shells_of(shells);
        self.spec.environment[1].1 = session.as_str().into();
        self.spec.session = session;
    }

    /// A host program of this world's own, whose hosts serve no other test.
    pub(crate) fn own_host_program(&self) -> PathBuf {
        let path = self.path().join("own-host");
        if !path.exists() {
            std::os::unix::fs::symlink(host_program(), &path).unwrap();
        }
        path
    }

    pub(crate) fn start_with_own_host(&self) -> Attached {
        start(&self.spec, &self.own_host_program()).unwrap()
    }

    pub(crate) fn find(&self) -> Result<Found, HostError> {
        find(&self.spec.folder, &self.spec.lock)
    }

    /// Runs the session to its end.
    pub(crate) fn run(&self) -> SessionReport {
        let mut attached = self.start();
        ended(wait(&mut attached))
    }

    /// The process whose pid a shell wrote into a file in its directory.
    pub(crate) fn process(&self, name: &str) -> ProcessIdentity {
        process_in(&self.work(name))
    }
}

/// The process whose pid, followed by a newline, is in this file, once it is.
pub(crate) fn process_in(path: &Path) -> ProcessIdentity {
    let read = || std::fs::read_to_string(path).ok().filter(|text| text.ends_with('\n')).and_then(|text| text.trim().parse::<u32>().ok());
    assert!(until(|| read().is_some()), "no pid in {}", path.display());
    ProcessIdentity::of(read().unwrap()).unwrap()
}

pub(crate) fn wait(attached: &mut Attached) -> Waited {
    let (silent, _writer) = pipe().unwrap();
    attached.wait(silent.as_fd(), &mut |_| {}).unwrap()
}

pub(crate) fn ended(waited: Waited) -> SessionReport {
    match waited {
        Waited::Ended(report) => report,
        Waited::Lost | Waited::Woken => panic!("{waited:?}"),
    }
}

pub(crate) fn live(found: Found) -> Attached {
    match found {
        Found::Live(attached) => attached,
        Found::Ended(_) | Found::Lost | Found::NeverStarted => panic!("{found:?}"),
    }
}

pub(crate) fn exit_codes(report: &SessionReport) -> Vec<i32> {
    report.shells.iter().map(|shell| shell.exit_code).collect()
}

/// The whole session went well, and printed this.
pub(crate) fn assert_printed(report: &SessionReport, stdout: &str) {
    assert_eq!((&report.end, report.stdout.text().as_str()), (&SessionEnd::Completed, stdout), "{report:?}");
}

/// Whether the process is gone, or is within the limit.
pub(crate) fn is_gone(identity: &ProcessIdentity) -> bool {
    until(|| !identity.is_alive())
}

pub(crate) fn bash(script: &str) -> Program {
    Program::new("bash").arg("-c").arg(script).env([("PATH", path_variable())])
}
