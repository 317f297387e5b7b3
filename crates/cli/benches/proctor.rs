//! How long the program takes, each figure beside a baseline measured in the same run.
//!
//! `cargo bench -p proctor [-- steps|overhead|version|runs|host]`; with `PROCTOR_BENCH=smoke` a small size that only
//! shows that it works. What the figures mean and what they were: `docs/performance.md`.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints its figures and stops at the first surprise")]

use std::cell::RefCell;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proctor_domain::procedure::{Outcome, Records, RunEvent, RunStarted};
use proctor_domain::{Branch, Expiry, RepoPath, RunId, Timestamp};
use proctor_journal::{Journal, JournalStore};
use proctor_testkit::{World, wait_for};

/// How often a pair of measurements is repeated, and how large they are.
struct Size {
    pairs: usize,
    steps: usize,
    runs: u64,
}

type Bench = fn(&Size);

fn main() {
    let smoke = std::env::var("PROCTOR_BENCH").is_ok_and(|size| size == "smoke");
    let size = if smoke { Size { pairs: 1, steps: 3, runs: 100 } } else { Size { pairs: 7, steps: 100, runs: 10_000 } };
    let chosen: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let benches: [(&str, Bench); 5] = [("steps", steps), ("overhead", overhead), ("version", version), ("runs", runs), ("host", host)];
    for (name, bench) in benches {
        if chosen.is_empty() || chosen.iter().any(|choice| choice == name) {
            bench(&size);
        }
    }
}

fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_proctor"))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn timed(work: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    work();
    begin.elapsed()
}

/// Runs the two in turn, and gives the median of each and of the ratios, pair by pair, in milliseconds.
fn pairs(count: usize, mut ours: impl FnMut() -> Duration, mut baseline: impl FnMut() -> Duration) -> (f64, f64, f64) {
    let measured: Vec<(f64, f64)> = (0..count).map(|_| (ours().as_secs_f64() * 1e3, baseline().as_secs_f64() * 1e3)).collect();
    let ratios = measured.iter().map(|(ours, baseline)| ours / baseline).collect();
    let of = |pick: fn(&(f64, f64)) -> f64| median(measured.iter().map(pick).collect());
    (of(|pair| pair.0), of(|pair| pair.1), median(ratios))
}

/// A procedure with these keys and this bash script, in turn, each in a repository of its own.
///
/// The repositories are kept to the end: ext4 without a journal passes over inodes that were freed in the last minutes, one
/// by one, so that removing one repository would slow down the next one's files.
fn procedure_and_script(size: &Size, card: &str, script: &str) -> (f64, f64, f64) {
    let kept = RefCell::new(Vec::new());
    pairs(
        size.pairs,
        || {
            let world = world().with_card("bench", card);
            let time = timed(|| drop(world.proctor(&["--quiet", "procedure", "run", "bench"]).expect_code(0)));
            kept.borrow_mut().push(world);
            time
        },
        || {
            let world = world();
            let path = world.root().join("bench.sh");
            world.write(&path, script);
            let time = timed(|| drop(world.run("bash", &[path.to_str().unwrap()]).expect_code(0)));
            kept.borrow_mut().push(world);
            time
        },
    )
}

fn command(number: usize) -> String {
    format!("mkdir -p out; seq 1 200 | sort -r > out/{number}.txt")
}

fn check(number: usize) -> String {
    format!("test \"$(wc -l < out/{number}.txt)\" -eq 200")
}

/// A procedure of 100 steps against a bash script with the same commands, checks and commits.
fn steps(size: &Size) {
    let mut card = String::from("description: A bench\nsteps:\n");
    // The same durability for both: git is told to sync what it commits.
    let mut script = String::from("set -euo pipefail\ngit() { command git -c core.fsync=committed,reference \"$@\"; }\n");
    for number in 0..size.steps {
        let (run, validate) = (command(number), check(number));
        let _ =
            write!(card, "  - id: s{number}\n    run: {{shells: ['{run}']}}\n    validate: {{severity: abort, shells: ['{validate}']}}\n");
        let _ = write!(
            script,
            "bash -euo pipefail -c '{run}'\nbash -euo pipefail -c '{validate}'\ngit add -A\ngit commit -q -m 'Complete step: s{number}'\n"
        );
    }
    let (ours, baseline, ratio) = procedure_and_script(size, &card, &script);
    println!("steps: {} steps in {ours:.0} ms; the same by a bash script {baseline:.0} ms; ratio {ratio:.3} (at most 1.25)", size.steps);
}

/// What a step costs beyond git and bash: steps that change nothing, against a script that starts the same bash and
/// asks git for the same status.
fn overhead(size: &Size) {
    let mut card = String::from("description: A bench\nsteps:\n");
    let mut script = String::from("set -euo pipefail\n");
    for number in 0..size.steps {
        let _ = write!(card, "  - id: s{number}\n    run: {{shells: ['true']}}\n");
        script.push_str("bash -euo pipefail -c true\ngit status --porcelain=v2 --branch -z -uall >/dev/null\n");
    }
    let (ours, baseline, _) = procedure_and_script(size, &card, &script);
    let steps = f64::from(u32::try_from(size.steps).unwrap());
    let (ours, baseline) = (ours / steps, baseline / steps);
    println!("overhead: {ours:.2} ms a step, bash and git alone {baseline:.2} ms: {:.2} ms more (under 3 ms)", ours - baseline);
}

/// `proctor --version` against `/bin/true`.
fn version(size: &Size) {
    let world = world();
    let program = world.program().to_owned();
    let (ours, baseline, ratio) = pairs(
        size.pairs * 10,
        || timed(|| drop(world.run(&program, &["--version"]).expect_code(0))),
        || timed(|| drop(world.run("/bin/true", &[]).expect_code(0))),
    );
    println!("version: {ours:.2} ms; /bin/true {baseline:.2} ms; ratio {ratio:.2} (within 3)");
}

/// `proctor runs` over many runs, against `git log` over one commit: what any command of this kind costs.
fn runs(size: &Size) {
    let world = world().with_card("hello", "description: Hello\nsteps:\n  - id: a\n    run: {shells: ['true']}\n");
    drop(world.proctor(&["procedure", "run", "hello"]).expect_code(0));
    fill(&world, size.runs);
    let limit = size.runs.to_string();
    let (ours, baseline, ratio) = pairs(
        size.pairs * 3,
        || timed(|| drop(world.proctor(&["runs", "--limit", &limit]).expect_code(0))),
        || timed(|| drop(world.try_git(&["log", "-1"]).expect_code(0))),
    );
    println!("runs: {} runs listed in {ours:.1} ms (under 30 ms); git log {baseline:.1} ms; ratio {ratio:.2}", size.runs);
}

/// Puts ended runs into the world's journal.
fn fill(world: &World, count: u64) {
    let places: serde_json::Value = world.proctor(&["where", "--json"]).expect_code(0).json();
    let journal = PathBuf::from(places["journal"]["path"].as_str().unwrap());
    let mut journal = Journal::open(journal.parent().unwrap()).unwrap();
    for number in 0..count {
        let at = Timestamp(i64::try_from(number).unwrap() * 1_000);
        let started = RunEvent::Started(Box::new(started(&world.repository())));
        let ended = RunEvent::Ended { outcome: Outcome::Completed, expires: None, with_warnings: false };
        journal.append(&RunId::from_bits(number), 0, &[(at, started), (at, ended)]).unwrap();
    }
}

fn started(worktree: &Path) -> RunStarted {
    RunStarted {
        procedure: "hello".into(),
        card: RepoPath::new("proctor/procedures/hello.procedure.card"),
        snapshot: "0".repeat(64),
        steps: Vec::new(),
        records: Records::State,
        directive: None,
        inputs: std::collections::BTreeMap::new(),
        only: None,
        worktree: RepoPath::new(worktree.to_str().unwrap()),
        card_root: RepoPath::new(""),
        branch: Branch::Named("main".into()),
        head: None,
        folder: None,
        foreign: Vec::new(),
        foreign_snapshot: None,
        run_expiry: Expiry::Never,
        failed_run_expiry: Expiry::Never,
        isolated: None,
        engine: None,
    }
}

/// The memory of a host while its shell sleeps, against that shell's own.
fn host(_: &Size) {
    let world = world().with_card("wait", "description: Waits\nsteps:\n  - id: a\n    run: {shells: ['echo $PPID > \"$HOME/host\"; echo $$ > \"$HOME/shell\"; read -r _ < \"$HOME/gate\"']}\n");
    let gate = world.home().join("gate");
    drop(world.run("mkfifo", &[gate.to_str().unwrap()]).expect_code(0));
    let run = world.start(&["procedure", "run", "wait"]);
    let pid_file = world.home().join("shell");
    wait_for("the shell to start", Duration::from_secs(30), || std::fs::read_to_string(&pid_file).is_ok_and(|text| text.ends_with('\n')));
    let (host, shell) = (pss(&world.read(world.home().join("host"))), pss(&world.read(&pid_file)));
    world.write(&gate, "\n");
    drop(run.wait(Duration::from_secs(30)).expect_code(0));
    println!("host: {:.2} MiB PSS (under 6 MiB); its bash {:.2} MiB; ratio {:.2}", host, shell, host / shell);
}

/// The proportional set size of a process, in MiB.
fn pss(pid: &str) -> f64 {
    let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", pid.trim())).unwrap();
    let line = rollup.lines().find(|line| line.starts_with("Pss:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}
