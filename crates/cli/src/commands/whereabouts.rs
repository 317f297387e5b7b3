//! `proctor where`

use std::path::Path;

use proctor_domain::ExitCode;
use proctor_orchestrator::StateFolder;
use serde::Serialize;

use crate::Invocation;
use crate::args::setup::WhereArgs;
use crate::place::{Place, layout_reason};
use crate::printer::visible_line;
use crate::report::Report;

#[derive(Serialize)]
struct Whereabouts {
    version: u32,
    work_tree: String,
    git_dir: String,
    common_dir: String,
    card_root: String,
    layout: Layout,
    settings: SettingsFiles,
    state: State,
    journal: Option<File>,
}

#[derive(Serialize)]
struct Layout {
    name: &'static str,
    source: String,
}

#[derive(Serialize)]
struct SettingsFiles {
    user: Option<File>,
    repository: Option<File>,
}

#[derive(Serialize)]
struct File {
    path: String,
    exists: bool,
}

#[derive(Serialize)]
struct State {
    /// Absent as long as the repository has no state.
    path: Option<String>,
    /// The folder that holds the state of all repositories.
    home: String,
}

impl File {
    fn of(path: &Path) -> Self {
        Self { path: shown(path), exists: path.is_file() }
    }

    fn line(&self) -> String {
        if self.exists { self.path.clone() } else { format!("{} (not there)", self.path) }
    }
}

fn shown(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    proctor_domain::RepoPath::new(path.as_os_str().as_bytes()).to_string()
}

/// Prints where things are.
pub fn run(invocation: &Invocation, args: &WhereArgs) -> Result<ExitCode, Report> {
    let place = Place::find(invocation)?;
    let state = place.find_state(invocation)?;
    let whereabouts = Whereabouts {
        version: 1,
        work_tree: shown(&place.repository.work_tree),
        git_dir: shown(&place.repository.git_dir),
        common_dir: shown(&place.repository.common_dir),
        card_root: shown(&place.card_root),
        layout: Layout { name: place.layout.value.name(), source: place.layout.source.to_string() },
        settings: SettingsFiles {
            user: place.layers.user_file.as_deref().map(File::of),
            repository: place.layers.repository_file.as_deref().map(File::of),
        },
        state: State { path: state.as_ref().map(|state| shown(state.root())), home: shown(place.state_home(invocation)?.path()) },
        journal: state.as_ref().map(StateFolder::root).map(|root| File::of(&root.join("journal.db"))),
    };
    if args.json {
        invocation.printer.json(&whereabouts);
    } else {
        print(invocation, &place, &whereabouts);
    }
    Ok(ExitCode::Done)
}

fn print(invocation: &Invocation, place: &Place, whereabouts: &Whereabouts) {
    let line = |name: &str, value: &str| invocation.printer.line(&format!("{name:<13} {}", visible_line(value)));
    let absent = "none";
    line("work tree", &whereabouts.work_tree);
    line("git", &whereabouts.common_dir);
    line("card root", &whereabouts.card_root);
    line("layout", &format!("{} ({})", whereabouts.layout.name, layout_reason(&place.layout)));
    line("settings", &whereabouts.settings.repository.as_ref().map_or_else(|| absent.to_owned(), File::line));
    line("own settings", &whereabouts.settings.user.as_ref().map_or_else(|| absent.to_owned(), File::line));
    match &whereabouts.state.path {
        Some(path) => line("state", path),
        None => line("state", &format!("none yet (will be in {})", whereabouts.state.home)),
    }
    line("journal", &whereabouts.journal.as_ref().map_or_else(|| "none yet".to_owned(), File::line));
}
