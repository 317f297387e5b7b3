//! Which runs `gc` removes, what it removes of them, and that it can be killed anywhere.

use std::collections::BTreeMap;
use std::fs;

use proctor_domain::procedure::{Outcome, Records, RunEvent, RunStarted};
use proctor_domain::retention::expiry_time;
use proctor_domain::{Branch, CardDuration, Clock, Expiry, Oid, RepoPath, RunId, Timestamp};
use proctor_journal::{Journal, JournalStore, RunFilter, SkippedRuns};
use proctor_orchestrator::SystemClock;
use proctor_testkit::{World, wait_for};
use serde_json::Value;

use crate::git_matrix::{hook, is_clean, made, steps};
use crate::procedures::{LIMIT, newest_run};
use crate::world;

const DAY: u64 = 24 * 3_600_000;

/// A run that ended some days ago.
pub(crate) struct Old {
    procedure: &'static str,
    days: u64,
    outcome: Outcome,
    expiry: Option<Expiry>,
}

pub(crate) const fn old(procedure: &'static str, days: u64, outcome: Outcome) -> Old {
    Old { procedure, days, outcome, expiry: None }
}

fn days_ago(days: u64) -> Timestamp {
    Timestamp(SystemClock.now().0 - i64::try_from(days * DAY).expect("days"))
}

/// A world that ran something, so that it has state.
pub(crate) fn ran() -> World {
    let world = world().with_card("real", &steps("state", &[("make", "date +%N > out.txt")]));
    let _ = world.proctor(&["procedure", "run", "real"]).expect_code(0);
    world
}

/// Writes old runs into the journal as their drivers would have; the ids in order.
pub(crate) fn record(world: &World, runs: &[Old]) -> Vec<String> {
    let mut journal = Journal::open(&world.state()).expect("the journal");
    let snapshot = journal.put_snapshot("---\nname: old\nsteps: []\n---\n").expect("a card");
    let head = Oid(world.git(&["rev-parse", "HEAD"]));
    let mut ids = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let id = RunId::from_bits(0x5eed + u64::try_from(number).expect("a number"));
        let keep = |outcome| {
            if matches!(outcome, Outcome::Completed | Outcome::Skipped) { CardDuration::days(30) } else { CardDuration::days(90) }
        };
        let expiry = run.expiry.unwrap_or(Expiry::After(keep(run.outcome)));
        let at = days_ago(run.days);
        let started = RunStarted {
            procedure: run.procedure.to_owned(),
            card: RepoPath::new(*b"proctor/procedures/old.procedure.card"),
            snapshot: snapshot.clone(),
            steps: Vec::new(),
            records: Records::State,
            directive: None,
            inputs: BTreeMap::new(),
            only: None,
            worktree: RepoPath::new(world.repository().to_str().expect("UTF-8")),
            card_root: RepoPath::new(*b""),
            branch: Branch::Named("main".to_owned()),
            head: Some(head.clone()),
            folder: None,
            foreign: Vec::new(),
            foreign_snapshot: None,
            run_expiry: expiry,
            failed_run_expiry: expiry,
            isolated: None,
            engine: None,
        };
        let ended = RunEvent::Ended { outcome: run.outcome, expires: expiry_time(at, expiry), with_warnings: false };
        journal.append(&id, 0, &[(at, RunEvent::Started(Box::new(started))), (at, ended)]).expect("recorded");
        ids.push(id.to_string());
    }
    ids
}

/// What gc says of each run.
fn decided(collected: &Value) -> BTreeMap<String, String> {
    let list = |key: &str| collected[key].as_array().expect("a list").clone();
    let removed = list("removed").into_iter().map(|run| (run, "removed "));
    let all = removed.chain(list("kept").into_iter().map(|run| (run, "kept ")));
    all.map(|(run, word)| (run["run"].as_str().expect("an id").to_owned(), format!("{word}{}", run["reason"].as_str().expect("a reason"))))
        .collect()
}

fn listed(world: &World) -> Vec<String> {
    let journal = Journal::open_read_only(&world.state()).expect("the journal");
    let rows = journal.runs(&RunFilter { skipped: SkippedRuns::Shown, ..RunFilter::default() }).expect("runs");
    rows.into_iter().map(|row| row.run.to_string()).collect()
}

pub(crate) fn gc(world: &World) -> BTreeMap<String, String> {
    decided(&world.proctor(&["procedure", "gc", "--json"]).expect_code(0).json())
}

#[test]
fn completed_runs_go_after_30_days_and_others_after_90_unless_their_cards_say_otherwise() {
    let world = ran();
    let never = Old { expiry: Some(Expiry::Never), ..old("a", 4_000, Outcome::Completed) };
    let soon = Old { expiry: Some(Expiry::After(CardDuration::days(1))), ..old("a", 2, Outcome::Failed) };
    let runs = record(
        &world,
        &[
            old("a", 0, Outcome::Completed),
            old("a", 29, Outcome::Completed),
            old("a", 31, Outcome::Completed),
            old("a", 31, Outcome::Skipped),
            old("a", 89, Outcome::Failed),
            old("a", 91, Outcome::Failed),
            old("a", 89, Outcome::Inconclusive),
            old("a", 91, Outcome::Inconclusive),
            never,
            soon,
            // The newest of its procedure, however old.
            old("b", 4_000, Outcome::Failed),
            old("b", 4_001, Outcome::Failed),
        ],
    );

    let planned = decided(&world.proctor(&["procedure", "gc", "--dry-run", "--json"]).expect_code(0).json());
    let kept = listed(&world).len();
    let done = gc(&world);

    let words: Vec<&str> = runs.iter().map(|run| done[run].as_str()).collect();
    assert_eq!(
        words,
        [
            "kept newest",
            "kept not-due",
            "removed expired",
            "removed expired",
            "kept not-due",
            "removed expired",
            "kept not-due",
            "removed expired",
            "kept pinned",
            "removed expired",
            "kept newest",
            "removed expired",
        ]
    );
    assert_eq!(planned, done);
    assert_eq!((kept, listed(&world).len()), (13, 7));
    // And nothing more comes of a second time.
    assert!(gc(&world).values().all(|word| word.starts_with("kept")));
}

#[test]
fn no_procedure_keeps_more_than_100_runs() {
    let world = ran();
    let mut runs: Vec<Old> = (0..103).map(|number| old("busy", number / 5, Outcome::Completed)).collect();
    runs[101].expiry = Some(Expiry::Never);
    let ids = record(&world, &runs);

    let done = gc(&world);

    let removed: Vec<&String> = ids.iter().filter(|run| done[*run].starts_with("removed")).collect();
    assert_eq!(removed.len(), 2, "{done:?}");
    assert!(removed.iter().all(|run| done[*run] == "removed too-many"));
    assert_eq!(done[&ids[101]], "kept pinned");
    assert_eq!(listed(&world).len(), 102);
}

#[test]
fn a_run_with_a_living_driver_or_host_is_kept_and_a_pin_is_refused() {
    let world = world().with_card("waits", &format!("run-expiry: 0s\n{}", crate::procedures::WAITS));
    let driver = crate::procedures::start_waiting(&world, &["procedure", "run", "waits"]);
    let run = newest_run(&world);
    record(&world, &[old("waits", 0, Outcome::Completed)]);

    let with_driver = gc(&world);
    let _ = driver.kill();
    let with_host = gc(&world);

    assert_eq!((with_driver[&run].as_str(), with_host[&run].as_str()), ("kept running", "kept running"));
    crate::procedures::let_go(&world);
    let _ = world.proctor(&["procedure", "resume", &run]).expect_code(0);
}

#[test]
fn what_an_interrupted_run_saved_stays_until_its_time() {
    let world = ran();
    let mut journal = Journal::open(&world.state()).expect("the journal");
    drop(record(&world, &[old("a", 1, Outcome::Completed)]));
    let row = journal.runs(&RunFilter { skipped: SkippedRuns::Shown, ..RunFilter::default() }).expect("runs");
    let row = row.into_iter().find(|row| row.procedure == "a").expect("the run");
    let events = journal.read(&row.run).expect("its events");
    // The same start, 100 and 80 days ago, and no end.
    for (bits, days) in [(1, 100), (2, 80)] {
        journal.append(&RunId::from_bits(bits), 0, &[(days_ago(days), events[0].1.clone())]).expect("recorded");
    }
    drop(journal);

    let done = gc(&world);

    assert_eq!(done[RunId::from_bits(1).as_str()], "removed expired");
    assert_eq!(done[RunId::from_bits(2).as_str()], "kept not-due");
}

/// Runs of records in git that may be removed at once.
fn in_git(count: usize) -> World {
    let world = world().with_card("work", &format!("run-expiry: 0s\n{}", steps("git", &[("make", "date +%N > out.txt")])));
    for _ in 0..count {
        let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);
    }
    world
}

fn folder_of(world: &World, run: &str) -> String {
    world.proctor(&["show", run, "--json"]).json()["folder"].as_str().expect("a folder").to_owned()
}

#[test]
fn in_git_gc_is_one_commit_that_takes_the_folders_and_nothing_else() {
    let world = in_git(3);
    let runs = listed(&world);
    let gone = [folder_of(&world, &runs[1]), folder_of(&world, &runs[2])];
    let before = world.git(&["rev-parse", "HEAD"]);
    hook(&world, "pre-commit", "exit 1");
    // What the user has at hand is left alone.
    world.write("README.md", "the user's\n");
    world.write("staged", "the user's\n");
    world.git(&["add", "staged"]);

    let dry = world.proctor(&["procedure", "gc", "--dry-run"]).expect_code(0);
    assert_eq!(dry.stdout.lines().count(), 2, "{dry}");
    assert_eq!(world.git(&["rev-parse", "HEAD"]), before);
    let _ = world.proctor(&["procedure", "gc"]).expect_code(0);

    assert_eq!(world.git(&["log", "--format=%s", &format!("{before}..HEAD")]), "GC procedure runs: removed 2 expired run dir(s)");
    assert_eq!(world.git(&["log", "-1", "--format=%(trailers:only,unfold)"]).trim(), "Commit-Source: procedure-gc");
    let changed = world.git(&["show", "--format=", "--name-status", "--no-renames", "HEAD"]);
    let mut expected: Vec<String> = gone.iter().map(|folder| format!("D\t{folder}/run.procedure-run.card")).collect();
    expected.sort();
    assert_eq!(changed.lines().collect::<Vec<_>>(), expected);
    assert_eq!(world.git(&["status", "--porcelain"]), " M README.md\nA  staged");
    assert!(!world.has(&gone[0]) && !world.has(&gone[1]));
    assert_eq!(listed(&world), [runs[0].as_str()]);
}

#[test]
fn an_edited_expires_is_honoured_whatever_it_says() {
    let world = in_git(4);
    let runs = listed(&world);
    let card = |run: &str| format!("{}/run.procedure-run.card", folder_of(&world, run));
    let edit = |run: &str, value: &str| {
        let path = card(run);
        let text = world.read(&path);
        let line = text.lines().find(|line| line.starts_with("expires:")).expect("its line").to_owned();
        world.write(&path, text.replace(&line, &format!("expires: {value}")));
    };
    edit(&runs[1], "never");
    edit(&runs[2], "2999-01-01");
    edit(&runs[3], "when pigs fly");
    world.commit_all("Keep some");

    let output = world.proctor(&["procedure", "gc", "--json"]).expect_code(0);

    let done = decided(&output.json());
    let words: Vec<&str> = runs.iter().map(|run| done[run].as_str()).collect();
    assert_eq!(words, ["kept newest", "kept pinned", "kept not-due", "kept unreadable"]);
    assert!(output.stderr.contains("expires: when pigs fly"), "{output}");
}

#[test]
fn a_pin_and_its_end_are_one_commit_each_and_only_of_that_line() {
    let world = in_git(2);
    let run = listed(&world)[1].clone();
    hook(&world, "pre-commit", "exit 1");

    for (verb, subject) in [("pin", "Pin procedure run: "), ("unpin", "Unpin procedure run: ")] {
        let before = world.commits().len();
        let _ = world.proctor(&["procedure", verb, &run]).expect_code(0);
        // The second time there is nothing to do.
        let _ = world.proctor(&["procedure", verb, &run]).expect_code(0);

        assert_eq!(world.commits()[before..], [format!("{subject}{run}")]);
        assert_eq!(world.git(&["show", "--format=", "--numstat", "HEAD"]).split('\t').take(2).collect::<Vec<_>>(), ["1", "1"]);
        let pinned = gc(&world);
        assert_eq!(pinned[&run], if verb == "pin" { "kept pinned" } else { "removed expired" });
    }
    assert!(is_clean(&world));
}

#[test]
fn gc_removes_sessions_locks_logs_and_references_of_a_run() {
    let world = world().with_card("work", &format!("failed-run-expiry: 0s\n{}", steps("git", &[("make", "date +%N > out.txt; exit 1")])));
    world.write("foreign", "saved by the runs\n");
    for _ in 0..2 {
        let _ = world.proctor(&["procedure", "run", "work", "--allow-dirty"]).expect_code(1);
    }
    let runs = listed(&world);
    let files = |run: &str| {
        let found = world
            .run("bash", &["-c", &format!("grep -rl {run} '{0}/sessions' ; ls '{0}'/*/{run}* 2>/dev/null; true", world.state().display())]);
        found.stdout.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let refs = |run: &str| world.git(&["for-each-ref", "--format=%(refname)", &format!("refs/proctor/salvage/{run}/")]).lines().count();
    assert!(!files(&runs[1]).is_empty());
    assert!(refs(&runs[0]) > 0 && refs(&runs[1]) > 0);

    let _ = world.proctor(&["procedure", "gc"]).expect_code(0);

    assert_eq!(files(&runs[1]), [""; 0]);
    assert_eq!(refs(&runs[1]), 0);
    assert!(!files(&runs[0]).is_empty() && refs(&runs[0]) > 0);
    assert_eq!(world.git(&["for-each-ref", "--format=%(refname)"]).lines().filter(|name| name.contains(&runs[1])).count(), 0);
}

#[test]
fn gc_that_is_killed_is_finished_by_the_next_one() {
    // In its commit, where a hook that even bookkeeping runs lets us in.
    let world = in_git(3);
    let runs = listed(&world);
    hook(&world, "prepare-commit-msg", crate::git_matrix::WAIT);
    let collecting = crate::procedures::start_waiting(&world, &["procedure", "gc"]);
    crate::procedures::kill_all(&world, collecting);
    crate::procedures::let_go(&world);
    fs::remove_file(world.repository().join(".git/hooks/prepare-commit-msg")).expect("the hook");

    // Whose lock it is, nobody can know: gc is in no run's record.
    let refused = world.proctor(&["procedure", "gc"]).expect_code(4);
    let rm = refused.stderr.lines().find_map(|line| line.strip_prefix("hint: ")).expect("a hint").to_owned();
    assert!(rm.starts_with("rm '"), "{refused}");
    let _ = world.run("bash", &["-c", &rm]).expect_code(0);
    let _ = world.proctor(&["procedure", "gc"]).expect_code(0);

    assert_eq!(listed(&world), [runs[0].as_str()]);
    assert!(is_clean(&world), "{}", world.git(&["status", "--short"]));
    assert_eq!(made(&world).iter().filter(|subject| subject.starts_with("GC ")).count(), 1);
}

#[test]
fn gc_that_loses_its_driver_alone_is_finished_by_the_next_one() {
    let world = in_git(3);
    let runs = listed(&world);
    hook(&world, "prepare-commit-msg", crate::git_matrix::WAIT);
    let _ = crate::procedures::start_waiting(&world, &["procedure", "gc"]).kill();
    crate::procedures::let_go(&world);
    wait_for("its git has ended", LIMIT, || made(&world).iter().any(|subject| subject.starts_with("GC ")) && !world.has(".git/index.lock"));

    let _ = world.proctor(&["procedure", "gc"]).expect_code(0);

    assert_eq!(listed(&world), [runs[0].as_str()]);
    assert!(is_clean(&world), "{}", world.git(&["status", "--short"]));
    assert_eq!(made(&world).iter().filter(|subject| subject.starts_with("GC ")).count(), 1);
}

#[test]
fn a_refused_commit_of_bookkeeping_is_told_and_made_up_for() {
    let world = in_git(2);
    let run = listed(&world)[1].clone();
    for arguments in [&["procedure", "pin", &run][..], &["procedure", "unpin", &run], &["procedure", "gc"]] {
        hook(&world, "prepare-commit-msg", "echo 'not today' >&2; exit 1");
        let before = world.commits().len();

        let refused = world.proctor(arguments).expect_code(1);

        assert!(refused.stderr.contains("not today") && refused.stderr.contains("then give this command again"), "{refused}");
        assert_eq!(world.commits().len(), before);
        fs::remove_file(world.repository().join(".git/hooks/prepare-commit-msg")).expect("the hook");
        let _ = world.proctor(arguments).expect_code(0);
        assert_eq!(world.commits().len(), before + 1, "{arguments:?}");
        assert!(is_clean(&world));
    }
    assert_eq!(listed(&world).len(), 1);
}
