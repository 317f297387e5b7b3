//! What the session host adds to an agent, each figure beside a baseline measured in the same run.
//!
//! `cargo bench -p proctor --bench agents [-- sessions|events|turn|memory]`; with `PROCTOR_BENCH=smoke` a small size that only
//! shows that it works. What the figures mean and what they were: `docs/performance.md`.
#![expect(clippy::print_stdout, clippy::unwrap_used, clippy::panic, reason = "a bench prints its figures and stops at the first surprise")]

use std::cell::Cell;
use std::ffi::OsString;
use std::io::pipe;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use proctor_domain::SessionId;
use proctor_domain::session::{SessionEnd, SessionReport};
use proctor_engine::agent::{Access, AgentTask, EngineKind, EngineSetup, Input, Permission, engine};
use proctor_engine::{AgentPlace, AgentRun, Attached, SessionSpec, SessionWork, TRANSCRIPT, Waited, agent_files, start};
use proctor_process::durable::{self, Durability};
use proctor_process::{Program, Stdin};
use proctor_testkit::{loopback, wait_for};

const LIMIT: Duration = Duration::from_secs(300);

/// How often a pair of measurements is repeated, and how large they are.
struct Size {
    pairs: usize,
    sessions: usize,
    turns: u32,
}

type Bench = fn(&Size);

fn main() {
    let smoke = std::env::var("PROCTOR_BENCH").is_ok_and(|size| size == "smoke");
    let size = if smoke { Size { pairs: 1, sessions: 8, turns: 3 } } else { Size { pairs: 15, sessions: 64, turns: 50 } };
    let chosen: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let benches: [(&str, Bench); 4] = [("sessions", sessions), ("events", events), ("turn", turn), ("memory", memory)];
    for (name, bench) in benches {
        if chosen.is_empty() || chosen.iter().any(|choice| choice == name) {
            bench(&size);
        }
    }
}

/// An engine and a place to use it.
struct Ground {
    folder: tempfile::TempDir,
    setup: EngineSetup,
    environment: Vec<(OsString, OsString)>,
    started: Cell<u64>,
}

impl Ground {
    fn new(kind: EngineKind, program: PathBuf) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "work", "conversations"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let setup = EngineSetup { program, permission: Permission::Bypass, ..EngineSetup::usual(kind) };
        let environment =
            vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default()), ("HOME".into(), folder.path().join("home").into())];
        Self { folder, setup, environment, started: Cell::new(0) }
    }

    fn scripted(turns: &str) -> Self {
        let mut ground = Self::new(EngineKind::Scripted, proctor());
        let script = ground.path("agent.toml");
        durable::write(&script, format!("[default]\nturn = [{turns}]\n").as_bytes(), Durability::Renamed).unwrap();
        ground.setup.script = Some(script);
        ground
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn session_folder(&self, number: u64) -> PathBuf {
        self.path(SessionId::from_bits(number).as_str())
    }

    /// The agent of the session with this number.
    fn run(&self, number: u64) -> AgentRun {
        let files = agent_files(&self.session_folder(number), &self.path("conversations"));
        let place = AgentPlace { directory: &self.path("work"), silence_limit: LIMIT };
        AgentRun::new(&self.setup, &task(), &files, &|_| None, place)
    }

    fn start(&self) -> (u64, Attached) {
        self.start_as(|_| {})
    }

    /// Starts a session whose agent is changed first.
    fn start_as(&self, change: impl FnOnce(&mut AgentRun)) -> (u64, Attached) {
        let number = self.started.replace(self.started.get() + 1);
        let session = SessionId::from_bits(number);
        let mut run = self.run(number);
        change(&mut run);
        let spec = SessionSpec {
            folder: self.session_folder(number),
            lock: self.path(&format!("{session}.lock")),
            environment: self.environment.clone(),
            work: SessionWork::Agent(Box::new(run)),
            directory: self.path("work"),
            secrets: Vec::new(),
            wall_limit: LIMIT,
            linger: Vec::new(),
            session,
        };
        (number, start(&spec, &proctor()).unwrap())
    }

    /// The program as a person would start it, with the files of the session with this number.
    fn by_hand(&self, number: u64) -> Program {
        let run = self.run(number);
        let input = match run.opening.input {
            Input::Prompt => task().prompt.into_bytes(),
            Input::Spoken => engine(self.setup.kind).reader(&run.opening).take_words(),
        };
        Program::new(&run.argv[0])
            .args(&run.argv[1..])
            .dir(self.path("work"))
            .env(self.environment.iter().cloned())
            .env(run.environment)
            .stdin(Stdin::Bytes(input))
    }
}

fn proctor() -> PathBuf {
    env!("CARGO_BIN_EXE_proctor").into()
}

fn task() -> AgentTask {
    AgentTask {
        system: "You are measured.".to_owned(),
        prompt: "Say something.".to_owned(),
        resume: None,
        model: None,
        schema: None,
        max_turns: None,
        max_cost: None,
        access: Access::Full,
    }
}

fn ended(mut attached: Attached) -> SessionReport {
    let (silent, _writer) = pipe().unwrap();
    match attached.wait(silent.as_fd(), &mut |_| {}).unwrap() {
        Waited::Ended(report) if report.end == SessionEnd::Completed => report,
        other @ (Waited::Ended(_) | Waited::Lost | Waited::Woken) => panic!("{other:?}"),
    }
}

fn timed(work: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    work();
    begin.elapsed().as_secs_f64() * 1e3
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs the two in turn, each first every other time; the medians of both and of the differences, in milliseconds.
fn pairs(count: usize, mut ours: impl FnMut() -> f64, mut by_hand: impl FnMut() -> f64) -> (f64, f64, f64) {
    let mut measured = Vec::new();
    for number in 0..count {
        let (first, second);
        if number % 2 == 0 {
            first = ours();
            second = by_hand();
        } else {
            second = by_hand();
            first = ours();
        }
        measured.push((first, second));
    }
    let of = |pick: fn(&(f64, f64)) -> f64| median(measured.iter().map(pick).collect());
    (of(|pair| pair.0), of(|pair| pair.1), of(|pair| pair.0 - pair.1))
}

/// Many scripted agents at once, each under a host of its own, against the same agents without hosts. Every turn of every one
/// of them has to be in its report and in its transcript.
fn sessions(size: &Size) {
    let turns = vec!["{ do = [{ say = 'It goes on.' }] }"; size.turns as usize].join(", ");
    let ground = Ground::scripted(&turns);
    let lost = Cell::new(0);
    let (ours, baseline, _) = pairs(
        (size.pairs / 5).max(1),
        || {
            timed(|| {
                let started: Vec<_> = (0..size.sessions).map(|_| ground.start()).collect();
                for (number, attached) in started {
                    let counted = ended(attached).agent.unwrap().turns;
                    let kept = lines(&ground.session_folder(number).join(TRANSCRIPT));
                    lost.set(lost.get() + (size.turns - counted) + (2 * size.turns + 2 - kept));
                }
            })
        },
        || {
            timed(|| {
                let programs = (0..size.sessions).map(|_| ground.by_hand(0));
                let running: Vec<_> = programs.map(|program| thread::spawn(move || assert!(succeeds(program)))).collect();
                running.into_iter().for_each(|one| one.join().unwrap());
            })
        },
    );
    println!(
        "sessions: {} at once, {} turns each, {} turns or lines lost: {ours:.0} ms; without hosts {baseline:.0} ms; ratio {:.2}",
        size.sessions,
        size.turns,
        lost.get(),
        ours / baseline
    );
    assert_eq!(lost.get(), 0);
}

/// Many agents at once that each say a hundred things a second: no line may be lost, and all hosts and this driver together
/// may use no more processor time than one processor has in that time.
fn events(size: &Size) {
    let seconds = if size.pairs > 1 { 10 } else { 1 };
    // `read` waits without a process of its own.
    let agent = format!(
        "exec 3<> <(:); echo '{STARTED}'; for _ in $(seq {}); do echo '{TURN}'; read -t 0.01 -u 3; done; \
         echo >> said; until [ -e go ]; do read -t 0.05 -u 3; done; echo '{DONE}'",
        seconds * 100
    );
    let ground = Ground::scripted("{}");
    let own = own_processor_time();
    let begin = Instant::now();
    let started: Vec<_> =
        (0..size.sessions).map(|_| ground.start_as(|run| run.argv = ["bash", "-c", &agent].map(OsString::from).into())).collect();
    let said = ground.path("work/said");
    wait_for("all agents to have said it", LIMIT, || said.exists() && lines(&said) as usize == size.sessions);
    let wall = begin.elapsed().as_secs_f64();
    // Hosts are gone when their sessions are.
    let hosts: f64 = started.iter().map(|(_, attached)| processor_time(attached.host().unwrap().pid)).sum();
    let used = hosts + own_processor_time() - own;
    durable::write(&ground.path("work/go"), b"", Durability::Renamed).unwrap();
    let mut lost = 0;
    for (number, attached) in started {
        lost += 100 * seconds - ended(attached).agent.unwrap().turns;
        lost += 100 * seconds + 2 - lines(&ground.session_folder(number).join(TRANSCRIPT));
    }
    println!(
        "events: {} agents at once, 100 a second each, {lost} lines lost: {wall:.1} s, in which hosts and driver used {used:.2} s of processor time; ratio {:.2}",
        size.sessions,
        used / wall
    );
    assert_eq!(lost, 0);
}

const STARTED: &str = r#"{"type":"started","conversation":"c-1","model":"m"}"#;
const TURN: &str = r#"{"type":"turn","usage":{"input":1,"output":2,"cache_read":0,"cache_write":0},"cost":"unknown"}"#;
const DONE: &str = r#"{"type":"result","stop":"done"}"#;

/// What the kernel tells of processor time is in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

fn own_processor_time() -> f64 {
    processor_time(std::process::id())
}

/// Seconds that a process has used of processors, itself and in the kernel, without its children.
fn processor_time(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: f64 = fields[11..13].iter().map(|field| field.parse::<f64>().unwrap()).sum();
    ticks / TICKS_PER_SECOND
}

fn succeeds(program: Program) -> bool {
    program.run(Some(LIMIT)).unwrap().status.code == Some(0)
}

fn lines(path: &Path) -> u32 {
    let count = std::fs::read_to_string(path).unwrap().lines().count();
    u32::try_from(count).unwrap()
}

/// One turn of the real Claude Code under a host, against the same arguments by hand and the same model.
fn turn(size: &Size) {
    let Some(program) = proctor_testkit::claude() else { return };
    let model = loopback("[default]\nturn = [{ text = 'It is done.' }]\n");
    let mut ground = Ground::new(EngineKind::Claude, program);
    ground.environment.push(("ANTHROPIC_BASE_URL".into(), model.url().into()));
    ground.environment.push(("ANTHROPIC_API_KEY".into(), "dummy".into()));
    // Its first start in a home makes its files there; and this is the session whose files the program by hand reads.
    drop(ended(ground.start().1));
    let (ours, baseline, more) =
        pairs(size.pairs * 2, || timed(|| drop(ended(ground.start().1))), || timed(|| assert!(succeeds(ground.by_hand(0)))));
    println!("turn: {ours:.0} ms; the same by hand {baseline:.0} ms; {more:.1} ms more (within 30 ms)");
}

/// The memory of a host while its agent waits, having said much, against the agent's own.
fn memory(_: &Size) {
    let ground = Ground::scripted(
        "{ do = [{ run = 'seq 20000' }, { huge-line = 4 }, { run = 'echo $PPID > agent' }, { say = 'So much.' }, { wait = { file = 'go' } }] }",
    );
    let (number, attached) = ground.start();
    let transcript = ground.session_folder(number).join("transcript.jsonl");
    // What was said after the long line is there when the host is done with that.
    wait_for("the agent to wait", LIMIT, || std::fs::read_to_string(&transcript).is_ok_and(|text| text.contains("So much.")));
    let agent = std::fs::read_to_string(ground.path("work/agent")).unwrap();
    let (host, agent) = (pss(&attached.host().unwrap().pid.to_string()), pss(&agent));
    durable::write(&ground.path("work/go"), b"", Durability::Renamed).unwrap();
    drop(ended(attached));
    println!("memory: host of an agent {host:.2} MiB PSS; the scripted agent itself {agent:.2} MiB");
}

/// The proportional set size of a process, in MiB.
fn pss(pid: &str) -> f64 {
    let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", pid.trim())).unwrap();
    let line = rollup.lines().find(|line| line.starts_with("Pss:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}
