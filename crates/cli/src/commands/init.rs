//! `proctor init`: a commented settings file and an example, where there is no procedure yet or one with an agent is
//! wanted.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use proctor_cards::{Layout, list_procedures};
use proctor_domain::ExitCode;

use super::CommandError;
use super::question::{Answer, confirm};
use crate::Invocation;
use crate::args::setup::{InitArgs, LayoutChoice};
use crate::place::{Place, layout_reason};
use crate::printer::visible_line;
use crate::report::Report;
use crate::settings::{DEFAULTS, REPOSITORY_FILE, Setting};

/// A procedure to begin with.
struct Example {
    name: &'static str,
    text: &'static str,
}

/// Its steps are shells.
const HELLO: Example = Example { name: "hello", text: include_str!("init/hello.procedure.card") };
/// An agent does its work.
const README: Example = Example { name: "readme", text: include_str!("init/readme.procedure.card") };

impl Example {
    fn path(&self, layout: Layout) -> PathBuf {
        Path::new(layout.procedures_dir()).join(format!("{}.procedure.card", self.name))
    }
}

/// What `init` will do. Leaves its executor no choice.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    /// Files to make, relative to the card root.
    make: Vec<(PathBuf, String)>,
    /// What stays as it is, and why.
    keep: Vec<String>,
    /// The procedure among the files to make.
    example: Option<&'static str>,
}

/// Plans, asks, writes.
pub fn run(invocation: &Invocation, args: &InitArgs) -> Result<ExitCode, Report> {
    let printer = &invocation.printer;
    let place = Place::find(invocation)?;
    let layout = place.layout.clone().or_flag("--layout", args.layout.map(LayoutChoice::layout));
    let plan = plan(&place.card_root, &layout, args);
    printer.line(&format!(
        "{}: layout {} ({})",
        visible_line(&place.card_root.display().to_string()),
        layout.value.name(),
        layout_reason(&layout)
    ));
    for (path, _) in &plan.make {
        printer.line(&format!("  make {}", path.display()));
    }
    for kept in &plan.keep {
        printer.line(&format!("  keep {kept}"));
    }
    if plan.make.is_empty() {
        printer.say("everything is there already");
        return Ok(ExitCode::Done);
    }
    if args.dry_run {
        return Ok(ExitCode::Done);
    }
    if !args.yes && confirm(invocation, "Go on?", "--yes")? == Answer::No {
        printer.say("nothing was written");
        return Ok(ExitCode::Failed);
    }
    for (path, text) in &plan.make {
        make(&place.card_root.join(path), text)?;
    }
    say_what_next(invocation, &place.card_root, &plan, layout.value);
    if args.agents {
        say_who_works(invocation);
    }
    Ok(ExitCode::Done)
}

fn plan(card_root: &Path, layout: &Setting<Layout>, args: &InitArgs) -> Plan {
    let mut plan = Plan { make: Vec::new(), keep: Vec::new(), example: None };
    if is_there(&card_root.join(REPOSITORY_FILE)) {
        plan.keep.push(format!("{REPOSITORY_FILE}, which is there"));
    } else {
        plan.make.push((PathBuf::from(REPOSITORY_FILE), settings_text(args.layout.map(LayoutChoice::layout))));
    }
    let procedures = list_procedures(card_root, layout.value);
    let example = if args.agents { README } else { HELLO };
    let path = example.path(layout.value);
    if is_there(&card_root.join(&path)) {
        plan.keep.push(format!("{}, which is there", path.display()));
    } else if args.agents || procedures.is_empty() {
        plan.make.push((path, example.text.to_owned()));
        plan.example = Some(example.name);
    } else {
        let many = if procedures.len() == 1 { "1 procedure".to_owned() } else { format!("{} procedures", procedures.len()) };
        plan.keep.push(format!("{}, which has {many}", layout.value.procedures_dir()));
    }
    plan
}

/// Whether anything has that name, be it a symbolic link that leads nowhere.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

impl LayoutChoice {
    fn layout(self) -> Layout {
        match self {
            Self::Proctor => Layout::Proctor,
            Self::Beebox => Layout::BeeBox,
        }
    }
}

/// The defaults, each value commented out, so that the file says what there is and changes nothing.
fn settings_text(layout: Option<Layout>) -> String {
    let mut text = String::from(
        "# Settings of Proctor for this repository. Each shows its default; remove the `#` in front of one to change it.\n\
         # `proctor where` says which files are read. Your own settings are in proctor/config.toml below XDG_CONFIG_HOME.\n\n",
    );
    for line in DEFAULTS.lines() {
        let line = match layout {
            Some(layout) if line.starts_with("layout =") => format!("layout = \"{}\"", layout.name()),
            Some(_) | None if line.is_empty() || line.starts_with('#') => line.to_owned(),
            Some(_) | None => format!("#{line}"),
        };
        text.push_str(&line);
        text.push('\n');
    }
    text.push_str(
        "\n# What names programs, passes variables or makes boxes weaker counts here once you have accepted it with `proctor trust`.\n",
    );
    text
}

/// Makes a file that is not there, whole or not at all; an existing one is never touched, even if it appeared
/// after the plan was made. Not `durable::write`: that replaces, and it makes files that only their owner can read.
fn make(path: &Path, text: &str) -> Result<(), CommandError> {
    let failed = |source: io::Error| CommandError::Make { path: path.to_owned(), source };
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut file =
        tempfile::Builder::new().prefix(".proctor-").permissions(Permissions::from_mode(0o666)).tempfile_in(folder).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist_noclobber(path).map_err(|error| failed(error.error))?;
    Ok(())
}

fn say_what_next(invocation: &Invocation, card_root: &Path, plan: &Plan, layout: Layout) {
    let say = |line: &str| invocation.printer.say(line);
    let paths: Vec<String> = plan.make.iter().map(|(path, _)| path.display().to_string()).collect();
    if layout == Layout::BeeBox && plan.make.iter().any(|(path, _)| path == Path::new(REPOSITORY_FILE)) {
        say(&format!("Bee Box's own checks may refuse {REPOSITORY_FILE}; nothing needs it, so it can be deleted."));
    }
    say("\nNext:");
    if card_root != invocation.directory {
        say(&format!("  cd {}", visible_line(&card_root.display().to_string())));
    }
    say(&format!("  git add {} && git commit -m 'Add procedures'", paths.join(" ")));
    match plan.example {
        Some(name) => {
            say(&format!("  proctor procedure show {name}"));
            say(&format!("  proctor procedure run {name}"));
        }
        None => say("  proctor procedure list"),
    }
}

/// What drives agents, and how to see what happens before one is paid for.
fn say_who_works(invocation: &Invocation) {
    let say = |line: &str| invocation.printer.say(line);
    say("\nAgents are driven by the engine that the setting `engine` names, at first claude (Claude Code):");
    say("  proctor engines                        what is installed and logged in");
    say("  proctor demo                           an agent, a judge and a repair, without a model");
    say("  proctor procedure run … --script FILE  a script plays the agent");
}

#[cfg(test)]
mod tests {
    use proctor_cards::{BoxDefaults, Source, read_procedure};
    use proctor_domain::procedure::Isolation;

    use super::*;
    use crate::environment::Environment;
    use crate::settings::{Layers, LayoutRule, trust::Consent};

    #[test]
    fn the_examples_are_cards_without_findings() {
        for example in [HELLO, README] {
            let source = Source { path: example.path(Layout::Proctor), text: example.text.to_owned() };

            let card = read_procedure(&source, Layout::Proctor, &BoxDefaults::default()).expect("a good card");

            assert_eq!(card.warnings, []);
            assert_eq!(card.definition.name, example.name);
            let needs_agents = card.definition.steps.iter().any(proctor_domain::procedure::StepSpec::needs_agents);
            assert_eq!(card.definition.isolation == Some(Isolation::Worktree), needs_agents, "agents get a worktree of their own");
        }
    }

    #[test]
    fn the_settings_file_changes_nothing_but_the_chosen_layout() {
        let folder = tempfile::tempdir().expect("a folder");
        for (chosen, expected) in [(None, LayoutRule::Find), (Some(Layout::BeeBox), LayoutRule::Fixed(Layout::BeeBox))] {
            let path = folder.path().join(format!("{chosen:?}.toml"));
            make(&path, &settings_text(chosen)).expect("makes the file");
            let without = Layers::read(&Environment::default(), None).expect("reads").settle(Consent::NotNeeded);

            let settings = Layers::read(&Environment::default(), Some(&path)).expect("reads").settle(Consent::NotNeeded);

            assert_eq!(settings.layout.value, expected);
            assert_eq!((settings.records, settings.pass_env), (without.records, without.pass_env));
        }
    }

    #[test]
    fn a_file_that_is_there_is_never_touched() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("proctor.toml");
        make(&path, "mine").expect("makes the file");

        assert!(make(&path, "other").is_err());

        assert_eq!(std::fs::read_to_string(&path).expect("reads"), "mine");
        assert_eq!(std::fs::read_dir(folder.path()).expect("lists").count(), 1);
    }
}
