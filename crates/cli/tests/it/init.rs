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
    let _ = world.proctor(&["procedure", "lint"]).expect_code(0);
}

#[test]
fn the_settings_that_it_writes_show_every_default() {
    let world = world();

    let _ = world.proctor(&["init", "--yes"]).expect_code(0);

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

    # Environment variables whose values are never written: not in transcripts, not in records. Those of all settings
    # files add up.
    #secrets = []

    # Longest time that the shells of one phase may take, unless the step has a `timeout`.
    #shell-timeout = "30m"

    # Longest time that one agent may take, unless the step has a `timeout`.
    #agent-timeout = "60m"

    # Longest time that an agent may give no sign of life: no output, and nothing that it started uses the processor.
    #agent-silence = "15m"

    # The box of agents: "bwrap", "landlock", "container", "none", or "auto", which takes the stronger of the first two
    # that can be had here. A box that is named and can't be had refuses to run agents. A container needs `box.image`, an image
    # that is here, and `podman` or `docker`; `box.program` says which.
    #confine = "auto"

    # What agents reach of the network: "all", or "none", for which there has to be a box, and an engine that needs none.
    #net = "all"

    # Whether agents are shown what memory knows about their task before they start, and whether memory is told what their
    # checked work taught. A card can switch both off for itself (`memory: off`).
    #memory.known-here = true
    #memory.proposals = true

    # What drives agents: "claude" (Claude Code), "codex" (Codex), "opencode" (OpenCode), or "scripted", which does what a
    # file says and calls no model. The file is named by `engines.scripted.script`; a relative path begins where this file is.
    #engine = "claude"

    # What drives judges, where that is to be another engine than the one that drives agents.
    # judge = "codex"

    # The program of Claude Code: a name that is looked up in PATH, or a path.
    #engines.claude.program = "claude"

    # Whether agents get your own settings, memory and tools of Claude Code.
    #engines.claude.inherit = false

    # What an agent does that is in no box and would have to ask: "ask" (it is refused) or "bypass" (it may). In a box it
    # may.
    #engines.claude.permission = "ask"

    # The same for Codex.
    #engines.codex.program = "codex"
    #engines.codex.inherit = false
    #engines.codex.permission = "ask"

    # The same for OpenCode.
    #engines.opencode.program = "opencode"
    #engines.opencode.inherit = false
    #engines.opencode.permission = "ask"

    # What the models are called that cards ask for by their tier.
    #models.claude.efficient = "haiku"
    #models.claude.balanced = "sonnet"
    #models.claude.strong = "opus"
    #models.claude.strongest = "fable"
    #models.codex.efficient = "gpt-6-luna"
    #models.codex.balanced = "gpt-6.2-sol"
    #models.codex.strong = "gpt-6.2-astra"
    #models.codex.strongest = "gpt-6.2-astra"
    #models.opencode.efficient = "anthropic/claude-haiku-4-5"
    #models.opencode.balanced = "anthropic/claude-sonnet-5"
    #models.opencode.strong = "anthropic/claude-opus-5-5"
    #models.opencode.strongest = "anthropic/claude-fable-5-1"

    # What names programs, passes variables or makes boxes weaker counts here once you have accepted it with `proctor trust`.
    "#);
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

#[test]
fn with_agents_it_writes_a_procedure_in_a_worktree_of_its_own_beside_those_that_are_there() {
    let world = world().with_card("mine", GOOD);

    assert_snapshot!(world.proctor(&["init", "--yes", "--agents"]).snapshot(), @"
    exit 0
    --- stdout
    [root]/repository: layout proctor (found)
      make proctor.toml
      make proctor/procedures/readme.procedure.card
    --- stderr

    Next:
      git add proctor.toml proctor/procedures/readme.procedure.card && git commit -m 'Add procedures'
      proctor procedure show readme
      proctor procedure run readme

    Agents are driven by the engine that the setting `engine` names, at first claude (Claude Code):
      proctor engines                        what is installed and logged in
      proctor demo                           an agent, a judge and a repair, without a model
      proctor procedure run … --script FILE  a script plays the agent
    ");
    assert!(world.read("proctor/procedures/readme.procedure.card").contains("\nisolation: worktree\n"));
    let _ = world.proctor(&["procedure", "lint"]).expect_code(0);
    assert_snapshot!(world.proctor(&["init", "--yes", "--agents"]).snapshot(), @"
    exit 0
    --- stdout
    [root]/repository: layout proctor (found)
      keep proctor.toml, which is there
      keep proctor/procedures/readme.procedure.card, which is there
    --- stderr
    everything is there already
    ");
}
