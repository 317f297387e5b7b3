//! A world in whose worktree programs are started in a box, for tests of boxes by themselves.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use proctor_process::confine::{Available, BoxKind, BoxRules, Confine, ContainerSetup, Net, choose, probe};
use proctor_process::{Finished, Program};
use proctor_testkit::World;

use crate::box_image;
use crate::procedures::LIMIT;

/// Those in which a process is started in no time.
pub(crate) const KINDS: [BoxKind; 2] = [BoxKind::Bwrap, BoxKind::Landlock];

/// Every kind but no box.
pub(crate) const ALL_KINDS: [BoxKind; 3] = [BoxKind::Bwrap, BoxKind::Landlock, BoxKind::Container];

pub(crate) fn available() -> &'static Available {
    static AVAILABLE: OnceLock<Available> = OnceLock::new();
    AVAILABLE.get_or_init(|| {
        let program = Path::new(env!("CARGO_BIN_EXE_proctor"));
        let setup = box_image::setup();
        let available = probe(program, Net::All, setup.as_ref().unwrap_or(&ContainerSetup::default()));
        match setup {
            Ok(_) => available,
            Err(reason) => Available { container: Err(reason.clone()), ..available },
        }
    })
}

/// Whether the kind can be had; says or refuses when it can't. A container program is never demanded: many machines on which
/// this is tested can have none.
#[allow(clippy::print_stderr, reason = "whoever reads the test's output has to know what it did not show")]
pub(crate) fn is_here(kind: BoxKind) -> bool {
    match choose(Confine::Named(kind), available(), &BoxRules::default()) {
        Ok(_) => true,
        Err(error) if kind != BoxKind::Container && std::env::var_os("PROCTOR_REQUIRE_BOXES").is_some_and(|value| value == "1") => {
            panic!("failed to {error}")
        }
        Err(error) => {
            eprintln!("skipped: failed to {error}");
            false
        }
    }
}

/// A world whose repository has a linked worktree, `../tree`, in which sessions work.
pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) rules: BoxRules,
    pub(crate) tree: PathBuf,
    kind: BoxKind,
}

impl Scene {
    pub(crate) fn new(kind: BoxKind) -> Self {
        let world = crate::world();
        world.git(&["worktree", "add", "--quiet", "-b", "work", "../tree"]);
        for folder in ["sibling", "session", "home/.local/state/proctor"] {
            fs::create_dir_all(world.root().join(folder)).unwrap();
        }
        world.write("../sibling/file", "theirs\n");
        world.write("../home/.local/state/proctor/journal.db", "ours\n");
        let root = world.root().to_owned();
        let git = root.join("repository/.git");
        let writable = [git.join("objects"), git.join("refs"), git.join("logs"), git.join("worktrees/tree"), root.join("session")];
        let rules = BoxRules {
            writable: writable.into_iter().chain([root.join("tree")]).collect(),
            hidden: vec![root.join("home/.local/state/proctor")],
            ..BoxRules::default()
        };
        let mut scene = Self { tree: root.join("tree"), world, rules, kind };
        if kind == BoxKind::Container {
            // The other kinds show everything.
            scene.rules.read_only_inside.push(git);
        }
        scene
    }

    /// A world in whose only checkout sessions work: something that only bwrap can express.
    pub(crate) fn in_place() -> Self {
        let scene = Self::new(BoxKind::Bwrap);
        let tree = scene.world.repository();
        let git = tree.join(".git");
        fs::create_dir_all(git.join("info")).unwrap();
        let read_only_inside = ["config", "hooks", "info"].map(|name| git.join(name)).to_vec();
        let rules = BoxRules { writable: vec![tree.clone()], read_only_inside, ..BoxRules::default() };
        Self { tree, rules, ..scene }
    }

    pub(crate) fn program(&self, argv: Vec<OsString>) -> Program {
        let chosen = choose(Confine::Named(self.kind), available(), &BoxRules::default()).unwrap();
        let mut command = chosen.wrap(&self.rules, self.world.program(), argv).into_iter();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let session = self.world.root().join("session").into_os_string();
        let variables = [("PATH", path), ("HOME", self.world.home().into()), ("TMPDIR", session), ("GIT_CONFIG_NOSYSTEM", "1".into())];
        let of_containers = box_image::variables().filter(|_| self.kind() == BoxKind::Container);
        let program = Program::new(command.next().unwrap()).args(command).dir(&self.tree);
        program.env(of_containers).env(variables).own_group()
    }

    pub(crate) fn run(&self, argv: Vec<OsString>) -> Finished {
        self.program(argv).run(Some(LIMIT)).unwrap()
    }

    /// Runs a script with one argument.
    pub(crate) fn bash(&self, script: &str, argument: impl AsRef<OsStr>) -> Finished {
        self.run(bash(script, argument.as_ref()))
    }

    pub(crate) fn kind(&self) -> BoxKind {
        self.kind
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.world.root().join(name)
    }
}

pub(crate) fn bash(script: &str, argument: &OsStr) -> Vec<OsString> {
    vec!["bash".into(), "-c".into(), script.into(), "bash".into(), argument.to_owned()]
}

pub(crate) fn on_each_kind(check: impl Fn(&Scene)) {
    for kind in KINDS.into_iter().filter(|kind| is_here(*kind)) {
        check(&Scene::new(kind));
    }
}

#[track_caller]
pub(crate) fn expect(finished: &Finished, code: i32, what: &str) -> String {
    let stdout = String::from_utf8_lossy(&finished.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&finished.stderr);
    assert_eq!(finished.status.shell_code(), code, "{what}\n--- stdout\n{stdout}\n--- stderr\n{stderr}");
    stdout
}
