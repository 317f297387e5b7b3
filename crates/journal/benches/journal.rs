//! How long the journal takes, each figure beside what the same work costs without it, measured in the same run.
//!
//! `cargo bench -p proctor-journal --bench journal [-- replay|list|append|open]`; with `PROCTOR_BENCH=smoke` a small size that only shows that it works.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints its figures and stops at the first surprise")]

use std::collections::BTreeMap;
use std::fs::File;
use std::hint::black_box;
use std::io::{Seek, SeekFrom, Write};
use std::time::{Duration, Instant};

use proctor_domain::procedure::{CommitPurpose, Outcome, Records, Run, RunEvent, RunStarted, Severity, StepId, StepPlan};
use proctor_domain::session::{Excerpt, Phase, SessionEnd, SessionReport, ShellEnd, Work};
use proctor_domain::{Branch, Expiry, Oid, RepoPath, RunId, SessionId, Timestamp};
use proctor_journal::{Journal, JournalStore, RunFilter};

type Stream = Vec<(Timestamp, RunEvent)>;

const STEPS: usize = 100;

fn main() {
    let smoke = std::env::var("PROCTOR_BENCH").is_ok_and(|size| size == "smoke");
    let (events, runs, appends, opens) = if smoke { (1_000, 100, 20, 5) } else { (100_000, 10_000, 500, 200) };
    let chosen: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |name: &str| chosen.is_empty() || chosen.iter().any(|choice| choice == name);
    if wanted("replay") {
        replay(events);
    }
    if wanted("list") {
        list(runs);
    }
    if wanted("append") {
        append(appends);
    }
    if wanted("open") {
        open(opens);
    }
}

fn oid(number: usize) -> Oid {
    Oid(format!("{number:040x}"))
}

fn step(number: usize) -> StepId {
    StepId::try_from(format!("step-{number}")).unwrap()
}

fn started() -> RunEvent {
    let plan = |number| StepPlan {
        id: step(number),
        phases: vec![Phase::Run, Phase::Validate],
        agents: 0,
        judged: false,
        approve: None,
        severity: Severity::Abort,
        retry: None,
    };
    RunEvent::Started(Box::new(RunStarted {
        procedure: "release-check".to_owned(),
        card: RepoPath::new("proctor/procedures/release-check.procedure.card"),
        snapshot: "0".repeat(64),
        steps: (0..STEPS).map(plan).collect(),
        records: Records::State,
        directive: None,
        inputs: BTreeMap::new(),
        only: None,
        worktree: RepoPath::new("/home/somebody/repository"),
        card_root: RepoPath::new(""),
        branch: Branch::Named("main".to_owned()),
        head: Some(oid(0)),
        folder: None,
        foreign: Vec::new(),
        foreign_snapshot: None,
        run_expiry: Expiry::Never,
        failed_run_expiry: Expiry::Never,
        isolated: None,
        engine: None,
    }))
}

fn report() -> Box<SessionReport> {
    Box::new(SessionReport {
        end: SessionEnd::Completed,
        shells: vec![ShellEnd { exit_code: 0, duration_ms: 12 }],
        stdout: Excerpt { head: "compiled 12 files\nall \"good\"\n".repeat(5), tail: String::new(), omitted: 0 },
        stderr: Excerpt::default(),
        outputs: BTreeMap::new(),
        output_error: None,
        ended_orphans: 0,
        lingering: Vec::new(),
        log_note: None,
        duration_ms: 15,
        agent: None,
        killed_by: None,
    })
}

/// What a run of [`STEPS`] steps that each run, check and commit leaves.
fn stream() -> Stream {
    let mut events = vec![started()];
    for number in 0..STEPS {
        events.push(RunEvent::StepBegan { step: step(number), baseline: Some(oid(number)) });
        for (offset, phase) in [(0, Phase::Run), (1, Phase::Validate)] {
            let session = SessionId::from_bits(u64::try_from(number * 2 + offset).unwrap());
            events.push(RunEvent::SessionOpened { session: session.clone(), phase, work: Work::Shells, evidence: None, known: Vec::new() });
            events.push(RunEvent::SessionEnded { session, report: report(), verdict: None });
        }
        events.push(RunEvent::Surveyed { changed: vec![RepoPath::new("src/lib.rs")], commits: Vec::new(), failure: None });
        events.push(RunEvent::CommitPlanned { purpose: CommitPurpose::Step(step(number)), parent: Some(oid(number)) });
        events.push(RunEvent::Committed { purpose: CommitPurpose::Step(step(number)), commit: oid(number + 1) });
    }
    events.push(RunEvent::Ended { outcome: Outcome::Completed, expires: None, with_warnings: false });
    events.into_iter().map(|event| (Timestamp(1_700_000_000_000), event)).collect()
}

/// The quickest of a few tries: what the work costs when nothing disturbs it.
fn quickest<T>(tries: usize, mut work: impl FnMut() -> T) -> Duration {
    (0..tries).map(|_| timed(&mut work)).min().unwrap_or_default()
}

fn timed<T>(mut work: impl FnMut() -> T) -> Duration {
    let start = Instant::now();
    black_box(work());
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn show(what: &str, measured: Duration, baseline_name: &str, baseline: Duration) {
    let ratio = measured.as_secs_f64() / baseline.as_secs_f64();
    println!("{what:<44} {measured:>12.3?}   {baseline_name:<40} {baseline:>12.3?}   ratio {ratio:.2}");
}

fn replay(wanted: usize) {
    let state = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(state.path()).unwrap();
    let events = stream();
    let count = wanted.div_ceil(events.len());
    let runs: Vec<RunId> = (0..u64::try_from(count).unwrap()).map(RunId::from_bits).collect();
    for run in &runs {
        journal.append(run, 0, &events).unwrap();
    }
    let bodies: Vec<String> = events.iter().map(|(_, event)| serde_json::to_string(event).unwrap()).collect();

    let baseline = quickest(5, || {
        for _ in &runs {
            for body in &bodies {
                black_box(serde_json::from_str::<RunEvent>(body).unwrap());
            }
        }
    });
    let measured = quickest(5, || {
        for run in &runs {
            let replayed = Run::replay(journal.read(run).unwrap()).unwrap().unwrap();
            assert_eq!(replayed.steps.len(), STEPS);
            black_box(replayed);
        }
    });

    show(&format!("replay of {} events", count * events.len()), measured, "serde_json on the same records", baseline);
}

fn list(count: u64) {
    let state = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(state.path()).unwrap();
    let ended = RunEvent::Ended { outcome: Outcome::Completed, expires: Some(Timestamp(1)), with_warnings: false };
    for bits in 0..count {
        journal.append(&RunId::from_bits(bits), 0, &[(Timestamp(1), started()), (Timestamp(2), ended.clone())]).unwrap();
    }
    drop(journal);

    let measured = quickest(10, || {
        let rows = Journal::open_read_only(state.path()).unwrap().runs(&RunFilter::default()).unwrap();
        assert_eq!(u64::try_from(rows.len()).unwrap(), count);
        rows
    });
    let path = state.path().join("journal.db");
    let baseline = quickest(10, || {
        let connection = rusqlite::Connection::open(&path).unwrap();
        let mut statement = connection.prepare("SELECT * FROM runs ORDER BY ordinal DESC").unwrap();
        let mut rows = statement.query([]).unwrap();
        let mut length = 0;
        while let Some(row) = rows.next().unwrap() {
            length += row.get_ref(2).unwrap().as_str().unwrap().len();
        }
        length
    });

    show(&format!("open and list {count} runs"), measured, "open and scan the same rows", baseline);
}

/// Pairs of an append and of what durability costs at least: the same two pages written in a row, and one sync.
fn append(count: usize) {
    let state = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(state.path()).unwrap();
    let run = RunId::from_bits(1);
    let events: Stream =
        stream().into_iter().cycle().skip(1).filter(|(_, event)| !matches!(event, RunEvent::Started(_))).take(count).collect();
    let mut version = journal.append(&run, 0, &[(Timestamp(1), started())]).unwrap();
    let mut raw = File::create(state.path().join("raw")).unwrap();
    let page = [0_u8; 2 * (4096 + 24)];
    let (mut measured, mut growing, mut settled) = (Vec::new(), Vec::new(), Vec::new());
    for event in events {
        measured.push(timed(|| version = journal.append(&run, version, std::slice::from_ref(&event)).unwrap()));
        growing.push(timed(|| raw.write_all(&page).and_then(|()| raw.sync_data()).unwrap()));
    }
    raw.seek(SeekFrom::Start(0)).unwrap();
    for _ in 0..count {
        settled.push(timed(|| raw.write_all(&page).and_then(|()| raw.sync_data()).unwrap()));
    }

    let measured = median(measured);
    show("append of one event", measured, "two pages and fdatasync, file grows", median(growing));
    show("append of one event", measured, "two pages and fdatasync, in place", median(settled));
}

fn open(count: usize) {
    let state = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(state.path()).unwrap();
    journal.append(&RunId::from_bits(1), 0, &stream()).unwrap();
    drop(journal);
    let path = state.path().join("journal.db");

    let measured = median((0..count).map(|_| timed(|| Journal::open(state.path()).unwrap())).collect());
    let baseline = median((0..count).map(|_| timed(|| std::fs::read(&path).unwrap())).collect());

    show("open and close", measured, "read the file", baseline);
}
