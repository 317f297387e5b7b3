use clap::CommandFactory;
use insta::assert_snapshot;
use proctor::args::CommandLine;

use crate::world;

#[test]
fn an_unknown_command_exits_2_and_names_the_nearest() {
    assert_snapshot!(world().proctor(&["procedure", "lnt"]).snapshot(), @"
    exit 2
    --- stderr
    error: unrecognized subcommand 'lnt'

      tip: some similar subcommands exist: 'list', 'lint'

    Usage: proctor procedure [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
}

#[test]
fn a_usage_error_is_also_an_object_where_json_was_asked_for() {
    let output = world().proctor(&["procedure", "show", "--json"]).expect_code(2);

    assert_eq!(output.json()["error"]["kind"], "user");
    assert_snapshot!(output.snapshot(), @r#"
    exit 2
    --- stdout
    {"version":1,"exit_code":2,"error":{"kind":"user","message":"the following required arguments were not provided: <NAME|PATH>","hints":["see `proctor --help`"]}}
    --- stderr
    error: the following required arguments were not provided:
      <NAME|PATH>

    Usage: proctor procedure show --json <NAME|PATH>

    For more information, try '--help'.
    "#);
}

#[test]
fn a_usage_error_without_json_leaves_stdout_empty() {
    let output = world().proctor(&["where", "--jsn"]).expect_code(2);

    assert_eq!(output.stdout, "");
}

#[test]
fn no_command_is_a_usage_error_that_shows_the_help() {
    let output = world().proctor(&[]).expect_code(2);

    assert_eq!(output.stdout, "");
    assert_snapshot!(output.snapshot(), @"
    exit 2
    --- stderr
    Sets the work of shell procedures and coding agents, watches it, and believes only what it can check

    Usage: proctor [OPTIONS] <COMMAND>

    Commands:
      init         Prepare a repository
      where        Print where things are
      procedure    Run, resume and look after procedures
      runs         List runs, newest first
      show         Show a run or a session
      log          Print what a run or a session wrote
      cost         Show what agents cost
      answer       Answer what a parked run asks
      say          Say something to an agent at work
      stop         Stop a run
      memory       Keep and find what works, with its trap, and what fails
      mcp          Offer memory and runs to agents, as a server of the Model Context Protocol
      hook         Let the programs of agents ask memory by themselves
      doctor       Check git, state, journal, cards and what is left of dead runs
      engines      List what can drive agents here
      demo         See it work in a small repository made for it
      trust        Accept the sensitive settings of this repository
      completions  Print a completion script for a shell
      dev          Tools for those who write cards

    Options:
      -C, --directory <DIR>  Work as if started in this directory
      -q, --quiet            Say nothing but results and errors
          --color <WHEN>     When to use colour; `auto` means on a terminal, unless NO_COLOR is set
                             [default: auto] [possible values: auto, always, never]
      -h, --help             Print help (see more with '--help')
      -V, --version          Print version

    Start with `proctor demo` to see it work, or with `proctor init` in a repository of yours.
    ");
}

#[test]
fn help_is_data() {
    let output = world().proctor(&["procedure", "lint", "--help"]).expect_code(0);

    assert_eq!(output.stderr, "");
    assert_snapshot!(output.snapshot(), @"
    exit 0
    --- stdout
    Check cards without running them

    Checks the named procedures, or all of them. Exits 0 when there is nothing to say and 1 when there
    are findings, errors and warnings alike.

    Usage: proctor procedure lint [OPTIONS] [NAME|PATH]...

    Arguments:
      [NAME|PATH]...
              Names or paths; all procedures when absent

    Options:
      -C, --directory <DIR>
              Work as if started in this directory

          --json
              Print one JSON object

      -q, --quiet
              Say nothing but results and errors

          --color <WHEN>
              When to use colour; `auto` means on a terminal, unless NO_COLOR is set

              Possible values:
              - auto:   On a terminal, unless NO_COLOR is set or TERM is `dumb`
              - always: Also into a pipe or file
              - never:  Nowhere
              
              [default: auto]

      -h, --help
              Print help (see a summary with '-h')

    Example:
      proctor procedure lint && git commit -m 'Tighten the release check'
    ");
}

#[test]
fn every_command_says_what_it_does_and_shows_an_example() {
    fn check(command: &clap::Command, path: &str) {
        assert!(command.get_about().is_some(), "{path} says nothing about itself");
        let leaf = command.get_subcommands().next().is_none();
        let example = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(!leaf || example.contains("Example"), "{path} has no example");
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{path}: {} has no help", argument.get_id());
        }
        for inner in command.get_subcommands() {
            check(inner, &format!("{path} {}", inner.get_name()));
        }
    }

    check(&CommandLine::command(), "proctor");
}

#[test]
fn the_version_is_one_line() {
    let world = world();

    for flag in ["--version", "-V"] {
        let output = world.proctor(&[flag]).expect_code(0);

        assert_eq!(output.stdout, concat!("proctor ", env!("CARGO_PKG_VERSION"), "\n"));
    }
}

#[test]
fn a_directory_that_is_not_there_is_the_users_mistake() {
    assert_snapshot!(world().proctor(&["-C", "nowhere", "where"]).snapshot(), @"
    exit 2
    --- stderr
    error: can't work in [root]/repository/nowhere
      because No such file or directory (os error 2)
    ");
}

#[test]
fn a_directory_can_be_given_instead_of_going_there() {
    let world = world();

    let there = world.proctor_in(world.root(), &["-C", "repository", "where", "--json"]).expect_code(0);

    assert_eq!(there.json(), world.proctor(&["where", "--json"]).json());
}

#[test]
fn completions_know_the_commands() {
    let world = world();

    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = world.proctor(&["completions", shell]).expect_code(0);

        assert!(output.stdout.contains("procedure"), "{shell}");
    }
}
