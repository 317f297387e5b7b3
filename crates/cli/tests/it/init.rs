use std::fs;
use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;

use crate::{GOOD, world};

#[test]
fn without_a_terminal_it_writes_nothing_unless_told() {
    let world = world();

    assert_snapshot!(world.proctor(&["init"]).snapshot(), @"
    exit 2
    --- stdout
    [root]/repository: layout proctor (found)
      make proctor.toml
      make proctor/procedures/hello.procedure.card
    --- stderr
    error: there is no terminal to ask on

    hint: give --yes to go on without being asked
    ");
    assert!(!world.has("proctor.toml"));
    assert!(!world.has("proctor"));
}

#[test]
fn a_dry_run_prints_the_plan_and_writes_nothing() {
    let world = world();

    assert_snapshot!(world.proctor(&["init", "--dry-run"]).snapshot(), @"
    exit 0
    --- stdout
    [root]/repository: layout proctor (found)
      make proctor.toml
      make proctor/procedures/hello.procedure.card
    ");
    assert!(!world.has("proctor.toml"));
}

#[test]
fn it_writes_settings_and_an_example_and_says_what_next() {
    let world = world();

    assert_snapshot!(world.proctor(&["init", "--yes"]).snapshot(), @"
    exit 0
    --- stdout
    [root]/repository: layout proctor (found)
      make proctor.toml
      make proctor/procedures/hello.procedure.card
    --- stderr

    Next:
      git add proctor.toml proctor/procedures/hello.procedure.card && git commit -m 'Add procedures'
      proctor procedure show hello
      proctor procedure run hello
    ");
    assert_snapshot!(world.read("proctor.toml"), @r#"
    # Settings of Proctor for this repository. Each shows its default; remove the `#` in front of one to change it.
    # `proctor where` says which files are read. Your own settings are in proctor/config.toml below XDG_CONFIG_HOME.

    # Where cards and records lie: "proctor" (proctor/procedures), "beebox" (_config/procedures), or "auto",
    # which takes "beebox" where a box is found and "proctor" everywhere else.
    #layout = "auto"

    # Where a run is recorded, unless its card says: "state" (in the journal; one commit for each step that changed
    # something), "git" (also as run cards in the repository), or "auto", which takes what the layout is used to.
    #records = "auto"

    # Environment variables that the shells of steps get beyond the usual ones.
    #pass-env = []

    # Programs that may stay behind when a step ends, such as build servers.
    #linger = []

    # Longest time that the shells of one phase may take, unless the step has a `timeout`.
    #shell-timeout = "30m"

    # What `pass-env` and `linger` say here counts once you have accepted it with `proctor trust`.
    "#);
    let _ = world.proctor(&["procedure", "lint"]).expect_code(0);
}

#[test]
fn what_it_writes_others_can_read() {
    let world = world();

    let _ = world.run("bash", &["-c", "umask 022; \"$0\" init --yes", env!("CARGO_BIN_EXE_proctor")]).expect_code(0);

    let mode = fs::metadata(world.repository().join("proctor.toml")).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
}

#[test]
fn what_is_there_is_never_touched() {
    let world = world().with_card("mine", GOOD).with_file("proctor.toml", "# mine\n");

    assert_snapshot!(world.proctor(&["init", "--yes"]).snapshot(), @"
    exit 0
    --- stdout
    [root]/repository: layout proctor (found)
      keep proctor.toml, which is there
      keep proctor/procedures, which has 1 procedure
    --- stderr
    everything is there already
    ");
    assert_eq!(world.read("proctor.toml"), "# mine\n");
    assert!(!world.has("proctor/procedures/hello.procedure.card"));
}

#[test]
fn a_link_that_leads_nowhere_is_not_followed() {
    let world = world();
    std::os::unix::fs::symlink("../outside.toml", world.repository().join("proctor.toml")).expect("a link");

    let _ = world.proctor(&["init", "--yes"]).expect_code(0);

    assert!(!world.has("../outside.toml"));
}

#[test]
fn in_a_box_the_example_is_where_its_procedures_are() {
    let world = world().with_file(".beebox/box.json", "{}");

    assert_snapshot!(world.proctor(&["init", "--yes"]).snapshot(), @"
    exit 0
    --- stdout
    [root]/repository: layout beebox (found)
      make proctor.toml
      make _config/procedures/hello.procedure.card
    --- stderr
    Bee Box's own checks may refuse proctor.toml; nothing needs it, so it can be deleted.

    Next:
      git add proctor.toml _config/procedures/hello.procedure.card && git commit -m 'Add procedures'
      proctor procedure show hello
      proctor procedure run hello
    ");
    assert!(world.has("_config/procedures/hello.procedure.card"));
}

#[test]
fn a_chosen_layout_is_written_down() {
    let world = world();

    let _ = world.proctor(&["init", "--yes", "--layout", "beebox"]).expect_code(0);

    assert!(world.read("proctor.toml").contains("\nlayout = \"beebox\"\n"));
    assert_eq!(world.proctor(&["where", "--json"]).json()["layout"]["name"], "beebox");
}

#[test]
fn from_below_it_prepares_the_whole_repository() {
    let world = world().with_file("src/file", "");

    assert_snapshot!(world.proctor_in("src", &["init", "--yes"]).snapshot(), @"
    exit 0
    --- stdout
    [root]/repository: layout proctor (found)
      make proctor.toml
      make proctor/procedures/hello.procedure.card
    --- stderr

    Next:
      cd [root]/repository
      git add proctor.toml proctor/procedures/hello.procedure.card && git commit -m 'Add procedures'
      proctor procedure show hello
      proctor procedure run hello
    ");
    assert!(world.has("proctor.toml"));
    assert!(!world.has("src/proctor.toml"));
}
