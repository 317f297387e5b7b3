//! Documents made from the program itself, so that they can't disagree with it. `cargo xtask generate` writes them.

use clap::{Arg, ArgAction, CommandFactory};
use proctor_domain::ExitCode;
use proctor_engine::agent::{EngineKind, ModelTable, TIERS, engine};

use proctor_process::confine::{BoxKind, CONTRACT, Hold};

use crate::args::CommandLine;
use crate::commands::engines::abilities;
use crate::environment::{SetBy, VARIABLES};
use crate::settings::{Consented, DEFAULTS, KEYS, Reach};

const MADE: &str = "<!-- Made by `cargo xtask generate`. Change the program, not this file. -->\n\n";

/// Every command with its arguments, as Markdown.
pub fn cli_reference() -> String {
    let mut command = CommandLine::command();
    command.build();
    let mut text = format!("# Command line\n\n{MADE}");
    describe(&command, "proctor", &mut text);
    text
}

/// Every tool of `proctor mcp` with its arguments, as Markdown.
pub fn mcp_tools() -> String {
    let lead = "What [`proctor mcp`](mcp.md) offers to agents. A text is at most 8 KiB long; what is blank or null counts as left out.";
    format!("# Tools\n\n{MADE}{lead}\n\n{}", crate::commands::mcp::reference())
}

fn describe(command: &clap::Command, path: &str, text: &mut String) {
    if path != "proctor" {
        line(text, &format!("## `{path}`\n"));
    }
    let about = command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string).unwrap_or_default();
    line(text, &format!("{}\n", sentence(&about)));
    line(text, &format!("```text\n{}\n```\n", usage(command, path)));
    let shown = |argument: &&Arg| !argument.is_hide_set() && argument.get_id() != "help" && argument.get_id() != "version";
    let is_top = path == "proctor";
    let arguments: Vec<&Arg> = command.get_arguments().filter(shown).filter(|argument| is_top || !argument.is_global_set()).collect();
    if !arguments.is_empty() {
        line(text, if is_top { "Options of every command:\n\n| | |\n|---|---|" } else { "| | |\n|---|---|" });
        for argument in arguments {
            line(text, &format!("| `{}` | {} |", cell(&signature(argument)), cell(&meaning(argument))));
        }
        line(text, "");
    }
    if let Some(after) = command.get_after_help().map(ToString::to_string) {
        match after.split_once(":\n") {
            Some((_, example)) => line(text, &format!("```sh\n{}\n```\n", unindented(example))),
            None => line(text, &format!("{after}\n")),
        }
    }
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        describe(inner, &format!("{path} {}", inner.get_name()), text);
    }
}

fn usage(command: &clap::Command, path: &str) -> String {
    let usage = command.clone().render_usage().to_string();
    // The parser prints the path only for commands that it reached while parsing.
    let rest = usage.split_once(command.get_name()).map_or("", |(_, rest)| rest);
    format!("{path}{rest}")
}

fn signature(argument: &Arg) -> String {
    let values = argument.get_value_names().map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
    let takes_value = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
    let value = values.filter(|_| takes_value).map(|value| format!("<{value}>"));
    let names: Vec<String> = [argument.get_short().map(|short| format!("-{short}")), argument.get_long().map(|long| format!("--{long}"))]
        .into_iter()
        .flatten()
        .collect();
    match (names.is_empty(), value) {
        (true, value) => value.unwrap_or_default(),
        (false, None) => names.join(", "),
        (false, Some(value)) => format!("{} {value}", names.join(", ")),
    }
}

fn meaning(argument: &Arg) -> String {
    let help = argument.get_long_help().or_else(|| argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let choices: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|_| matches!(argument.get_action(), ArgAction::Set | ArgAction::Append))
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    let help = sentence(&help);
    if choices.is_empty() { help } else { format!("{help} One of {}.", choices.join(", ")) }
}

/// Every exit code, as Markdown.
pub fn exit_codes() -> String {
    let mut text = format!("# Exit codes\n\n{MADE}| code | meaning |\n|---|---|\n");
    for code in ExitCode::ALL {
        line(&mut text, &format!("| {} | {} |", code.code(), cell(code.meaning())));
    }
    text
}

/// Every environment variable, as Markdown.
pub fn environment() -> String {
    let mut text = format!("# Environment variables\n\n{MADE}");
    for (title, set_by) in [
        ("Read by Proctor", SetBy::Caller),
        ("Set for the shells of steps", SetBy::Proctor),
        ("Set for git", SetBy::ProctorForGit),
        ("For tests of Proctor itself", SetBy::Tests),
    ] {
        line(&mut text, &format!("## {title}\n\n| variable | meaning |\n|---|---|"));
        for variable in VARIABLES.iter().filter(|variable| variable.set_by == set_by) {
            line(&mut text, &format!("| `{}` | {} |", cell(variable.name), cell(variable.meaning)));
        }
        line(&mut text, "");
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// Every setting, as Markdown.
pub fn settings() -> String {
    let mut text = format!("# Settings\n\n{MADE}");
    text.push_str(
        "Settings come from, each over the one before: defaults, your own `$XDG_CONFIG_HOME/proctor/config.toml`, the repository's\n\
         `proctor.toml`, environment variables, options of a command. Lists replace each other whole, but for `secrets`, which add\n\
         up. Unknown keys are errors. A relative path begins in the folder of the file that says it.\n\n\
         What a repository says about settings that need consent counts once you have accepted it with `proctor trust`; until then\n\
         no run starts there. What `confine`, `inherit` and `permission` say needs none where you have the same.\n\n\
         | setting | variable | in a repository |\n|---|---|---|\n",
    );
    for facts in KEYS {
        let variable = facts.variable.map_or(String::new(), |variable| format!("`{}`", variable.name));
        let repository = match (facts.reach, facts.key.consent()) {
            (Reach::User, _) => "no",
            (Reach::Repository, Consented::Always) => "needs consent",
            (Reach::Repository, Consented::WhenWeaker) => "needs consent where it could be weaker than yours",
            (Reach::Repository, Consented::Never) => "yes",
        };
        line(&mut text, &format!("| `{}` | {variable} | {repository} |", facts.name));
    }
    line(&mut text, "| `engines.NAME` of [an engine of your own](engines.md#engines-of-your-own) |  | needs consent |");
    line(&mut text, "\n`state-dir` is the absolute folder that holds the state of all repositories; by default `$XDG_STATE_HOME/proctor`.");
    line(
        &mut text,
        "\nThe defaults of the others, as `proctor init` writes them, commented out. Keys with dots may also be written as tables\n(`[engines.claude]`), but not both in one file.",
    );
    line(&mut text, &format!("\n```toml\n{}\n```", DEFAULTS.trim_end()));
    text
}

/// What each engine can do by itself, as a Markdown table.
pub fn capabilities() -> String {
    let mut text = heading("", &EngineKind::ALL.map(|kind| format!("`{kind}`")));
    let able = EngineKind::ALL.map(|kind| abilities(engine(kind).capabilities()));
    let names = abilities(engine(EngineKind::Scripted).capabilities()).map(|(name, _)| name);
    for (position, name) in names.into_iter().enumerate() {
        let cells = able.map(|of_engine| if of_engine[position].1 { "yes" } else { "no" });
        line(&mut text, &format!("| {} | {} |", name.replace('_', " "), cells.join(" | ")));
    }
    text
}

/// What the tiers of models are called, as a Markdown table.
pub fn tiers() -> String {
    let engines = EngineKind::ALL.map(|kind| format!("`{kind}`"));
    let mut text = heading("tier | alias", &engines);
    for row in TIERS {
        let models = EngineKind::ALL.map(|kind| format!("`{}`", ModelTable::default().model(&kind.engine_name(), kind, row.name)));
        line(&mut text, &format!("| `{}` | `{}` | {} |", row.name, row.alias, models.join(" | ")));
    }
    text
}

fn heading(first: &str, engines: &[String]) -> String {
    let columns = first.matches('|').count() + 1 + engines.len();
    let first = if first.is_empty() { String::new() } else { format!("{first} ") };
    format!("| {first}| {} |\n|{}\n", engines.join(" | "), "---|".repeat(columns))
}

/// What every kind of box holds, as Markdown.
pub fn box_contract() -> String {
    let kinds = [BoxKind::Bwrap, BoxKind::Landlock, BoxKind::Container];
    let mut text = format!(
        "# What boxes hold\n\n{MADE}What a session is kept from, by the kind of its [box](boxes.md). A cell that is open is named by its word where the\n\
         box is told: by `proctor doctor`, by `proctor engines`, and in the record of a run (`proctor show`). Every cell of this table is\n\
         tried by a test that tries to break out.\n\n| a session can't | word | {} |\n|{}\n",
        kinds.map(|kind| format!("`{kind}`")).join(" | "),
        "---|".repeat(kinds.len() + 2)
    );
    for facts in &CONTRACT {
        let cells = kinds.map(|kind| hold(facts.held_by(kind)));
        line(&mut text, &format!("| {} | `{}` | {} |", cell(facts.meaning), facts.name, cells.join(" | ")));
    }
    text
}

fn hold(hold: Hold) -> String {
    match hold {
        Hold::Always => "held".to_owned(),
        Hold::FromLandlock(version, reason) => format!("held from version {version} on: {reason}"),
        Hold::WithoutNetwork(reason) => format!("held with `net = \"none\"`, else **open**: {reason}"),
        Hold::Never(reason) => format!("**open**: {reason}"),
    }
}

/// Every key of a procedure card, as Markdown.
pub fn card_reference() -> String {
    let mut text = format!("# Keys of a procedure card\n\n{MADE}| key | value | default | meaning |\n|---|---|---|---|\n");
    for key in proctor_cards::key_reference() {
        line(&mut text, &format!("| `{}` | {} | {} | {} |", cell(key.path), cell(key.kind), cell(key.default), cell(key.description)));
    }
    text
}

fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.ends_with('.') { text.to_owned() } else { format!("{text}.") }
}

fn unindented(text: &str) -> String {
    text.lines().map(str::trim_start).collect::<Vec<_>>().join("\n")
}
