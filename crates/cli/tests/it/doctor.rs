use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;
use proctor_testkit::{Output, World, wait_for};
use serde_json::Value;

use crate::procedures::{COMPLETES, LIMIT, WAITS, kill_all, newest_run, plain, sessions_of, start_waiting};
use crate::{BAD, world};

/// The check with this name.
fn check(output: &Output, name: &str) -> Value {
    let checks = output.json()["checks"].as_array().expect("checks").clone();
    checks.into_iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no check {name}: {output}"))
}

/// `state: detail -> remedy` of one check, without what differs from run to run.
fn said(world: &World, name: &str) -> String {
    let check = check(&world.proctor(&["doctor", "--json"]), name);
    let remedy = check["remedy"].as_str().unwrap_or("nothing");
    plain(world, &format!("{}: {}\n-> {remedy}", check["state"].as_str().expect("a state"), check["detail"].as_str().expect("a detail")))
}

#[test]
fn outside_of_a_repository_that_is_the_failure() {
    let world = World::without_repository(env!("CARGO_BIN_EXE_proctor"));

    let output = world.proctor_in(world.root(), &["doctor", "--json"]).expect_code(1);

    assert_eq!(output.json()["ok"], false);
    assert_eq!(check(&output, "git")["state"], "ok");
    assert_eq!((&check(&output, "repository")["state"], &check(&output, "repository")["remedy"]), (&"failure".into(), &"git init".into()));
}

#[test]
fn a_repository_that_never_ran_anything_is_in_order_and_stays_untouched() {
    let world = world().with_card("completes", COMPLETES);

    let output = world.proctor(&["doctor", "--json"]).expect_code(0);

    assert_eq!(output.json()["ok"], true);
    let names: Vec<String> = output.json()["checks"]
        .as_array()
        .expect("checks")
        .iter()
        .map(|check| check["name"].as_str().expect("a name").to_owned())
        .collect();
    assert_eq!(
        names,
        ["git", "bash", "supervision", "repository", "identity", "signing", "cards", "trust", "engine", "confinement", "state", "space"]
    );
    assert!(!world.has(".git/proctor-id"));
}

const AGENT: &str = "description: Says hello\nsteps:\n  - id: greet\n    run:\n      agents:\n        - prompt: Say hello\n";

#[test]
fn what_keeps_agents_from_running_is_a_failure_once_a_procedure_needs_them() {
    let world = world().with_card("completes", COMPLETES).with_variable("PROCTOR_ENGINE", "scripted");
    assert_snapshot!(said(&world, "engine"), @"
    ok: no procedure needs agents; scripted: no script says what it does
    -> nothing
    ");

    let world = world.with_card("greet", AGENT);
    assert_snapshot!(said(&world, "engine"), @"
    failure: scripted: no script says what it does
    -> give `--script FILE`, or set `engines.scripted.script`
    ");
    world.write("../agent.toml", "[[default.turn]]\ndo = [{ shout = 'hello' }]\n");
    let world = world.with_variable("PROCTOR_SCRIPT", "../agent.toml");
    assert!(said(&world, "engine").contains("line 2, column 9: unknown variant `shout`"), "{}", said(&world, "engine"));
    world.write("../agent.toml", "[[default.turn]]\ndo = [{ say = 'hello' }]\n");
    assert_eq!(check(&world.proctor(&["doctor", "--json"]), "engine")["state"], "ok");
}

#[test]
fn agents_that_are_to_run_without_a_box_are_in_order_when_that_is_wanted() {
    let world = world().with_card("greet", AGENT).with_variable("PROCTOR_CONFINE", "none");

    assert_snapshot!(said(&world, "confinement"), @"
    ok: none (confine = none, PROCTOR_CONFINE)
    -> nothing
    ");
}

#[test]
fn after_a_run_everything_is_in_order() {
    let world = world().with_card("completes", COMPLETES);
    let _ = world.proctor(&["procedure", "run", "completes"]).expect_code(0);

    let output = world.proctor(&["doctor"]).expect_code(0);

    assert!(output.stdout.lines().all(|line| line.starts_with('✓')), "{output}");
    assert_eq!(output.stderr, "everything is in order\n");
}

#[test]
fn settings_and_cards_that_cannot_be_read_are_failures_with_their_place() {
    let broken = world().with_file("proctor.toml", "recrods = \"git\"\n");
    assert_snapshot!(said(&broken, "settings"), @"
    failure: [root]/repository/proctor.toml can't be used: [root]/repository/proctor.toml:1:1: unknown key `recrods`
    -> did you mean `records`?
    ");

    let world = world().with_card("bad", BAD).with_card("completes", COMPLETES);
    assert_snapshot!(said(&world, "cards"), @"
    failure: can't be read: bad
    -> proctor procedure lint
    ");
    assert_eq!(world.proctor(&["doctor"]).code, Some(1));
}

#[test]
fn a_lock_that_a_dead_git_left_is_named_with_the_command_that_removes_it() {
    let world = world().with_file(".git/index.lock", "");

    assert_snapshot!(said(&world, "repository"), @"
    failure: failed to change the repository: [root]/repository/.git/index.lock exists, and the git process that made it is gone
    -> rm '[root]/repository/.git/index.lock'
    ");
}

#[test]
fn a_rebase_in_progress_and_a_missing_identity_are_told() {
    let world = world();
    fs::create_dir(world.repository().join(".git/rebase-merge")).expect("a rebase");
    assert_snapshot!(said(&world, "repository"), @"
    warning: a rebase is in progress, so no run can start
    -> finish it or end it: `git rebase --continue` or `git rebase --abort`
    ");

    fs::remove_file(world.home().join(".gitconfig")).expect("removes");
    world.git(&["config", "user.useConfigOnly", "true"]);
    assert_snapshot!(said(&world, "identity"), @"
    failure: failed to commit: git knows no name and e-mail address
    -> git config --global user.name 'Your Name' && git config --global user.email you@example.com
    ");
}

#[test]
fn signing_that_cannot_work_is_a_failure() {
    let world = world();
    world.git(&["config", "commit.gpgSign", "true"]);
    world.git(&["config", "gpg.program", "false"]);

    assert_eq!(check(&world.proctor(&["doctor", "--json"]).expect_code(1), "signing")["state"], "failure");
}

#[test]
fn state_that_others_can_read_is_a_warning() {
    let world = world().with_card("completes", COMPLETES);
    let _ = world.proctor(&["procedure", "run", "completes"]).expect_code(0);
    fs::set_permissions(world.state(), Permissions::from_mode(0o755)).expect("opens it");

    assert_snapshot!(said(&world, "state"), @"
    warning: [root]/home/.local/state/proctor/repos/repository-[id] is open to others (mode 0755): it holds what sessions printed
    -> chmod 700 '[root]/home/.local/state/proctor/repos/repository-[id]'
    ");
    assert_eq!(world.proctor(&["doctor"]).code, Some(0), "a warning is no failure");
}

#[test]
fn a_run_without_a_driver_is_named_with_the_command_that_goes_on() {
    let world = world().with_card("waits", WAITS);
    let driver = start_waiting(&world, &["procedure", "run", "waits"]);
    assert_snapshot!(said(&world, "runs"), @"
    ok: 1 run going on
    -> nothing
    ");

    kill_all(&world, driver);

    assert_snapshot!(said(&world, "runs"), @"
    warning: [run 1] has not ended, and the proctor that drove it is gone
    -> proctor procedure resume [run 1]
    ");
}

#[test]
fn a_process_of_a_dead_session_is_found_by_its_marker() {
    let world = world().with_card("completes", COMPLETES);
    let _ = world.proctor(&["procedure", "run", "completes"]).expect_code(0);
    let session = sessions_of(&world, &newest_run(&world)).remove(0);
    assert_eq!(said(&world, "orphans"), "ok: no process of a dead session is alive\n-> nothing");

    let script = format!("PROCTOR_SESSION=ses_0000000000:{session} setsid sleep 600 > /dev/null 2>&1 &");
    let _ = world.run("bash", &["-c", &script]);
    wait_for("it is there", LIMIT, || world.leftovers().iter().any(|leftover| leftover.command.starts_with("sleep")));
    let pid = world.leftovers().iter().find(|leftover| leftover.command.starts_with("sleep")).expect("the process").pid;

    let check = check(&world.proctor(&["doctor", "--json"]), "orphans");
    assert_eq!(check["state"], "warning");
    assert_eq!(check["detail"], format!("alive although their session is dead: {pid} of {session}"));
    assert_eq!(check["remedy"], format!("look at them with `ps -fp {pid}`, then `kill {pid}`"));
}

#[test]
fn session_folders_without_a_run_are_named() {
    let world = world().with_card("completes", COMPLETES);
    let _ = world.proctor(&["procedure", "run", "completes"]).expect_code(0);
    fs::create_dir(world.state().join("sessions/ses_0000000000")).expect("a folder");

    assert_snapshot!(said(&world, "sessions"), @"
    warning: 1 folder of sessions that no recorded run has
    -> rm -r '[root]/home/.local/state/proctor/repos/repository-[id]/sessions/[session 1]'
    ");
}

#[test]
fn settings_that_need_consent_are_told() {
    let world = world().with_file("proctor.toml", "linger = [\"sccache\"]\n");

    assert_snapshot!(said(&world, "trust"), @"
    warning: [root]/repository/proctor.toml asks for what you have not accepted, so no run can start
    -> proctor trust
    ");
}

/// Replaces every `from` in the journal's file by a text of the same length.
fn damage(world: &World, from: &str, to: &str) {
    let path = world.state().join("journal.db");
    let mut bytes = fs::read(&path).expect("the journal");
    let places: Vec<usize> = (0..bytes.len().saturating_sub(from.len())).filter(|&at| bytes[at..].starts_with(from.as_bytes())).collect();
    assert!(!places.is_empty(), "no `{from}` in the journal");
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    world.write(&path, bytes);
}

#[test]
fn a_damaged_record_is_named_and_repaired_without_losing_other_runs() {
    let world = world().with_card("completes", COMPLETES).with_card("waits", &WAITS.replace("../go", "/dev/null"));
    let _ = world.proctor(&["procedure", "run", "completes"]).expect_code(0);
    let _ = world.proctor(&["procedure", "run", "waits"]).expect_code(0);
    damage(&world, "\"step\":\"wait\"", "\"step\":\"w\x01it\"");

    assert_eq!(check(&world.proctor(&["doctor", "--json"]).expect_code(1), "journal")["remedy"], "proctor doctor --repair");
    assert_snapshot!(said(&world, "journal"), @r#"
    failure: 2 runs, 26 events; can't be read: [run 1] from event 6 on (control character (\u0000-\u001F) found while parsing a string at line 1 column 32). Other runs are not affected
    -> proctor doctor --repair
    "#);

    let repaired = world.proctor(&["doctor", "--repair"]).expect_code(0);
    assert_snapshot!(plain(&world, &repaired.stderr), @r#"
    everything readable of '[root]/home/.local/state/proctor/repos/repository-[id]/journal.db' will be moved to a new file; the damaged one is kept beside it
    kept 2 runs and 2 card texts; the damaged file is '[root]/home/.local/state/proctor/repos/repository-[id]/journal.db.damaged-1'
    warning: [run 1] keeps its first 5 events (control character (\u0000-\u001F) found while parsing a string at line 1 column 32); `proctor procedure resume [run 1]` goes on from there
    0 failures, 2 warnings
    "#);
    assert_eq!(check(&world.proctor(&["doctor", "--json"]), "journal")["state"], "ok");
    let runs = world.proctor(&["runs", "--json"]).json();
    let outcomes: Vec<_> = runs["runs"].as_array().expect("runs").iter().map(|run| run["outcome"].clone()).collect();
    assert_eq!(outcomes, ["interrupted", "completed"]);
}

#[test]
fn a_journal_that_is_no_database_any_more_is_set_aside() {
    let world = world().with_card("completes", COMPLETES);
    let _ = world.proctor(&["procedure", "run", "completes"]).expect_code(0);
    damage(&world, "SQLite format 3", "SQLite format X");

    assert_snapshot!(said(&world, "journal"), @"
    failure: failed to read the journal [root]/home/.local/state/proctor/repos/repository-[id]/journal.db: it is damaged
    -> proctor doctor --repair
    ");
    assert_snapshot!(plain(&world, &world.proctor(&["doctor", "--repair"]).expect_code(0).stderr), @"
    everything readable of '[root]/home/.local/state/proctor/repos/repository-[id]/journal.db' will be moved to a new file; the damaged one is kept beside it
    warning: nothing of it could be read: file is not a database
    kept 0 runs and 0 card texts; the damaged file is '[root]/home/.local/state/proctor/repos/repository-[id]/journal.db.damaged-1'
    0 failures, 1 warning
    ");
    assert!(world.has(world.state().join("journal.db.damaged-1")));
    let _ = world.proctor(&["procedure", "run", "completes"]).expect_code(0);
}

#[test]
fn a_sound_journal_is_left_alone_and_a_session_may_not_repair() {
    let mut world = world().with_card("completes", COMPLETES);
    let _ = world.proctor(&["procedure", "run", "completes"]).expect_code(0);

    let output = world.proctor(&["doctor", "--repair"]).expect_code(0);
    assert_eq!(output.stderr, "nothing to repair: the journal is sound\neverything is in order\n");

    world.set_variable("PROCTOR_SESSION", "ses_0000000000");
    let _ = world.proctor(&["doctor", "--repair"]).expect_code(4);
}
