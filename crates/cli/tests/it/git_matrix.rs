//! Procedures in repositories of every shape, with locks, hooks and signing that get in the way.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use proctor_testkit::{Background, Output, World, wait_for};

use crate::procedures::{LIMIT, kill_all, let_go, start_waiting};
use crate::world;

/// What a driver and a host may have in memory at most.
pub(crate) const MOST_KIB: u64 = 128 * 1024;

/// The keys of a procedure whose steps run one shell each.
pub(crate) fn steps(records: &str, steps: &[(&str, &str)]) -> String {
    let mut keys = format!("description: A test's\nrecords: {records}\nsteps:\n");
    for (id, shell) in steps {
        let shell = shell.replace('\n', "\n          ");
        keys.push_str(&format!("  - id: {id}\n    run:\n      shells:\n        - |\n          {shell}\n"));
    }
    keys
}

/// Waits, inside a shell or a hook, until there is a file `go` beside the repository.
pub(crate) const WAIT: &str = "touch ../waiting; while ! test -e ../go; do read -rt 0.02 _ <> <(:) || true; done";

/// Installs an executable hook.
pub(crate) fn hook(world: &World, name: &str, text: &str) {
    world.write(format!(".git/hooks/{name}"), format!("#!/bin/bash\n{text}\n"));
    let _ = world.run("chmod", &["+x", &format!(".git/hooks/{name}")]).expect_code(0);
}

/// A commit's paths, each quoted as git does.
fn committed(world: &World, commit: &str) -> Vec<String> {
    world.git(&["show", "--format=", "--name-status", "--no-renames", commit]).lines().map(str::to_owned).collect()
}

/// Subjects of the commits since `Add procedure …`, oldest first.
pub(crate) fn made(world: &World) -> Vec<String> {
    world.commits().into_iter().skip_while(|subject| !subject.starts_with("Add ")).skip(1).collect()
}

pub(crate) fn is_clean(world: &World) -> bool {
    world.git(&["status", "--porcelain", "-uall"]).is_empty()
}

/// The peak of a process's resident memory.
pub(crate) fn peak_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a living process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Looks at the memory of a driver, and of the host of its session, which wait; then lets them go on.
pub(crate) fn end_within_memory(world: &World, driver: Background) -> Output {
    let hosts: Vec<u32> =
        world.leftovers().into_iter().filter(|process| process.command.contains(" host ")).map(|process| process.pid).collect();
    assert_eq!(hosts.len(), 1, "{:?}", world.leftovers());
    for pid in [driver.pid(), hosts[0]] {
        let peak = peak_kib(pid);
        assert!(peak < MOST_KIB, "{peak} KiB");
    }
    let_go(world);
    driver.wait(LIMIT)
}

/// Runs the procedure `work`, which must complete.
fn complete(world: &World) -> serde_json::Value {
    world.proctor(&["procedure", "run", "work", "--json"]).expect_code(0).json()
}

fn nothing_ran(world: &World) {
    assert_eq!(world.proctor(&["runs", "--all", "--json"]).json()["runs"], serde_json::json!([]));
    assert!(!world.has("out.txt"));
}

const TWO: [(&str, &str); 2] = [("one", "echo one > out.txt"), ("two", "echo two >> out.txt")];
const TWO_SUBJECTS: [&str; 2] = ["[procedure] Complete step: one", "[procedure] Complete step: two"];

// --- locks

#[test]
fn an_index_lock_of_a_dead_git_is_named_with_its_rm_and_never_removed() {
    // A lock counts as our own git's when it is at most 50 ms older than our decision to commit.
    let step = "echo one > out.txt; touch .git/index.lock; read -rt 0.2 _ <> <(:) || true";
    let world = world().with_card("work", &steps("state", &[("one", step), TWO[1]]));
    let rm = format!("rm '{}'", world.repository().join(".git/index.lock").display());

    let stopped = world.proctor(&["procedure", "run", "work"]).expect_code(4);
    let again = world.proctor(&["procedure", "resume"]).expect_code(4);

    for output in [&stopped, &again] {
        assert!(output.stderr.contains("the git process that made it is gone"), "{output}");
        assert!(output.stderr.contains(&format!("hint: {rm}\n")), "{output}");
        assert!(output.stderr.contains("proctor procedure resume"), "{output}");
    }
    let _ = world.run("bash", &["-c", &rm]).expect_code(0);
    let _ = world.proctor(&["procedure", "resume"]).expect_code(0);
    assert_eq!(made(&world), TWO_SUBJECTS);
    assert_eq!(world.read("out.txt"), "one\ntwo\n");
    assert!(is_clean(&world));
}

#[test]
fn an_index_lock_before_the_first_step_is_no_reason_to_start_and_then_stop() {
    let world = world().with_card("work", &steps("git", &TWO));
    world.write(".git/index.lock", "");

    let refused = world.proctor(&["procedure", "run", "work"]).expect_code(4);

    assert!(refused.stderr.contains("hint: rm '"), "{refused}");
    fs::remove_file(world.repository().join(".git/index.lock")).expect("the lock");
    // Nothing, or a run that can be resumed, but never a tree that is in the way of the next run.
    assert!(is_clean(&world), "{}", world.git(&["status", "--short", "-uall"]));
    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);
    assert_eq!(made(&world).iter().filter(|subject| subject.starts_with("Start")).count(), 1);
}

/// Holds `index.lock` with a git that waits for its input, until it is told to end.
fn hold_index(world: &World) {
    let script = "mkfifo ../input; (exec 3<>../input; exec git update-index --stdin <&3 >/dev/null 2>&1) & echo $! > ../holder";
    let _ = world.run("bash", &["-c", script]).expect_code(0);
    wait_for("git holds the lock", LIMIT, || world.has(".git/index.lock"));
}

fn end_holder(world: &World) {
    let _ = world.run("bash", &["-c", "kill -TERM $(cat ../holder)"]).expect_code(0);
    wait_for("the lock is gone", LIMIT, || !world.has(".git/index.lock"));
}

#[test]
fn an_index_lock_of_a_living_git_is_waited_for() {
    let world = world().with_card("work", &steps("state", &[("one", &format!("echo one > out.txt; {WAIT}"))]));
    let driver = start_waiting(&world, &["procedure", "run", "work"]);
    hold_index(&world);

    let_go(&world);
    // The session's end is recorded together with the decision to commit.
    wait_for("the commit is due", LIMIT, || {
        world.proctor(&["procedure", "status", "--json"]).json()["steps"][0]["run"]["sessions"][0]["end"] == "completed"
    });
    end_holder(&world);

    let _ = driver.wait(LIMIT).expect_code(0);
    assert_eq!(made(&world), ["[procedure] Complete step: one"]);
    assert!(is_clean(&world));
}

#[test]
fn an_index_lock_that_a_living_git_does_not_give_up_stops_the_run_until_it_does() {
    let world = world().with_card("work", &steps("git", &[("one", &format!("echo one > out.txt; {WAIT}"))]));
    let driver = start_waiting(&world, &["procedure", "run", "work"]);
    hold_index(&world);
    let_go(&world);

    let stopped = driver.wait(LIMIT).expect_code(4);

    assert!(stopped.stderr.contains("another git process is at work there"), "{stopped}");
    assert!(stopped.stderr.contains("hint: wait until that git command has ended, then resume"), "{stopped}");
    assert!(world.has(".git/index.lock"));
    end_holder(&world);
    let _ = world.proctor(&["procedure", "resume"]).expect_code(0);
    assert_eq!(made(&world), ["Start procedure: work", "[procedure] Complete step: one", "Complete procedure: work"]);
    assert!(is_clean(&world));
}

// --- hooks

#[test]
fn a_slow_hook_is_waited_for() {
    let world = world().with_card("work", &steps("state", &TWO));
    hook(&world, "pre-commit", WAIT);
    let driver = start_waiting(&world, &["procedure", "run", "work"]);

    assert_eq!(world.proctor(&["procedure", "status", "--json"]).json()["outcome"], "running");
    let_go(&world);

    let _ = driver.wait(LIMIT).expect_code(0);
    assert_eq!(made(&world), TWO_SUBJECTS);
}

#[test]
fn a_commit_whose_driver_died_in_a_slow_hook_is_found_again() {
    for (records, name) in [("state", "pre-commit"), ("git", "commit-msg"), ("state", "post-commit")] {
        let world = world().with_card("work", &steps(records, &TWO));
        hook(&world, name, WAIT);
        let _ = start_waiting(&world, &["procedure", "run", "work"]).kill();

        let resumed = world.start(&["procedure", "resume"]);
        wait_for("the resume is at work", LIMIT, || resumed.stderr_so_far().contains("looking for the commit"));
        let_go(&world);

        let _ = resumed.wait(LIMIT).expect_code(0);
        let made: Vec<String> = made(&world).into_iter().filter(|subject| subject.starts_with("[procedure]")).collect();
        assert_eq!(made, TWO_SUBJECTS, "{records} {name}");
        assert!(is_clean(&world), "{records} {name}: {}", world.git(&["status", "--short"]));
    }
}

#[test]
fn a_commit_whose_git_was_killed_in_a_hook_with_its_driver_is_made_again_without_help() {
    for (records, name) in [("state", "pre-commit"), ("git", "prepare-commit-msg"), ("git", "post-commit")] {
        let world = world().with_card("work", &steps(records, &TWO));
        hook(&world, name, WAIT);
        let driver = start_waiting(&world, &["procedure", "run", "work"]);
        kill_all(&world, driver);
        let_go(&world);

        let resumed = world.proctor(&["procedure", "resume"]).expect_code(0);

        let made: Vec<String> = made(&world).into_iter().filter(|subject| subject.starts_with("[procedure]")).collect();
        assert_eq!(made, TWO_SUBJECTS, "{records} {name}: {resumed}");
        assert!(is_clean(&world), "{records} {name}: {}", world.git(&["status", "--short"]));
        assert!(!world.has(".git/index.lock"), "{records} {name}");
    }
}

#[test]
fn a_failing_hook_fails_the_step_with_what_it_printed_and_a_resume_commits_once() {
    let world = world().with_card("work", &steps("state", &TWO));
    hook(&world, "pre-commit", "echo 'no tabs, please' >&2; exit 1");

    let failed = world.proctor(&["procedure", "run", "work", "--json"]).expect_code(1).json();

    let said = failed["steps"][0]["error"].as_str().expect("an error");
    assert!(said.contains("a git hook refused the commit") && said.contains("no tabs, please"), "{said}");
    assert_eq!(
        (&failed["outcome"], &failed["steps"][0]["state"], &failed["steps"][1]["state"]),
        (&"failed".into(), &"failed".into(), &"pending".into())
    );
    let status = world.proctor(&["procedure", "status"]).expect_code(0);
    assert!(status.stdout.contains("no tabs, please"), "{status}");
    assert_eq!(made(&world), [""; 0]);
    assert_eq!(world.git(&["status", "--porcelain"]), "?? out.txt");

    fs::remove_file(world.repository().join(".git/hooks/pre-commit")).expect("the hook");
    let _ = world.proctor(&["procedure", "resume"]).expect_code(0);
    assert_eq!(made(&world), TWO_SUBJECTS);
    assert!(is_clean(&world));
}

#[test]
fn a_hook_that_edits_files_stops_the_run_and_is_named_with_its_output() {
    let world = world().with_card("work", &steps("git", &TWO));
    hook(&world, "pre-commit", "test -e out.txt || exit 0; echo 'formatting out.txt'; echo formatted >> out.txt");

    let stopped = world.proctor(&["procedure", "run", "work"]).expect_code(4);

    assert!(stopped.stderr.contains("a git hook changed files during a commit"), "{stopped}");
    assert!(stopped.stderr.contains("formatting out.txt"), "{stopped}");
    assert!(stopped.stderr.contains("changed: out.txt"), "{stopped}");
    assert!(stopped.stderr.contains("commit or discard what the hook changed"), "{stopped}");
    assert_eq!(world.git(&["status", "--porcelain"]), " M out.txt");
    fs::remove_file(world.repository().join(".git/hooks/pre-commit")).expect("the hook");
    world.git(&["restore", "out.txt"]);
    let _ = world.proctor(&["procedure", "resume"]).expect_code(0);
    assert_eq!(
        made(&world),
        ["Start procedure: work", "[procedure] Complete step: one", "[procedure] Complete step: two", "Complete procedure: work"]
    );
    assert!(is_clean(&world));
}

#[test]
fn a_hook_that_edits_and_stages_is_part_of_the_commit() {
    let world = world().with_card("work", &steps("state", &TWO));
    hook(&world, "pre-commit", "echo formatted >> out.txt; git add out.txt");

    let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);

    assert_eq!(world.git(&["show", "HEAD:out.txt"]), "one\nformatted\ntwo\nformatted");
    assert!(is_clean(&world), "{}", world.git(&["status", "--short"]));
}

#[test]
fn a_commit_whose_trailers_a_hook_strips_is_found_by_its_subject_and_parent() {
    for records in ["state", "git"] {
        let world = world().with_card("work", &steps(records, &TWO));
        hook(&world, "commit-msg", "head -n 1 \"$1\" > \"$1.new\"; mv \"$1.new\" \"$1\"");
        hook(&world, "post-commit", WAIT);
        let _ = start_waiting(&world, &["procedure", "run", "work"]).kill();
        let_go(&world);

        let _ = world.proctor(&["procedure", "resume"]).expect_code(0);

        let made: Vec<String> = made(&world).into_iter().filter(|subject| subject.starts_with("[procedure]")).collect();
        assert_eq!(made, TWO_SUBJECTS, "{records}");
        assert!(is_clean(&world));
    }
}

#[test]
fn post_commit_hooks_that_fail_amend_or_edit_lead_to_one_commit() {
    for (text, code, files) in [
        ("exit 1", 0, "one\n"),
        (
            "test -e .git/amended && exit; touch .git/amended; git commit --amend --quiet -m \"$(git log -1 --format=%B | sed '1s/$/ (hooked)/')\"",
            0,
            "one\n",
        ),
        ("git diff --quiet HEAD~1 HEAD -- out.txt || echo edited >> out.txt", 4, "one\nedited\n"),
    ] {
        let world = world().with_card("work", &steps("state", &TWO[..1]));
        hook(&world, "post-commit", text);

        let ended = world.proctor(&["procedure", "run", "work"]).expect_code(code);

        assert_eq!(made(&world).len(), 1, "{text}: {ended}");
        assert_eq!(world.read("out.txt"), files, "{text}");
    }
}

// --- who commits, and how

#[test]
fn signing_that_fails_refuses_the_run_before_its_first_step() {
    let world = world().with_card("work", &steps("state", &TWO));
    world.git(&["config", "commit.gpgsign", "true"]);
    world.git(&["config", "gpg.program", "/bin/false"]);

    let refused = world.proctor(&["procedure", "run", "work"]).expect_code(1);

    assert!(refused.stderr.contains("failed to sign a commit"), "{refused}");
    assert!(refused.stderr.contains("hint: unlock the signing key, or git config commit.gpgsign false"), "{refused}");
    nothing_ran(&world);
    assert!(is_clean(&world));
}

#[test]
fn signing_that_begins_to_fail_fails_the_step_and_a_resume_goes_on() {
    let world = world().with_card(
        "work",
        &steps("state", &[("one", "echo one > out.txt; git config commit.gpgsign true; git config gpg.program /bin/false"), TWO[1]]),
    );

    let failed = world.proctor(&["procedure", "run", "work", "--json"]).expect_code(1).json();

    assert!(failed["steps"][0]["error"].as_str().expect("an error").starts_with("the commit could not be signed: "), "{failed}");
    world.git(&["config", "commit.gpgsign", "false"]);
    world.git(&["config", "--unset", "gpg.program"]);
    // The step runs again, and must not break signing again.
    world.git(&["config", "commit.gpgsign", "false"]);
    let again = world.proctor(&["procedure", "resume", "--json"]).expect_code(1).json();
    assert_eq!(again["steps"][0]["attempts"], 2);
    assert_eq!(made(&world), [""; 0]);
}

#[test]
fn without_an_identity_nothing_starts_and_the_hint_sets_one() {
    let world = world().with_card("work", &steps("state", &TWO));
    world.write(world.home().join(".gitconfig"), "[user]\n\tuseConfigOnly = true\n");

    let refused = world.proctor(&["procedure", "run", "work"]).expect_code(1);

    assert!(refused.stderr.contains("git knows no name and e-mail address"), "{refused}");
    let hint = "git config --global user.name 'Your Name' && git config --global user.email you@example.com";
    assert!(refused.stderr.contains(&format!("hint: {hint}\n")), "{refused}");
    nothing_ran(&world);
    let _ = world.run("bash", &["-c", hint]).expect_code(0);
    complete(&world);
}

// --- shapes of repositories

#[test]
fn a_detached_head_works_and_its_commits_are_kept_by_a_reference() {
    for records in ["state", "git"] {
        let world = world().with_card("work", &steps(records, &TWO));
        world.git(&["checkout", "--quiet", "--detach"]);

        let run = complete(&world)["run"].as_str().expect("an id").to_owned();

        assert!(!world.try_git(&["symbolic-ref", "HEAD"]).stderr.is_empty(), "still detached");
        let head = world.git(&["rev-parse", "HEAD"]);
        world.git(&["switch", "--quiet", "main"]);
        assert_eq!(world.git(&["rev-parse", &format!("refs/proctor/runs/{run}")]), head, "{records}");
    }
}

#[test]
fn a_repository_without_a_commit_works() {
    for records in ["state", "git"] {
        let world = World::without_repository(env!("CARGO_BIN_EXE_proctor"));
        fs::create_dir(world.repository()).expect("the folder");
        world.git(&["init", "--quiet"]);
        world.write("../work.procedure.card", format!("---\nname: work\n{}---\n", steps(records, &TWO)));

        let _ = world.proctor(&["procedure", "run", "../work.procedure.card"]).expect_code(0);

        let made: Vec<String> = world.commits().into_iter().filter(|subject| subject.starts_with("[procedure]")).collect();
        assert_eq!(made, TWO_SUBJECTS, "{records}");
        assert_eq!(world.git(&["show", "HEAD:out.txt"]), "one\ntwo");
        assert!(is_clean(&world));
    }
}

#[test]
fn a_failed_step_in_a_repository_without_a_commit_is_resumed() {
    let world = World::without_repository(env!("CARGO_BIN_EXE_proctor"));
    fs::create_dir(world.repository()).expect("the folder");
    world.git(&["init", "--quiet"]);
    let card = steps("state", &[("one", "echo one > out.txt; test -e ../fixed")]);
    world.write("../work.procedure.card", format!("---\nname: work\n{card}---\n"));
    let _ = world.proctor(&["procedure", "run", "../work.procedure.card"]).expect_code(1);
    world.write("../fixed", "");

    let _ = world.proctor(&["procedure", "resume"]).expect_code(0);

    assert_eq!(world.commits(), ["[procedure] Complete step: one"]);
}

#[test]
fn a_submodule_pointer_is_an_ordinary_path_and_a_dirty_submodule_is_refused() {
    let library = world();
    let world = world().with_card("work", &steps("state", &[("move", "cd sub; git commit --quiet --allow-empty -m moved")]));
    world.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", library.repository().to_str().expect("UTF-8"), "sub"]);
    world.commit_all("Add sub");

    let run = complete(&world);

    assert_eq!(committed(&world, "HEAD"), ["M\tsub"]);
    assert_eq!(run["steps"][0]["commits"].as_array().map(Vec::len), Some(1));
    assert!(is_clean(&world));

    world.write("sub/README.md", "changed\n");
    for flags in [&["procedure", "run", "work"][..], &["procedure", "run", "work", "--allow-dirty"][..]] {
        let refused = world.proctor(flags).expect_code(4);
        assert!(refused.stderr.contains("sub"), "{refused}");
    }
    let allowed = world.proctor(&["procedure", "run", "work", "--allow-dirty"]);
    assert!(allowed.stderr.contains("sub can't stay as it is: it is a submodule with uncommitted changes of its own"), "{allowed}");
    assert_eq!(world.read("sub/README.md"), "changed\n");
}

#[test]
fn a_step_that_leaves_a_submodule_dirty_fails_naming_it() {
    let library = world();
    let world = world().with_card("work", &steps("state", &[("spoil", "echo x > out.txt; echo changed > sub/README.md")]));
    world.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", library.repository().to_str().expect("UTF-8"), "sub"]);
    world.commit_all("Add sub");

    let ended = world.proctor(&["procedure", "run", "work", "--json"]);

    assert_eq!(ended.code, Some(1), "{ended}");
    assert!(ended.json()["steps"][0]["error"].as_str().is_some_and(|error| error.contains("sub")), "{ended}");
    assert_eq!(world.read("sub/README.md"), "changed\n");
}

#[test]
fn a_sparse_checkout_keeps_what_it_leaves_out() {
    for index in ["--sparse-index", "--no-sparse-index"] {
        let world = world().with_file("kept/x", "x\n").with_file("left-out/x", "x\n");
        let world = world.with_card("work", &steps("git", &[("one", "echo y > kept/y; mkdir -p left-out; echo y > left-out/y")]));
        world.git(&["sparse-checkout", "set", "--cone", index, "kept", "proctor"]);
        assert!(!world.has("left-out/x"));

        complete(&world);

        let listed = world.git(&["ls-tree", "-r", "--name-only", "HEAD", "kept", "left-out"]);
        assert_eq!(listed, "kept/x\nkept/y\nleft-out/x\nleft-out/y");
        assert!(is_clean(&world), "{index}: {}", world.git(&["status", "--short", "-uall"]));
    }
}

#[test]
fn a_sparse_checkout_without_the_records_folder_keeps_records() {
    let world = world().with_file("kept/x", "x\n").with_card("work", &steps("git", &[("one", "echo y > kept/y")]));
    world.write("../work.procedure.card", world.read("proctor/procedures/work.procedure.card"));
    world.git(&["sparse-checkout", "set", "--cone", "kept"]);

    let ended = world.proctor(&["procedure", "run", "../work.procedure.card"]).expect_code(0);

    assert_eq!(made(&world).len(), 3, "{ended}");
    assert!(is_clean(&world), "{}", world.git(&["status", "--short", "-uall"]));
}

#[test]
fn a_shallow_clone_works() {
    let origin = world().with_card("work", &steps("git", &TWO));
    let world = World::without_repository(env!("CARGO_BIN_EXE_proctor"));
    let url = format!("file://{}", origin.repository().display());
    fs::create_dir(world.repository()).expect("the folder");
    world.git(&["clone", "--quiet", "--depth=1", &url, "."]);

    complete(&world);

    assert_eq!(made(&world).len(), 4);
    assert!(world.has(".git/shallow"));
    assert!(is_clean(&world));
}

#[test]
fn a_repository_with_sha256_works() {
    let world = World::without_repository(env!("CARGO_BIN_EXE_proctor"));
    fs::create_dir(world.repository()).expect("the folder");
    world.git(&["init", "--quiet", "--object-format=sha256"]);
    let world = world.with_card("work", &steps("git", &TWO));

    let run = complete(&world);

    assert_eq!(run["steps"][0]["commits"][0].as_str().map(str::len), Some(64));
    assert_eq!(made(&world).len(), 4);
    assert!(is_clean(&world));
}

#[test]
fn a_linked_worktree_works_beside_a_run_in_the_main_one() {
    let world = world().with_card("work", &steps("git", &[("one", &format!("echo one > out.txt; {WAIT}"))]));
    world.git(&["worktree", "add", "--quiet", "../linked", "-b", "other"]);
    let driver = start_waiting(&world, &["procedure", "run", "work"]);
    let_go(&world);

    let _ = world.proctor_in("../linked", &["procedure", "run", "work"]).expect_code(0);

    let _ = driver.wait(LIMIT).expect_code(0);
    for branch in ["main", "other"] {
        let subjects = world.git(&["log", "--format=%s", "-3", branch]);
        assert_eq!(subjects, "Complete procedure: work\n[procedure] Complete step: one\nStart procedure: work");
    }
    assert_eq!(world.proctor(&["runs", "--json"]).json()["runs"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_bare_repository_is_refused() {
    let world = World::without_repository(env!("CARGO_BIN_EXE_proctor"));
    fs::create_dir(world.repository()).expect("the folder");
    world.git(&["init", "--quiet", "--bare"]);

    let refused = world.proctor(&["procedure", "run", "work"]).expect_code(2);

    assert!(refused.stderr.contains("it is a bare repository, which has no files"), "{refused}");
    assert!(refused.stderr.contains("hint: make a work tree with `git worktree add"), "{refused}");
}

#[test]
fn a_repository_whose_path_has_200_bytes_works() {
    let world = World::without_repository(env!("CARGO_BIN_EXE_proctor"));
    let root = world.root().as_os_str().len();
    let deep = format!("{}/{}", "d".repeat(90), "e".repeat(200 - root - 92));
    let folder = world.root().join(&deep);
    assert_eq!(folder.as_os_str().len(), 200);
    fs::create_dir_all(&folder).expect("the folder");
    std::os::unix::fs::symlink(&deep, world.repository()).expect("a short way there");
    world.git(&["init", "--quiet"]);
    let world = world.with_card("work", &steps("git", &[TWO[0], ("two", "echo two >> out.txt; echo a=1 >> \"$PROCTOR_OUTPUT\"")]));

    let run = world.proctor_in(&folder, &["procedure", "run", "work", "--json"]).expect_code(0).json();

    assert_eq!(run["steps"][1]["outputs"]["a"], "1");
    assert_eq!(made(&world).len(), 4);
}

/// Commits 200 files in each of 100 folders, by the one way that makes no 20,000 objects.
fn add_many_files(world: &World) {
    let mut stream =
        "commit refs/heads/many\ncommitter A <a@example.com> 1700000000 +0000\ndata 8\nAdd many\nfrom refs/heads/main\n".to_owned();
    for number in 0..20_000 {
        let text = format!("{number}\n");
        stream.push_str(&format!("M 100644 inline d{}/f{number}\ndata {}\n{text}", number / 200, text.len()));
    }
    world.write("../many", stream);
    let _ = world.run("bash", &["-c", "git fast-import --quiet < ../many && git merge -q --ff-only many && rm ../many"]).expect_code(0);
}

#[test]
fn twenty_thousand_files_take_little_time_and_memory() {
    let waits = format!("echo x > d0/new; rm d1/f200; {WAIT}");
    let world = world().with_card(
        "work",
        &steps("git", &[("change", "for f in d0/*; do echo y >> $f; done; mkdir sub; echo z > sub/z"), ("wait", &waits)]),
    );
    add_many_files(&world);
    let begun = Instant::now();

    let driver = start_waiting(&world, &["procedure", "run", "work"]);
    let _ = end_within_memory(&world, driver).expect_code(0);

    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!(committed(&world, "HEAD~2").len(), 202);
    assert!(is_clean(&world));
}

// --- what a step leaves

/// Names that have confused programs before.
const NAMES: [&[u8]; 12] = [
    b"with space",
    b"new\nline",
    b"tab\there",
    b":colon",
    b":(top)x",
    b"-dash",
    b"--all",
    b"quote\"d",
    b"back\\slash",
    b"*star?",
    b"not \xff UTF-8 \xfe",
    b"\xc3\xa4\xe2\x80\xae",
];

#[test]
fn odd_names_are_committed_listed_and_quoted() {
    for records in ["state", "git"] {
        let world = world().with_card(
            "work",
            &steps(records, &[("make", "cp -r ../odd/. ."), ("change", "for f in ../odd/*; do echo more >> \"./${f#../odd/}\"; done")]),
        );
        let odd = world.root().join("odd");
        fs::create_dir(&odd).expect("a folder");
        for name in NAMES {
            world.write(odd.join(OsStr::from_bytes(name)), "x\n");
        }

        let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);

        let step = if records == "state" { "HEAD" } else { "HEAD~1" };
        let tree = world.run("git", &["ls-tree", "-z", "--name-only", step]).stdout;
        assert_eq!(tree.split('\0').filter(|name| !["README.md", "proctor", ""].contains(name)).count(), NAMES.len(), "{records}");
        assert!(is_clean(&world), "{}", world.git(&["status", "--short"]));
        assert_eq!(committed(&world, step).len(), NAMES.len() + usize::from(records == "git"));
    }
}

#[test]
fn odd_names_in_the_way_of_a_run_are_told_in_quoted_form() {
    let world = world().with_card("work", &steps("state", &TWO));
    for name in NAMES {
        world.write(OsStr::from_bytes(name), "x\n");
    }

    let refused = world.proctor(&["procedure", "run", "work", "--json"]).expect_code(4);

    let message = refused.json()["error"]["message"].as_str().expect("a message").to_owned();
    for shown in ["with space", r#""new\nline""#, ":colon", "-dash", r#""not \377 UTF-8 \376""#] {
        assert!(message.contains(shown), "{shown}: {message}");
        assert!(refused.stderr.contains(&format!("changed: {shown}\n")), "{shown}: {refused}");
    }
    assert!(!refused.stderr.contains('\u{202e}'), "{refused}");
}

#[test]
fn links_modes_and_files_that_become_folders_are_committed_as_they_are() {
    let script = "ln -s nowhere dangling; ln -sf ../outside up; chmod +x tool; rm file; mkdir file; echo x > file/inside
rm -r folder; echo y > folder; rm gone; ln -s README.md was-file 2>/dev/null || { rm was-file; ln -s README.md was-file; }";
    for records in ["state", "git"] {
        let world =
            world().with_file("tool", "#!/bin/sh\n").with_file("file", "x\n").with_file("folder/a", "a\n").with_file("folder/b", "b\n");
        let world =
            world.with_file("gone", "x\n").with_file("was-file", "x\n").with_card("work", &steps(records, &[("shape", script), TWO[0]]));

        let _ = world.proctor(&["procedure", "run", "work"]).expect_code(0);

        let tree = world.git(&["ls-tree", "-r", "--format=%(objectmode) %(path)", "HEAD"]);
        let shapes: Vec<&str> = tree.lines().filter(|line| !line.contains("proctor/") && !line.contains("README")).collect();
        assert_eq!(
            shapes,
            ["120000 dangling", "100644 file/inside", "100644 folder", "100644 out.txt", "100755 tool", "120000 up", "120000 was-file"]
        );
        assert!(is_clean(&world), "{}", world.git(&["status", "--short"]));
    }
}

#[test]
fn a_repository_that_a_step_makes_inside_fails_the_step_naming_it() {
    let world = world().with_card(
        "work",
        &steps("git", &[("clone", "git init -q vendor/inner; cd vendor/inner; echo x > x; git add x; git commit -qm x")]),
    );

    let failed = world.proctor(&["procedure", "run", "work", "--json"]).expect_code(1).json();

    assert_eq!(failed["steps"][0]["error"], "vendor/inner/ is a git repository of its own");
    assert!(world.has("vendor/inner/.git"));
    assert!(world.commits().last().is_some_and(|subject| subject == "Failed procedure: work"), "{:?}", world.commits());
}

#[test]
fn more_than_two_thousand_new_files_fail_the_step_naming_them() {
    let world =
        world().with_card("work", &steps("state", &[("make", "mkdir node_modules; cd node_modules; for n in {1..2001}; do : > $n; done")]));

    let failed = world.proctor(&["procedure", "run", "work", "--json"]).expect_code(1).json();

    let said = failed["steps"][0]["error"].as_str().expect("an error");
    assert_eq!(said, "there are 2001 new files, most of them under node_modules/ (the limit is 2000)");
    assert_eq!(made(&world), [""; 0]);
    // What is not committed stays, and once it is ignored the step passes.
    assert!(Path::new(&world.repository().join("node_modules/2001")).exists());
    world.write("../ignored", "node_modules\n");
    let _ = world.run("cp", &["../ignored", ".git/info/exclude"]).expect_code(0);
    world.write("../run-again", "");
    let resumed = world.proctor(&["procedure", "resume", "--json"]);
    assert_eq!(resumed.code, Some(1), "mkdir fails, because the folder is still there: {resumed}");
}
