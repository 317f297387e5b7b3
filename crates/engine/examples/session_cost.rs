//! What a session costs beyond bash: `session_cost [HOST_PROGRAM [ROUNDS]]`, built with `--release`.
//!
//! Sessions and plain runs of bash alternate, so that both meet the same machine. The host's memory is that of an idle one, while
//! its shell waits.
#![allow(clippy::print_stdout, reason = "this program is run by hand")]

use std::ffi::OsString;
use std::io::{self, pipe};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

use proctor_domain::SessionId;
use proctor_engine::agent::{EngineKind, Opening};
use proctor_engine::{AgentRun, Attached, SessionSpec, SessionWork, Waited, start};
use proctor_process::Program;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args_os().skip(1);
    let beside = std::env::current_exe()?.with_file_name("session_host");
    let program = arguments.next().map_or(beside, PathBuf::from);
    let rounds: u64 = arguments.next().and_then(|text| text.into_string().ok()?.parse().ok()).unwrap_or(200);
    let folder = tempfile::tempdir()?;
    let bench = Bench { folder: folder.path(), program: &program };
    for shells in [1, 3] {
        let (mut bare, mut sessions, mut starts) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..rounds {
            bare.push(timed(|| (0..shells).try_for_each(|_| bench.bash()))?.0);
            let begun = Instant::now();
            let mut attached = bench.start(round * 10 + shells, &vec!["true"; usize::try_from(shells)?])?;
            starts.push(begun.elapsed().as_secs_f64() * 1e3);
            wait(&mut attached)?;
            sessions.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        let (bare, session, start) = (median(bare), median(sessions), median(starts));
        println!(
            "{shells} shell(s): bash alone {bare:.2} ms, session {session:.2} ms (start {start:.2}), overhead {:.2} ms",
            session - bare
        );
    }
    bench.memory()
}

struct Bench<'a> {
    folder: &'a Path,
    program: &'a Path,
}

impl Bench<'_> {
    fn environment() -> Vec<(OsString, OsString)> {
        vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())]
    }

    fn bash(&self) -> Outcome<()> {
        let script = self.folder.join("true.sh");
        if !script.exists() {
            std::fs::File::create(&script)?;
        }
        Program::new("bash").args(["-euo", "pipefail"]).arg(script).env(Self::environment()).run(None)?;
        Ok(())
    }

    fn start(&self, number: u64, shells: &[&str]) -> Outcome<Attached> {
        self.start_work(number, SessionWork::Shells(shells.iter().map(|shell| (*shell).to_owned()).collect()))
    }

    fn start_work(&self, number: u64, work: SessionWork) -> Outcome<Attached> {
        let session = SessionId::from_bits(number);
        let spec = SessionSpec {
            folder: self.folder.join(session.as_str()),
            lock: self.folder.join(format!("{session}.lock")),
            work,
            directory: self.folder.to_owned(),
            environment: Self::environment(),
            secrets: Vec::new(),
            wall_limit: std::time::Duration::from_secs(60),
            linger: Vec::new(),
            session,
        };
        Ok(start(&spec, self.program)?)
    }

    fn memory(&self) -> Outcome<()> {
        self.memory_of(u64::MAX, "shells-began", SessionWork::Shells(vec![waiting("shells-began")]))?;
        let lines = r#"for _ in $(seq 1000); do echo '{"type":"text","text":"It goes on."}'; done; "#;
        let agent = AgentRun {
            name: EngineKind::Scripted.engine_name(),
            engine: EngineKind::Scripted,
            argv: ["bash".to_owned(), "-c".to_owned(), format!("{lines}{}", waiting("agent-began"))].map(OsString::from).into(),
            again: Vec::new(),
            environment: Vec::new(),
            opening: Opening::default(),
            files: Vec::new(),
            silence_limit: std::time::Duration::from_secs(60),
            max_turns: None,
            max_cost: None,
        };
        self.memory_of(u64::MAX - 1, "agent-began", SessionWork::Agent(Box::new(agent)))
    }

    /// Of the host of this work, which makes the file `began` and waits.
    fn memory_of(&self, number: u64, began: &str, work: SessionWork) -> Outcome<()> {
        let mut attached = self.start_work(number, work)?;
        while !self.folder.join(began).exists() {
            std::thread::yield_now();
        }
        let pid = attached.host().map_or(0, |host| host.pid);
        let maps = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
        for line in maps.lines().filter(|line| ["Rss:", "Pss:", "Private_Dirty:"].iter().any(|name| line.starts_with(name))) {
            println!("{began}, host: {line}");
        }
        attached.interrupt();
        wait(&mut attached)
    }
}

fn waiting(file: &str) -> String {
    format!("touch {file}; sleep 1000")
}

fn wait(attached: &mut Attached) -> Outcome<()> {
    let (silent, _writer) = pipe()?;
    match attached.wait(silent.as_fd(), &mut |_| {})? {
        Waited::Ended(_) => Ok(()),
        Waited::Lost | Waited::Woken => Err(io::Error::other("the session was lost").into()),
    }
}

fn timed<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<(f64, T)> {
    let begun = Instant::now();
    let result = work()?;
    Ok((begun.elapsed().as_secs_f64() * 1e3, result))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
