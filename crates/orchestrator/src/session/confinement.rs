//! The box around an agent's session.

use std::ffi::OsStr;
use std::path::PathBuf;

use proctor_domain::SessionId;
use proctor_engine::agent::{Access, EngineKind, EngineSetup, engine};
use proctor_engine::tools::ToolServer;
use proctor_process::confine::{self, BoxKind, BoxRules, ChosenBox, Confine, ConfineError, ContainerSetup, Net};
use proctor_process::find_program;

use crate::{AgentSettings, Site};

/// What of the repository's own folder an agent may write: its objects, its references and their history, and what
/// belongs to this working tree. Never its settings, its hooks, or what others have there.
const WRITABLE_IN_COMMON: [&str; 3] = ["objects", "refs", "logs"];
/// What an agent must not write in the repository's own folder where the whole of it lies in the working tree.
const KEPT_IN_COMMON: [&str; 7] = ["config", "config.worktree", "hooks", "info", "modules", "worktrees", "proctor-id"];

/// What in a home folder holds keys and passwords. No session has a use for them: what is for others to see is written by
/// Proctor, or by a person.
const KEYS: [&str; 15] = [
    ".aws",
    ".azure",
    ".cargo/credentials.toml",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".docker/config.json",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".netrc",
    ".password-store",
    ".pypirc",
    ".ssh",
];

/// The box for this site's agents.
///
/// # Errors
/// The settings name one that can't be made here.
pub(crate) fn choose_box(site: &Site, rules: &BoxRules) -> Result<ChosenBox, ConfineError> {
    let agents = &site.settings.agents;
    // Making a container takes a while, so it is tried only where it is wanted.
    let is_wanted = agents.confine == Confine::Named(BoxKind::Container);
    let setup = if is_wanted { agents.container.clone() } else { ContainerSetup::default() };
    let available = confine::probe(&site.program, agents.net, &setup);
    let pointer = site.repository.work_tree.join(".git");
    // Where a linked tree points is looked at and put back after each session: a box that can't keep that file is better
    // than none. Of a tree that holds its repository the pointer is the repository itself, which is not in the rules.
    let needed =
        BoxRules { read_only_inside: rules.read_only_inside.iter().filter(|path| **path != pointer).cloned().collect(), ..rules.clone() };
    confine::choose(agents.confine, &available, &needed)
}

/// What a session of this engine may write.
pub(crate) fn box_rules(site: &Site, setup: &EngineSetup, session: &SessionId, access: Access) -> BoxRules {
    let folder = site.state.session(session);
    let tools = ToolServer::of(&site.program, &folder);
    let mut rules = BoxRules {
        writable: vec![folder.join("tmp"), folder.join("output"), site.state.conversations()],
        hidden: vec![site.state.root().to_owned()],
        read_only_inside: vec![folder.join("system.md"), folder.join("engine")],
        net: site.settings.agents.net,
        doors: tools.iter().filter_map(|server| server.arguments.last()).map(PathBuf::from).collect(),
        program: Some(setup.program.clone()),
        place: Some(folder.clone()),
    };
    let home = site.variable("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    rules.hidden.extend(home.iter().flat_map(|home| KEYS.map(|name| home.join(name))));
    rules.read_only_inside.extend(engine_program(site, setup));
    rules.read_only_inside.extend(setup.script.as_ref().and_then(|script| script.canonicalize().ok()));
    rules.writable.extend(engine(setup.kind).writable(&|name| site.engine_variable(setup, name)));
    match access {
        Access::Full => allow_working_tree(site, &mut rules),
        // It must be able to look at a working tree that lies in the hidden folder.
        Access::ReadOnly => rules.read_only_inside.push(site.repository.work_tree.clone()),
    }
    rules.writable.retain(|path| path.exists());
    rules.read_only_inside.retain(|path| path.exists());
    rules
}

/// What this kind of box needs beyond that for git.
pub(super) fn rules_for(site: &Site, kind: BoxKind, mut rules: BoxRules, access: Access) -> BoxRules {
    match (kind, access) {
        (BoxKind::Bwrap | BoxKind::Container, Access::Full) => make_room_for_git(site, &mut rules),
        // Nothing of this machine is there by itself.
        (BoxKind::Container, Access::ReadOnly) => rules.read_only_inside.push(site.repository.common_dir.clone()),
        (BoxKind::Bwrap, Access::ReadOnly) | (BoxKind::Landlock | BoxKind::None, _) => {}
    }
    rules
}

impl AgentSettings {
    /// Whether this engine can do with what there is of the network. A session that could only fail is not begun.
    ///
    /// # Errors
    /// The engine has its model from a provider, or from a server.
    pub fn network_suffices(&self, setup: &EngineSetup) -> Result<(), ConfineError> {
        match (self.net, setup.kind) {
            (Net::None, EngineKind::Claude | EngineKind::Codex | EngineKind::OpenCode) => {
                Err(ConfineError::Network { reason: format!("the engine `{}` reaches its model by it", setup.name) })
            }
            (Net::None, EngineKind::Acp | EngineKind::Command | EngineKind::Scripted) | (Net::All, _) => Ok(()),
        }
    }
}

/// Lets git make its short-lived files (`packed-refs.lock`) where the repository of a linked working tree is, which it does
/// for nearly every commit. What is there already stays as it is; only bwrap can express that, and what is new there is
/// looked at after the session.
fn make_room_for_git(site: &Site, rules: &mut BoxRules) {
    let repository = &site.repository;
    if repository.common_dir.starts_with(&repository.work_tree) {
        return;
    }
    let Ok(entries) = std::fs::read_dir(&repository.common_dir) else { return };
    let may_change = |name: &OsStr| WRITABLE_IN_COMMON.iter().any(|writable| name == *writable) || name == "packed-refs";
    let kept = entries.flatten().map(|entry| entry.file_name()).filter(|name| !may_change(name));
    rules.read_only_inside.extend(kept.map(|name| repository.common_dir.join(name)));
    rules.writable.push(repository.common_dir.clone());
}

/// Where the engine's program really is: it may lie in a folder that is empty in the box, such as `/tmp`.
fn engine_program(site: &Site, setup: &EngineSetup) -> Option<PathBuf> {
    let program = find_program(&setup.program, site.variable("PATH").unwrap_or_default())?;
    program.canonicalize().ok()
}

fn allow_working_tree(site: &Site, rules: &mut BoxRules) {
    let repository = &site.repository;
    rules.writable.push(repository.work_tree.clone());
    let in_common = |names: &[&str]| names.iter().map(|name| repository.common_dir.join(name)).collect::<Vec<PathBuf>>();
    rules.writable.extend(in_common(&WRITABLE_IN_COMMON));
    if repository.common_dir.starts_with(&repository.work_tree) {
        rules.read_only_inside.extend(in_common(&KEPT_IN_COMMON));
    } else {
        rules.writable.push(repository.git_dir.clone());
        // The file that says where the repository is.
        rules.read_only_inside.push(repository.work_tree.join(".git"));
    }
}
