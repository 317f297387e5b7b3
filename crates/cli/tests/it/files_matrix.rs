//! Disks that are full, read-only or taken away; damaged and newer journals; files and output of every size.

use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proctor_testkit::{Output, World, wait_for};

use crate::git_matrix::{WAIT, end_within_memory, is_clean, made, steps};
use crate::procedures::{LIMIT, kill_all, let_go, newest_run, start_waiting};
use crate::world;

/// A small file system of its own, unmounted at the end.
struct Disk<'w> {
    world: &'w World,
    path: PathBuf,
}

impl<'w> Disk<'w> {
    /// `None`, and a word about it, where this user may not mount.
    #[allow(clippy::print_stderr, reason = "whoever reads the test's output has to know what it did not show")]
    fn mount(world: &'w World, path: PathBuf, size: &str) -> Option<Self> {
        fs::create_dir_all(&path).expect("a place for it");
        let mounted =
            world.run_in("..", "mount", &["-t", "tmpfs", "-o", &format!("mode=700,size={size}"), "none", path.to_str().expect("UTF-8")]);
        if mounted.code != Some(0) {
            eprintln!("skipped: this user may not mount a small disk");
            return None;
        }
        Some(Self { world, path })
    }

    /// The one that the state lies on.
    fn of_state(world: &'w World, size: &str) -> Option<Self> {
        Self::mount(world, world.home().join(".local/state"), size)
    }

    fn fill(&self) {
        let _ = self.world.run_in("..", "bash", &["-c", &format!("cat /dev/zero > '{}/fill' 2>/dev/null; true", self.path.display())]);
    }

    fn free(&self) {
        let _ = fs::remove_file(self.path.join("fill"));
    }

    fn remount(&self, how: &str) {
        let path = self.path.to_str().expect("UTF-8");
        let _ = self.world.run_in("..", "mount", &["-o", &format!("remount,{how}"), path]).expect_code(0);
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let _ = self.world.run_in("..", "umount", &["-l", self.path.to_str().expect("UTF-8")]);
    }
}

/// A shell text that fills the disk that a folder lies on.
fn filling(folder: &Path) -> String {
    format!("cat /dev/zero > '{}/fill' 2>/dev/null || true", folder.display())
}

fn says_full(output: &Output) -> bool {
    ["disk is full", "No space left on device", "no space left"].iter().any(|words| output.stderr.contains(words))
}

fn no_panic(output: &Output) {
    assert!(output.signal.is_none() && !output.stderr.contains("panicked"), "{output}");
}

fn nothing_is_left_running(world: &World) {
    wait_for("nothing runs any more", LIMIT, || world.leftovers().is_empty());
}

const TWO: [(&str, &str); 2] = [("one", "echo one > out.txt"), ("two", "echo two >> out.txt")];

fn expected(records: &str) -> Vec<&'static str> {
    let steps = ["[procedure] Complete step: one", "[procedure] Complete step: two"];
    match records {
        "git" => vec!["Start procedure: work", steps[0], steps[1], "Complete procedure: work"],
        _ => steps.to_vec(),
    }
}

// --- a full disk

#[test]
fn a_state_disk_that_is_full_before_a_run_stops_it_and_a_freed_one_lets_it_run() {
    for first in [true, false] {
        let world = world().with_card("work", &steps("git", &TWO)).with_card("other", &steps("state", &[("look", "true")]));
        let Some(disk) = Disk::of_state(&world, "4m") else { return };
        if !first {
            let _ = world.proctor(&["procedure", "run", "other"]).expect_code(0);
        }
        disk.fill();

        let stopped = world.proctor(&["procedure", "run", "work"]);

        no_panic(&stopped);
        assert_eq!(stopped.code, Some(1), "{stopped}");
        assert!(says_full(&stopped) && stopped.stderr.contains("hint: "), "{stopped}");
        disk.free();
        nothing_is_left_running(&world);
        // It either never became a run or is one that can be resumed.
        if world.proctor(&["procedure", "resume"]).code != Some(0) {
            let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);
        }
        assert_eq!(made(&world).into_iter().filter(|subject| !subject.starts_with("Add ")).collect::<Vec<_>>(), expected("git"));
        assert!(is_clean(&world));
    }
}

#[test]
fn a_state_disk_that_fills_up_during_a_run_stops_it_and_a_resume_ends_it_right() {
    for (records, step) in [("state", 0), ("state", 1), ("git", 0), ("git", 1)] {
        let world = world();
        let state = world.home().join(".local/state");
        let mut both = TWO.map(|(id, shell)| (id, shell.to_owned()));
        both[step].1 = format!("test -e ../freed || {{ {}; }}; {}", filling(&state), TWO[step].1);
        let world = world.with_card("work", &steps(records, &both.each_ref().map(|(id, shell)| (*id, shell.as_str()))));
        let Some(disk) = Disk::of_state(&world, "4m") else { return };

        let stopped = world.proctor(&["procedure", "run", "work"]);

        no_panic(&stopped);
        assert_ne!(stopped.code, Some(0), "{records} {step}: the disk is full: {stopped}");
        assert!(says_full(&stopped), "{records} {step}: {stopped}");
        assert!(stopped.stderr.contains("`proctor procedure resume run_"), "{records} {step}: {stopped}");
        nothing_is_left_running(&world);
        disk.free();
        world.write("../freed", "");
        let _ = world.proctor(&["procedure", "resume"]).expect_code(0);
        assert_eq!(made(&world), expected(records), "{step}");
        assert_eq!(world.read("out.txt"), "one\ntwo\n");
        assert!(is_clean(&world));
    }
}

#[test]
fn a_resume_on_a_full_state_disk_is_refused_and_harms_nothing() {
    let world = world().with_card("work", &steps("git", &[TWO[0], ("two", &format!("echo two >> out.txt; {WAIT}"))]));
    let Some(disk) = Disk::of_state(&world, "4m") else { return };
    let driver = start_waiting(&world, &["procedure", "run", "work"]);
    kill_all(&world, driver);
    let_go(&world);
    disk.fill();

    let stopped = world.proctor(&["procedure", "resume"]);
    let looked = world.proctor(&["procedure", "status", "--json"]);
    let examined = world.proctor(&["doctor"]);

    no_panic(&stopped);
    assert!(stopped.code == Some(1) && says_full(&stopped), "{stopped}");
    assert_eq!((looked.code, &looked.json()["outcome"]), (Some(0), &"interrupted".into()));
    assert!(examined.to_string().contains("0 MiB are free for state"), "{examined}");
    disk.free();
    let _ = world.proctor(&["procedure", "resume"]).expect_code(0);
    assert_eq!(made(&world), expected("git"));
    assert_eq!(world.read("out.txt"), "one\ntwo\n");
    assert!(is_clean(&world));
}

#[test]
fn output_that_fills_the_state_disk_costs_the_log_and_not_the_run() {
    let world =
        world().with_card("work", &steps("state", &[("one", "yes 0123456789 | head -c 20000000 || true; echo one > out.txt"), TWO[1]]));
    let Some(_disk) = Disk::of_state(&world, "6m") else { return };

    let ended = world.proctor(&["procedure", "run", "work"]);

    no_panic(&ended);
    nothing_is_left_running(&world);
    if ended.code != Some(0) {
        assert!(says_full(&ended), "{ended}");
        let _ = world.run_in("..", "bash", &["-c", "rm -f ../home/.local/state/proctor/repos/*/sessions/*/std*.log"]);
        let _ = world.proctor(&["procedure", "resume"]).expect_code(0);
    }
    assert_eq!(made(&world), expected("state"));
}

/// A world whose repository lies on a small disk of its own.
fn on_small_disk(size: &str) -> (World, impl Fn(&World) -> Option<Disk<'_>>) {
    let world = World::without_repository(env!("CARGO_BIN_EXE_proctor"));
    let size = size.to_owned();
    (world, move |world: &World| {
        let disk = Disk::mount(world, world.repository(), &size)?;
        world.git(&["init", "--quiet", "--initial-branch=main"]);
        Some(disk)
    })
}

#[test]
fn a_repository_disk_that_fills_up_stops_the_run_and_a_resume_ends_it_right() {
    for (records, step) in [("state", 0), ("git", 0), ("git", 1)] {
        let (world, mount) = on_small_disk("3m");
        let Some(disk) = mount(&world) else { return };
        let mut both = TWO.map(|(id, shell)| (id, shell.to_owned()));
        let fill = "head -c 400000 /dev/urandom > big.bin; cat /dev/zero > .git/fill 2>/dev/null || true";
        both[step].1 = format!("{}; test -e ../freed || {{ {fill}; }}", TWO[step].1);
        let keys = steps(records, &both.each_ref().map(|(id, shell)| (*id, shell.as_str())));
        world.write("proctor/procedures/work.procedure.card", format!("---\nname: work\n{keys}---\n"));
        world.commit_all("Add procedure work");

        let stopped = world.proctor(&["procedure", "run", "work"]);

        no_panic(&stopped);
        assert!(stopped.code.is_some_and(|code| code != 0), "{records} {step}: {stopped}");
        assert!(says_full(&stopped) || stopped.stderr.contains("unable to write"), "{records} {step}: {stopped}");
        nothing_is_left_running(&world);
        let _ = fs::remove_file(disk.path.join(".git/fill"));
        world.write("../freed", "");
        let resumed = world.proctor(&["procedure", "resume"]);
        assert_eq!(resumed.code, Some(0), "{records} {step}: {stopped}\n{resumed}");
        let made: Vec<String> = made(&world).into_iter().filter(|subject| subject.contains("Complete")).collect();
        let expected: Vec<&str> = expected(records).into_iter().filter(|subject| subject.contains("Complete")).collect();
        assert_eq!(made, expected, "{records} {step}: {stopped}");
        assert!(world.git(&["show", "HEAD:out.txt"]).ends_with("two"));
        assert!(is_clean(&world), "{}", world.git(&["status", "--short"]));
        let _ = world.run("git", &["fsck", "--no-dangling"]).expect_code(0);
    }
}

// --- state that can't be written, or is gone

#[test]
fn read_only_state_is_told_and_still_read() {
    let world = world().with_card("work", &steps("state", &TWO));
    let Some(disk) = Disk::of_state(&world, "8m") else { return };
    disk.remount("ro");

    let refused = world.proctor(&["procedure", "run", "work"]).expect_code(1);
    assert!(refused.stderr.contains("Read-only file system") && refused.stderr.contains("hint: "), "{refused}");
    assert!(is_clean(&world) && !world.has("out.txt"));
    disk.remount("rw");
    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);
    disk.remount("ro");

    for arguments in [&["runs"][..], &["procedure", "status"], &["procedure", "list"], &["where"], &["procedure", "gc", "--dry-run"]] {
        no_panic(&world.proctor(arguments).expect_code(0));
    }
    for arguments in [&["procedure", "run", "work"][..], &["procedure", "pin", &newest_run(&world)], &["procedure", "gc"]] {
        let refused = world.proctor(arguments).expect_code(1);
        assert!(refused.stderr.contains("read-only") || refused.stderr.contains("Read-only"), "{refused}");
    }
    assert_eq!(made(&world).len(), 2);
    disk.remount("rw");
    world.write("out.txt", "");
    world.commit_all("Begin again");
    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);
}

#[test]
fn state_that_is_removed_under_a_run_ends_it_with_a_sentence_and_no_orphan() {
    for what in ["home/.local/state/proctor", "home/.local/state/proctor/repos/*/journal.db*", "home/.local/state/proctor/repos/*/sessions"]
    {
        let world = world().with_card("work", &steps("git", &[("one", &format!("echo one > out.txt; setsid sleep 600 & {WAIT}"))]));
        let driver = start_waiting(&world, &["procedure", "run", "work"]);

        let _ = world.run("bash", &["-c", &format!("rm -rf ../{what}")]).expect_code(0);
        let_go(&world);

        let ended = driver.wait(LIMIT);
        no_panic(&ended);
        nothing_is_left_running(&world);
        if ended.code != Some(0) {
            assert!(ended.stderr.contains("error: ") && ended.stderr.contains("hint: "), "{what}: {ended}");
            // What the step wrote is in the tree, and a new start says so.
            assert_eq!(world.read("out.txt"), "one\n");
            let next = world.proctor(&["procedure", "run", "work"]);
            no_panic(&next);
            assert!(next.code == Some(4) && next.stderr.contains("changed: out.txt"), "{what}: {next}");
            let _ = world.proctor(&["procedure", "run", "work", "--allow-dirty"]);
            no_panic(&world.proctor(&["runs", "--all"]).expect_code(0));
        }
    }
}

// --- journals that are not what we left

fn journal(world: &World) -> PathBuf {
    world.state().join("journal.db")
}

/// Runs two procedures, whose names can be told apart in the journal's bytes.
fn recorded() -> World {
    let world = world().with_card("good", &steps("state", &TWO)).with_card("bad", &steps("state", &[("victimstep", "true")]));
    let _ = world.proctor(&["procedure", "run", "good"]).expect_code(0);
    let _ = world.proctor(&["procedure", "run", "bad"]).expect_code(0);
    world
}

#[test]
fn damaged_pages_are_named_and_what_is_left_goes_on_after_the_remedy() {
    let pages = fs::metadata(journal(&recorded())).expect("the journal").len() / 4096;
    let mut worst = 0;
    for page in 0..pages {
        // Every third one, so that header, tables and indexes are all met in little time.
        if page % 3 != 0 {
            continue;
        }
        let world = recorded();
        let mut file = OpenOptions::new().write(true).open(journal(&world)).expect("the journal");
        file.seek(SeekFrom::Start(page * 4096)).expect("the page");
        file.write_all(&[0xA5; 4096]).expect("damage");
        drop(file);

        let examined = world.proctor(&["doctor"]);
        no_panic(&examined);
        let damage_found = examined.code == Some(1);
        let listed = world.proctor(&["runs", "--all"]);
        no_panic(&listed);
        if damage_found {
            worst += 1;
            assert!(examined.stdout.contains("remedy: proctor doctor --repair"), "page {page}: {examined}");
            no_panic(&world.proctor(&["doctor", "--repair"]).expect_code(0));
        }

        assert_eq!(world.proctor(&["doctor"]).code, Some(0), "page {page}");
        world.write("out.txt", "");
        world.commit_all("Begin again");
        let _ = world.proctor(&["procedure", "run", "good"]).expect_code(0);
        let _ = world.proctor(&["runs", "--all"]).expect_code(0);
    }
    assert!(worst > 0);
}

/// Replaces every `from` in the journal's file by a text of the same length.
fn alter(world: &World, from: &str, to: &str) {
    let path = journal(world);
    let mut bytes = fs::read(&path).expect("the journal");
    let places: Vec<usize> = (0..bytes.len() - from.len()).filter(|&at| bytes[at..].starts_with(from.as_bytes())).collect();
    assert!(!places.is_empty(), "no `{from}` in the journal");
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    world.write(&path, bytes);
}

#[test]
fn a_damaged_record_is_its_own_runs_trouble_only() {
    let world = recorded();
    let bad = newest_run(&world);
    alter(&world, "\"step\":\"victimstep\"", "\"step\":\"victim\"tep\"");

    for arguments in
        [&["procedure", "status", &bad][..], &["show", &bad], &["procedure", "resume", &bad], &["log", &bad], &["procedure", "pin", &bad]]
    {
        let refused = world.proctor(arguments);
        no_panic(&refused);
        assert_eq!(refused.code, Some(1), "{arguments:?}: {refused}");
        assert!(refused.stderr.contains("is damaged") && refused.stderr.contains("`proctor doctor`"), "{arguments:?}: {refused}");
    }
    assert!(world.proctor(&["doctor"]).expect_code(1).stdout.contains(&bad));
    assert_eq!(world.proctor(&["runs", "--json"]).expect_code(0).json()["runs"].as_array().map(Vec::len), Some(2));
    world.write("out.txt", "");
    world.commit_all("Begin again");
    let _ = world.proctor(&["procedure", "run", "good"]).expect_code(0);
    let _ = world.proctor(&["procedure", "gc"]).expect_code(0);
}

#[test]
fn i9_a_journal_of_a_newer_version_is_read_and_never_written() {
    let world = recorded();
    // `user_version` in SQLite's header.
    let mut file = OpenOptions::new().write(true).open(journal(&world)).expect("the journal");
    file.seek(SeekFrom::Start(60)).expect("the place");
    file.write_all(&9_u32.to_be_bytes()).expect("a newer version");
    drop(file);
    let before = fs::read(journal(&world)).expect("the journal");
    let run = newest_run(&world);

    for arguments in [&["runs"][..], &["procedure", "status", &run], &["show", &run], &["procedure", "gc", "--dry-run"]] {
        let read = world.proctor(arguments).expect_code(0);
        assert!(read.stderr.contains("newer proctor"), "{arguments:?}: {read}");
    }
    for arguments in [&["procedure", "run", "bad"][..], &["procedure", "pin", &run]] {
        let refused = world.proctor(arguments).expect_code(4);
        assert!(
            refused.stderr.contains("newer proctor") && refused.stderr.contains("hint: use the newer proctor"),
            "{arguments:?}: {refused}"
        );
    }

    assert_eq!(fs::read(journal(&world)).expect("the journal"), before);
}

#[test]
fn a_record_of_a_newer_form_is_refused_and_other_runs_are_not() {
    let world = recorded();
    let bad = newest_run(&world);
    alter(
        &world,
        "{\"v\":1,\"event\":{\"event\":\"step-began\",\"step\":\"victimstep\"",
        "{\"v\":7,\"event\":{\"event\":\"step-began\",\"step\":\"victimstep\"",
    );

    let refused = world.proctor(&["procedure", "status", &bad]).expect_code(4);

    assert!(refused.stderr.contains("was written by a newer proctor"), "{refused}");
    assert!(refused.stderr.contains("hint: use the newer proctor"), "{refused}");
    assert_eq!(world.proctor(&["doctor"]).code, Some(0), "nothing is broken");
    world.write("out.txt", "");
    world.commit_all("Begin again");
    let _ = world.proctor(&["procedure", "run", "good"]).expect_code(0);
}

// --- cards

fn with_text(world: World, name: &str, text: &str) -> World {
    world.write(format!("proctor/procedures/{name}.procedure.card"), text);
    world.commit_all(&format!("Add {name}"));
    world
}

#[test]
fn a_card_with_windows_line_ends_runs_like_any_other() {
    let text = format!(
        "---\nname: work\n{}---\n",
        steps("git", &[("one", "x=$(printf abc)\nprintf '%s' \"$x\" > out.txt\ntest ${#x} = 3"), TWO[1]])
    );
    let world = with_text(world(), "work", &text.replace('\n', "\r\n"));

    let _ = world.proctor(&["procedure", "lint"]).expect_code(0);
    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);

    assert_eq!(world.read("out.txt"), "abctwo\n");
    assert_eq!(made(&world), expected("git"));
}

#[test]
fn a_repository_that_turns_line_ends_keeps_its_records() {
    let world = world().with_card("work", &steps("git", &TWO));
    world.git(&["config", "core.autocrlf", "true"]);
    world.git(&["rm", "--quiet", "--cached", "-r", "."]);
    world.git(&["reset", "--quiet", "--hard"]);
    assert!(world.read("proctor/procedures/work.procedure.card").contains("\r\n"));

    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);
    let run = newest_run(&world);
    // A fresh checkout has the card with other line ends.
    let _ = world.run("bash", &["-c", "rm -r proctor/runs && git checkout -q ."]).expect_code(0);
    let _ = world.proctor(&["procedure", "pin", &run]).expect_code(0);

    assert!(is_clean(&world), "{}", world.git(&["status", "--short"]));
    assert_eq!(world.git(&["show", "--format=", "--numstat", "HEAD"]).split('\t').take(2).collect::<Vec<_>>(), ["1", "1"]);
}

#[test]
fn a_card_of_5_mb_is_linted_and_run_in_little_time_and_memory() {
    let filler = format!("          # {}\n", "x".repeat(100)).repeat(5_000_000 / 112);
    let text = format!(
        "---\nname: work\nrecords: git\nsteps:\n  - id: one\n    run:\n      shells:\n        - |\n{filler}          echo one > out.txt\n  - id: two\n    run:\n      shells:\n        - |\n          {WAIT}\n---\n"
    );
    assert!(text.len() > 4_900_000);
    let world = with_text(world(), "work", &text);

    let begun = Instant::now();
    let _ = within_memory(&world, &["procedure", "lint"]).expect_code(0);
    let driver = start_waiting(&world, &["procedure", "run", "work"]);
    let _ = end_within_memory(&world, driver).expect_code(0);

    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!(world.read("out.txt"), "one\n");
}

#[test]
fn a_card_with_thirty_thousand_steps_is_linted_in_little_time_and_memory() {
    use std::fmt::Write;
    let mut text = "---\nname: work\nsteps:\n".to_owned();
    for number in 0..30_000 {
        let _ =
            write!(text, "  - id: step-{number}\n    run:\n      shells: ['echo {number} of very many steps, each of which has a text']\n");
    }
    text.push_str("---\n");
    let world = with_text(world(), "work", &text);

    let begun = Instant::now();
    let _ = within_memory(&world, &["procedure", "lint"]).expect_code(0);

    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

/// Runs the binary in an address space of 256 MiB: no more than half of that can then be in memory beside the
/// program itself, its stacks and what is reserved.
fn within_memory(world: &World, arguments: &[&str]) -> Output {
    let script = format!("ulimit -v {}; exec \"$@\"", 256 * 1024);
    let program = env!("CARGO_BIN_EXE_proctor");
    world.run("bash", &[&["-c", &script, "bash", program], arguments].concat())
}

#[test]
fn yaml_bombs_are_findings_and_hide_no_other_card() {
    let aliases = |levels: usize| {
        let mut text = "---\nname: bomb\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..levels {
            text.push_str(&format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 10].join(", ")));
        }
        text + "steps: []\n---\n"
    };
    let bombs = [
        ("laughs", aliases(12)),
        ("brackets", format!("---\nname: deep\nsteps: {}\n---\n", "[".repeat(200_000))),
        ("braces", format!("---\nname: deep\nsteps: {}\n---\n", "{a: ".repeat(100_000))),
        (
            "indents",
            format!("---\nname: deep\nsteps:\n{}---\n", (1..3_000).map(|depth| format!("{}- a:\n", " ".repeat(depth))).collect::<String>()),
        ),
        ("merges", "---\nbase: &b\n  <<: *b\nname: x\nsteps: []\n---\n".to_owned()),
        ("long key", format!("---\n? {}\n: x\nname: x\nsteps: []\n---\n", "k".repeat(1_000_000))),
    ];
    let world = bombs.iter().fold(world().with_card("good", &steps("state", &TWO)), |world, (name, text)| with_text(world, name, text));

    for (name, _) in &bombs {
        let begun = Instant::now();
        let linted = within_memory(&world, &["procedure", "lint", name]);
        no_panic(&linted);
        assert_eq!(linted.code, Some(1), "{name}: {linted}");
        assert!(linted.stdout.contains("error: ") && linted.to_string().len() < 20_000, "{name}: {linted}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{name}: {:?}", begun.elapsed());
        assert_eq!(within_memory(&world, &["procedure", "run", name]).code, Some(2), "{name}");
    }
    let listed = within_memory(&world, &["procedure", "list"]);
    no_panic(&listed);
    assert!(listed.stdout.contains("good"), "{listed}");
    let _ = world.proctor(&["procedure", "run", "good"]).expect_code(0);
}

// --- output

#[test]
fn floods_of_output_take_little_memory_and_keep_head_and_tail() {
    let line = "head -c 52428800 /dev/zero | tr '\\0' 'x'; echo";
    let flood = "echo FIRST; yes 0123456789 | head -c 200000000 || true; echo; echo LAST";
    let world = world().with_card("work", &steps("git", &[("flood", &format!("{line}\n{flood}\n{flood} >&2\n{WAIT}")), TWO[0]]));

    let driver = start_waiting(&world, &["procedure", "run", "work"]);
    let _ = end_within_memory(&world, driver).expect_code(0);

    let run = newest_run(&world);
    let shown = world.proctor(&["show", &run, "--json"]).expect_code(0);
    let session = &shown.json()["steps"][0]["sessions"][0];
    let text = session.to_string();
    assert!(text.contains("LAST") && text.len() < 100_000, "{} bytes", text.len());
    let card = world.git(&["show", "HEAD", "--format=", "--stat"]);
    assert!(!card.is_empty());
    // What is kept of two streams of 250 MB is bounded.
    let mut kept = 0;
    for name in ["stdout.log", "stderr.log"] {
        let found = world.run("bash", &["-c", &format!("stat -c %s '{}'/sessions/*/{name} | sort -n | tail -1", world.state().display())]);
        kept += found.stdout.trim().parse::<u64>().expect("a size");
    }
    assert!(kept < 2 * 66 * 1024 * 1024, "{kept} bytes");
}

#[test]
fn output_that_is_no_text_is_kept_in_the_log_and_shown_in_the_record() {
    let world = world().with_card(
        "work",
        &steps("git", &[("noise", "printf 'a\\xff\\xfe\\x00b\\x1b[2Jc\\n'; printf '\\xc3' >&2; echo one > out.txt"), TWO[1]]),
    );

    let run = world.proctor(&["procedure", "run", "work", "--json"]).expect_code(0).json();

    let session = run["steps"][0]["run"]["sessions"][0]["id"].as_str().expect("an id");
    let mut log = Vec::new();
    fs::File::open(world.state().join("sessions").join(session).join("stdout.log"))
        .expect("the log")
        .read_to_end(&mut log)
        .expect("its bytes");
    assert_eq!(log, b"a\xff\xfe\x00b\x1b[2Jc\n");
    let status = world.proctor(&["show", session]).expect_code(0);
    assert!(!status.stdout.contains('\u{1b}') && !status.stdout.contains('\0'), "{status}");
    let folder = world.run("bash", &["-c", "cat proctor/runs/*/run.procedure-run.card"]).expect_code(0).stdout;
    let card = proctor_cards::read_run_card(&folder).unwrap_or_else(|finding| panic!("{finding}\n{folder}"));
    assert_eq!(card.steps.len(), 2);
    assert!(!folder.contains('\u{1b}') && !folder.contains('\0'), "{folder}");
}

#[test]
fn outputs_that_are_no_text_or_too_long_fail_the_step_with_a_sentence() {
    for (shell, said) in [
        ("printf 'a=\\xff\\n' >> $PROCTOR_OUTPUT", "UTF-8"),
        ("printf 'a=' >> $PROCTOR_OUTPUT; head -c 70000 /dev/zero | tr '\\0' x >> $PROCTOR_OUTPUT", "65536"),
        ("head -c 300000000 /dev/zero >> $PROCTOR_OUTPUT", ""),
    ] {
        let world = world().with_card("work", &steps("state", &[("one", shell)]));

        let failed = world.proctor(&["procedure", "run", "work", "--json"]).expect_code(1).json();

        let error = failed["steps"][0]["error"].as_str().expect("an error");
        assert!(error.starts_with("outputs: ") && error.contains(said), "{shell}: {error}");
        assert!(error.len() < 1_000, "{error}");
    }
}
