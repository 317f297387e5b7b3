use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use insta::assert_snapshot;
use proctor_testkit::World;

use crate::world;

/// A world whose state can be made with `trust --yes`, the smallest command that makes it.
fn asking_world() -> World {
    world().with_file("proctor.toml", "pass-env = ['TOKEN']\n")
}

fn make_state(world: &World) {
    let _ = world.proctor(&["trust", "--yes"]).expect_code(0);
}

fn state_seen_from(world: &World, folder: &str) -> serde_json::Value {
    world.proctor_in(folder, &["where", "--json"]).expect_code(0).json()["state"]["path"].clone()
}

#[test]
fn only_its_owner_can_look_into_state() {
    let world = asking_world();

    make_state(&world);

    for folder in [world.state(), world.state().join("runs"), world.state().join("sessions")] {
        assert_eq!(fs::metadata(&folder).expect("a folder").permissions().mode() & 0o777, 0o700, "{}", folder.display());
    }
    assert_eq!(fs::metadata(world.state().join("trust.json")).expect("a file").permissions().mode() & 0o777, 0o600);
}

#[test]
fn state_that_others_could_read_becomes_private_again() {
    let world = asking_world();
    make_state(&world);
    fs::set_permissions(world.state().join("sessions"), fs::Permissions::from_mode(0o755)).expect("chmod");
    world.write("proctor.toml", "pass-env = ['OTHER']\n");

    make_state(&world);

    assert_eq!(fs::metadata(world.state().join("sessions")).expect("a folder").permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_moved_repository_keeps_its_state() {
    let world = asking_world();
    make_state(&world);
    let state = state_seen_from(&world, ".");

    fs::rename(world.repository(), world.root().join("moved")).expect("moves");

    let moved = world.root().join("moved");
    assert_eq!(world.proctor_in(&moved, &["where", "--json"]).expect_code(0).json()["state"]["path"], state);
    world.write(moved.join("proctor.toml"), "pass-env = ['OTHER']\n");
    let _ = world.proctor_in(&moved, &["trust", "--yes"]).expect_code(0);
    let record = fs::read_to_string(world.state().join("repo.json")).expect("the record");
    assert!(record.contains("/moved/.git"), "{record}");
}

#[test]
fn a_copied_repository_gets_state_of_its_own() {
    let world = asking_world();
    make_state(&world);
    let state = state_seen_from(&world, ".");
    let _ = world.run("cp", &["-a", ".", "../copy"]).expect_code(0);

    assert_eq!(state_seen_from(&world, "../copy"), serde_json::Value::Null);
    let _ = world.proctor_in("../copy", &["trust", "--yes"]).expect_code(0);

    let copys = state_seen_from(&world, "../copy");
    assert_ne!(copys, state);
    assert_ne!(copys, serde_json::Value::Null);
    assert_eq!(state_seen_from(&world, "."), state);
}

#[test]
fn an_id_that_can_not_be_read_is_found_again_by_the_place() {
    for garbled in ["", "what\n"] {
        let world = asking_world();
        make_state(&world);
        let (state, id) = (state_seen_from(&world, "."), world.read(".git/proctor-id"));
        world.write(".git/proctor-id", garbled);

        assert_eq!(state_seen_from(&world, "."), state);
        world.write("proctor.toml", "pass-env = ['OTHER']\n");
        make_state(&world);

        assert_eq!(world.read(".git/proctor-id"), id);
    }
}

#[test]
fn a_state_folder_whose_making_was_cut_short_is_finished() {
    let world = asking_world();
    make_state(&world);
    fs::remove_file(world.state().join("repo.json")).expect("removes");
    fs::remove_dir_all(world.state().join("sessions")).expect("removes");
    world.write("proctor.toml", "pass-env = ['OTHER']\n");

    make_state(&world);

    assert!(world.state().join("repo.json").is_file());
    assert!(world.state().join("sessions").is_dir());
}

#[test]
fn state_that_was_removed_is_made_again_under_the_same_id() {
    let world = asking_world();
    make_state(&world);
    let state = world.state();
    fs::remove_dir_all(&state).expect("removes");

    assert_eq!(state_seen_from(&world, "."), serde_json::Value::Null);
    make_state(&world);

    assert_eq!(world.state(), state);
}

#[test]
fn many_first_starts_at_once_make_one_state() {
    let world = asking_world();

    let started: Vec<_> = (0..8).map(|_| world.start(&["trust", "--yes"])).collect();
    for background in started {
        let _ = background.wait(Duration::from_secs(60)).expect_code(0);
    }

    assert_eq!(state_seen_from(&world, "."), world.state().display().to_string());
}

#[test]
fn state_of_a_newer_proctor_is_never_written() {
    let world = asking_world();
    make_state(&world);
    let record = r#"{"version":2,"common_dir":"/elsewhere","since":"later"}"#;
    world.write(world.state().join("repo.json"), record);

    let output = world.proctor(&["trust", "--yes"]);

    assert_snapshot!(output.snapshot(), @"
    exit 4
    --- stderr
    error: state in [root]/home/.local/state/proctor/repos/repository-[id] was made by a newer proctor (version 2)

    hint: use the newer proctor
    ");
    assert_eq!(world.read(world.state().join("repo.json")), record);
}

#[test]
fn state_that_can_not_be_written_is_refused_with_a_way_out() {
    let world = asking_world().with_variable("PROCTOR_STATE_DIR", "/proc/proctor");

    assert_snapshot!(world.proctor(&["trust", "--yes"]).snapshot(), @"
    exit 1
    --- stderr
    [root]/repository/proctor.toml asks:
      to pass to sessions from your environment (pass-env): TOKEN
    error: state in /proc/proctor/repos can't be written
      because No such file or directory (os error 2)

    hint: set PROCTOR_STATE_DIR to a folder on a local disk that you can write
    ");
}

#[test]
fn without_a_home_there_is_no_place_for_state() {
    let world = asking_world().without_variable("HOME").without_variable("XDG_STATE_HOME");

    assert_snapshot!(world.proctor(&["trust", "--yes"]).snapshot(), @"
    exit 1
    --- stderr
    error: there is no place for state: neither HOME nor XDG_STATE_HOME names a folder

    hint: set PROCTOR_STATE_DIR to a folder on a local disk that you can write
    ");
}

#[test]
fn a_repository_of_any_name_has_state() {
    let world = World::without_repository(env!("CARGO_BIN_EXE_proctor"));
    let folder = world.root().join("odd name\n\u{1b}é");
    fs::create_dir(&folder).expect("a folder");
    let _ = world.proctor_in(&folder, &["where"]).expect_code(2);
    let _ = world.run_in(&folder, "git", &["init", "--quiet"]).expect_code(0);
    world.write(folder.join("proctor.toml"), "pass-env = ['TOKEN']\n");

    let _ = world.proctor_in(&folder, &["trust", "--yes"]).expect_code(0);

    let seen = world.proctor_in(&folder, &["where", "--json"]).expect_code(0).json();
    assert_eq!(seen["state"]["path"], world.state().display().to_string());
}
