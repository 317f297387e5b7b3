use insta::assert_snapshot;
use proctor_testkit::World;

use crate::world;

#[test]
fn outside_of_a_repository_the_error_says_what_to_do() {
    let world = World::without_repository(env!("CARGO_BIN_EXE_proctor"));

    assert_snapshot!(world.proctor_in(world.root(), &["where"]).snapshot(), @"
    exit 2
    --- stderr
    error: failed to find a git repository at or above [root]

    hint: git init
    ");
}

#[test]
fn a_bare_repository_has_nothing_to_work_on() {
    let world = world();
    world.git(&["init", "--quiet", "--bare", "../bare.git"]);

    assert_snapshot!(world.proctor_in("../bare.git", &["where", "--json"]).snapshot(), @r#"
    exit 2
    --- stdout
    {"version":1,"exit_code":2,"error":{"kind":"user","message":"failed to work in [root]/bare.git: it is a bare repository, which has no files","hints":["make a work tree with `git worktree add ../work` and go there"]}}
    --- stderr
    error: failed to work in [root]/bare.git: it is a bare repository, which has no files

    hint: make a work tree with `git worktree add ../work` and go there
    "#);
}

#[test]
fn without_git_the_error_names_it() {
    let world = world().with_variable("PATH", "/nowhere");

    assert_snapshot!(world.proctor(&["where"]).snapshot(), @"
    exit 1
    --- stderr
    error: failed to find git on PATH

    hint: install git 2.31 or later
    ");
}

#[test]
fn it_names_every_place_and_makes_nothing() {
    let world = world();

    assert_snapshot!(world.proctor(&["where"]).snapshot(), @"
    exit 0
    --- stdout
    work tree     [root]/repository
    git           [root]/repository/.git
    card root     [root]/repository
    layout        proctor (found)
    settings      none
    own settings  [root]/home/.config/proctor/config.toml (not there)
    state         none yet (will be in [root]/home/.local/state/proctor)
    journal       none yet
    ");
    assert!(!world.home().join(".local").exists());
    assert!(!world.has(".git/proctor-id"));
}

#[test]
fn it_names_the_same_places_in_json() {
    let world = world().with_file("proctor.toml", "pass-env = ['TOKEN']\n");
    world.write(world.user_settings(), "shell-timeout = '5m'\n");
    let _ = world.proctor(&["trust", "--yes"]).expect_code(0);

    assert_snapshot!(world.proctor(&["where", "--json"]).snapshot(), @r#"
    exit 0
    --- stdout
    {"version":1,"work_tree":"[root]/repository","git_dir":"[root]/repository/.git","common_dir":"[root]/repository/.git","card_root":"[root]/repository","layout":{"name":"proctor","source":"default"},"settings":{"user":{"path":"[root]/home/.config/proctor/config.toml","exists":true},"repository":{"path":"[root]/repository/proctor.toml","exists":true}},"state":{"path":"[root]/home/.local/state/proctor/repos/repository-[id]","home":"[root]/home/.local/state/proctor"},"journal":{"path":"[root]/home/.local/state/proctor/repos/repository-[id]/journal.db","exists":false}}
    "#);
}

#[test]
fn the_card_root_is_the_folder_of_the_nearest_settings_file() {
    let world = world().with_file("part/proctor.toml", "").with_file("part/deep/er/file", "");

    let inside = world.proctor_in("part/deep/er", &["where", "--json"]).expect_code(0).json();
    let outside = world.proctor(&["where", "--json"]).expect_code(0).json();

    assert_eq!(inside["card_root"], world.repository().join("part").display().to_string());
    assert_eq!(outside["card_root"], world.repository().display().to_string());
}

#[test]
fn a_settings_file_above_the_repository_is_somebody_elses() {
    let world = world();
    world.write("../proctor.toml", "no such thing");

    let output = world.proctor(&["where", "--json"]).expect_code(0);

    assert_eq!(output.json()["settings"]["repository"], serde_json::Value::Null);
}

#[test]
fn a_box_is_found_from_below() {
    let world = world().with_file(".beebox/box.json", "{}").with_file("_content/inbox/file", "");

    let output = world.proctor_in("_content/inbox", &["where"]).expect_code(0);

    assert!(output.stdout.contains("layout        beebox (found)"), "{output}");
}

#[test]
fn all_work_trees_of_a_repository_share_its_state() {
    let world = world().with_file("proctor.toml", "pass-env = ['TOKEN']\n");
    world.commit_all("Add settings");
    let _ = world.proctor(&["trust", "--yes"]).expect_code(0);
    world.git(&["worktree", "add", "--quiet", "../second"]);

    let first = world.proctor(&["where", "--json"]).expect_code(0).json();
    let second = world.proctor_in("../second", &["where", "--json"]).expect_code(0).json();

    assert_eq!(first["state"], second["state"]);
    assert_eq!(second["work_tree"], world.root().join("second").display().to_string());
}
