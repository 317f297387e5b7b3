//! Worktrees for runs: half made and finished, removed without loss.

use std::path::PathBuf;

use proctor_domain::{Branch, Oid};
use proctor_workspace::{Refusal, Repository, WorkspaceError};

use crate::world::{World, path, write, write_script};

const SALVAGE: &str = "refs/proctor/salvage/run_1";

struct Scene {
    world: World,
    repository: Repository,
    path: PathBuf,
    start: Oid,
}

impl Scene {
    fn new() -> Self {
        Self::of(World::new())
    }

    fn of(world: World) -> Self {
        let repository = world.repository();
        let start = repository.can_isolate().unwrap();
        let path = world.outside("state/worktrees/run_1");
        Self { repository, path, start, world }
    }

    fn try_add(&self) -> Result<(), WorkspaceError> {
        self.repository.add_worktree(&self.path, "proctor/run_1", &self.start, &self.world.outside("worktrees.lock"))
    }

    fn add(&self) {
        self.try_add().unwrap();
    }

    fn remove(&self) -> Result<(), WorkspaceError> {
        self.repository.remove_worktree(&self.path, "proctor/run_1", SALVAGE)
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.world.git_in(&self.path, arguments)
    }

    fn record(&self) -> PathBuf {
        self.repository.common_dir.join("worktrees/run_1")
    }

    fn assert_whole(&self) {
        assert_eq!(self.git(&["status", "--short"]), "");
        assert_eq!(std::fs::read_to_string(self.path.join("dir/a")).unwrap(), "dir/a\n");
        let worktree = Repository::discover(&self.path, &self.world.environment()).unwrap();
        assert_eq!(worktree.head().unwrap().branch, Branch::Named("proctor/run_1".to_owned()));
    }

    fn assert_gone(&self) {
        assert!(!self.path.exists());
        assert_eq!(std::fs::read_dir(self.path.parent().unwrap()).unwrap().count(), 0);
        assert_eq!(self.world.git(&["branch", "--list", "--format=%(refname:short)"]), "main\n");
        assert_eq!(self.world.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    }

    fn salvaged(&self, name: &str) -> Option<String> {
        let finished = self.world.try_git(&self.world.top, &["show", &format!("{SALVAGE}:{name}")]);
        finished.status.is_success().then(|| String::from_utf8(finished.stdout).unwrap())
    }
}

#[test]
fn submodules_and_a_repository_without_a_commit_are_refused() {
    let unborn = World::unborn();
    assert!(matches!(unborn.repository().can_isolate(), Err(WorkspaceError::Refused(Refusal::NoCommit))));

    let (world, other) = (World::new(), World::new());
    world.git(&["submodule", "--quiet", "add", other.top.to_str().unwrap(), "dir/sub"]);
    world.git(&["commit", "--quiet", "--message", "submodule"]);
    let error = world.repository().can_isolate().unwrap_err();
    assert_eq!(error.to_string(), "work in a worktree of its own: dir/sub is a submodule, which worktrees don't share");
}

#[test]
fn a_worktree_is_made_once_and_then_taken_as_it_is() {
    let scene = Scene::new();
    scene.add();
    scene.assert_whole();
    write(&scene.path.join("kept"), "work\n");
    scene.git(&["commit", "--quiet", "--all", "--message", "work"]);
    write(&scene.path.join("kept"), "more work\n");

    scene.add();

    assert_eq!(std::fs::read_to_string(scene.path.join("kept")).unwrap(), "more work\n");
    assert_eq!(scene.git(&["log", "--format=%s"]), "work\nfirst\n");
}

#[test]
fn a_checkout_that_was_killed_in_the_middle_is_finished() {
    let scene = Scene::new();
    scene.world.git(&["worktree", "add", "--quiet", "--no-checkout", "-b", "proctor/run_1", scene.path.to_str().unwrap()]);
    write(&scene.path.join("kept"), "ke");
    write(&scene.record().join("index.lock"), "");

    scene.add();

    scene.assert_whole();
}

#[test]
fn a_record_that_git_did_not_finish_is_made_anew() {
    for keep in [&["gitdir", "locked"][..], &["gitdir", "locked", "HEAD", "commondir"]] {
        let scene = Scene::new();
        scene.world.git(&["worktree", "add", "--quiet", "--no-checkout", "-b", "proctor/run_1", scene.path.to_str().unwrap()]);
        write(&scene.record().join("locked"), "initializing");
        for entry in std::fs::read_dir(scene.record()).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if entry.file_type().unwrap().is_file() && !keep.contains(&name.as_str()) {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }

        scene.add();

        scene.assert_whole();
    }
}

#[test]
fn a_branch_whose_worktree_was_deleted_gets_a_new_one() {
    let scene = Scene::new();
    scene.add();
    write(&scene.path.join("kept"), "work\n");
    scene.git(&["commit", "--quiet", "--all", "--message", "work"]);
    std::fs::remove_dir_all(&scene.path).unwrap();

    scene.add();

    assert_eq!(scene.git(&["status", "--short"]), "");
    assert_eq!(std::fs::read_to_string(scene.path.join("kept")).unwrap(), "work\n");
}

#[test]
fn a_lost_pointer_or_index_costs_no_work() {
    let scene = Scene::new();
    scene.add();
    write(&scene.path.join("kept"), "work\n");
    std::fs::remove_file(scene.path.join(".git")).unwrap();
    std::fs::remove_file(scene.record().join("index")).unwrap();

    scene.add();

    assert_eq!(std::fs::read_to_string(scene.path.join("kept")).unwrap(), "work\n");
    scene.git(&["status"]);
}

#[test]
fn what_is_not_ours_is_left_where_it_is() {
    let scene = Scene::new();
    write(&scene.path.join("precious"), "x");
    assert!(matches!(scene.try_add(), Err(WorkspaceError::Refused(Refusal::InTheWay { .. }))));
    assert!(matches!(scene.remove(), Err(WorkspaceError::Refused(Refusal::InTheWay { .. }))));
    assert!(scene.path.join("precious").exists());

    let scene = Scene::new();
    scene.add();
    scene.git(&["switch", "--quiet", "-c", "elsewhere"]);
    assert!(matches!(scene.try_add(), Err(WorkspaceError::Refused(Refusal::OtherBranch { .. }))));
}

#[test]
fn two_at_the_same_time_make_one_and_others_beside_it() {
    let scene = Scene::new();
    let add = |path: &str, branch: &str| {
        let mut repository = scene.world.repository();
        repository.lock_patience = std::time::Duration::from_secs(60);
        repository.add_worktree(&scene.world.outside(path), branch, &scene.start, &scene.world.outside("worktrees.lock"))
    };

    std::thread::scope(|scope| {
        let made = ["a", "a", "b", "c"].map(|name| scope.spawn(move || add(&format!("state/{name}/tree"), name)));
        for made in made {
            made.join().unwrap().unwrap();
        }
    });

    assert_eq!(scene.world.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 4);
}

#[test]
fn the_users_hook_runs_after_the_checkout_and_cannot_undo_it() {
    let scene = Scene::new();
    scene.world.hook("post-checkout", "test -e kept && echo ran >> .hook; exit 1");

    scene.add();
    scene.add();

    assert_eq!(std::fs::read_to_string(scene.path.join(".hook")).unwrap(), "ran\n");
}

#[test]
fn a_worktree_whose_work_is_merged_leaves_nothing() {
    let scene = Scene::new();
    scene.add();

    scene.remove().unwrap();
    scene.remove().unwrap();

    scene.assert_gone();
    assert_eq!(scene.world.git(&["for-each-ref", "refs/proctor"]), "");
}

#[test]
fn commits_that_no_other_branch_has_are_salvaged() {
    let scene = Scene::new();
    scene.add();
    write(&scene.path.join("kept"), "committed\n");
    scene.git(&["commit", "--quiet", "--all", "--message", "work"]);

    scene.remove().unwrap();
    scene.remove().unwrap();

    scene.assert_gone();
    assert_eq!(scene.salvaged("kept").as_deref(), Some("committed\n"));
}

#[test]
fn what_is_not_committed_is_salvaged_with_the_commits_below_it() {
    let scene = Scene::new();
    scene.add();
    write(&scene.path.join("kept"), "committed\n");
    scene.git(&["commit", "--quiet", "--all", "--message", "work"]);
    write(&scene.path.join("dir/a"), "edited\n");
    write(&scene.path.join("new"), "untracked\n");

    scene.remove().unwrap();

    scene.assert_gone();
    for (name, contents) in [("kept", "committed\n"), ("dir/a", "edited\n"), ("new", "untracked\n")] {
        assert_eq!(scene.salvaged(name).as_deref(), Some(contents), "{name}");
    }
}

#[test]
fn a_branch_beside_a_detached_head_is_salvaged_too() {
    let scene = Scene::new();
    scene.add();
    write(&scene.path.join("kept"), "on the branch\n");
    scene.git(&["commit", "--quiet", "--all", "--message", "branch"]);
    scene.git(&["switch", "--quiet", "--detach", "main"]);
    write(&scene.path.join("kept"), "detached\n");
    scene.git(&["commit", "--quiet", "--all", "--message", "detached"]);

    scene.remove().unwrap();

    scene.assert_gone();
    assert_eq!(scene.salvaged("kept").as_deref(), Some("detached\n"));
    assert_eq!(scene.world.git(&["show", &format!("{SALVAGE}-branch:kept")]), "on the branch\n");
}

#[test]
fn a_removal_that_was_killed_in_the_middle_is_finished_and_the_salvage_stays_whole() {
    let scene = Scene::new();
    scene.add();
    write(&scene.path.join("new"), "untracked\n");
    write(&scene.path.join("dir/a"), "edited\n");
    let other = scene.world.repository();
    // As after a death between moving the folder and deleting all of it.
    let worktree = Repository::discover(&scene.path, &scene.world.environment()).unwrap();
    let tree = worktree.snapshot(&worktree.status().unwrap().paths()).unwrap();
    other.save(SALVAGE, &tree, Some(&scene.start), "saved").unwrap();
    let aside = scene.path.with_file_name("run_1.removing");
    std::fs::rename(&scene.path, &aside).unwrap();
    std::fs::remove_file(aside.join("new")).unwrap();

    scene.remove().unwrap();

    scene.assert_gone();
    assert_eq!(scene.salvaged("new").as_deref(), Some("untracked\n"));
}

#[test]
fn a_repository_inside_the_worktree_keeps_it_from_being_removed() {
    let scene = Scene::new();
    scene.add();
    let nested = scene.path.join("nested");
    std::fs::create_dir(&nested).unwrap();
    scene.world.git_in(&nested, &["init", "--quiet"]);
    write(&nested.join("x"), "x");

    let error = scene.remove().unwrap_err();

    assert!(matches!(error, WorkspaceError::Refused(Refusal::NestedRepository { .. })), "{error}");
    assert!(nested.join("x").exists());
}

#[test]
fn a_worktree_that_a_person_locked_stays() {
    let scene = Scene::new();
    scene.add();
    scene.world.git(&["worktree", "lock", scene.path.to_str().unwrap()]);

    assert!(matches!(scene.remove(), Err(WorkspaceError::Refused(Refusal::LockedWorktree { .. }))));
    scene.assert_whole();
}

#[test]
fn what_an_agent_planted_does_not_run_when_its_worktree_is_saved() {
    let scene = Scene::new();
    scene.repository.guard_config(None).unwrap();
    scene.add();
    let trace = scene.world.outside("trace");
    write_script(&scene.world.outside("plant"), &format!("echo ran >> '{}'; cat", trace.display()));
    scene.git(&["config", "core.fsmonitor", scene.world.outside("plant").to_str().unwrap()]);
    scene.git(&["config", "filter.x.clean", scene.world.outside("plant").to_str().unwrap()]);
    write(&scene.path.join(".gitattributes"), "* filter=x\n");
    write(&scene.path.join("kept"), "edited\n");

    scene.remove().unwrap();

    assert!(!trace.exists(), "the plant ran");
    assert_eq!(scene.salvaged("kept").as_deref(), Some("edited\n"));
}

#[test]
fn a_branch_that_was_deleted_meanwhile_is_made_again_at_the_start() {
    let scene = Scene::new();
    scene.add();
    write(&scene.path.join("kept"), "half done\n");
    scene.world.git(&["update-ref", "-d", "refs/heads/proctor/run_1"]);

    scene.add();

    assert_eq!(scene.git(&["rev-parse", "HEAD"]).trim(), scene.start.0);
    assert_eq!(scene.git(&["status", "--short"]), " M kept\n");
}

#[test]
fn a_worktree_with_a_repository_that_was_committed_as_a_pointer_stays() {
    let scene = Scene::new();
    scene.add();
    let nested = scene.path.join("nested");
    write(&nested.join("file"), "work\n");
    for arguments in [&["init", "--quiet"][..], &["add", "file"], &["commit", "--quiet", "--message", "inner"]] {
        scene.world.git_in(&nested, arguments);
    }
    scene.git(&["add", "nested"]);
    scene.git(&["commit", "--quiet", "--message", "outer"]);
    let tip = Oid(scene.git(&["rev-parse", "HEAD"]).trim().to_owned());

    assert_eq!(scene.repository.new_pointers(Some(&scene.start), &tip).unwrap(), [path("nested")]);
    assert_eq!(scene.repository.new_pointers(Some(&tip), &tip).unwrap(), []);
    let error = scene.remove().unwrap_err().to_string();

    assert!(error.contains("nested in it is a git repository of its own"), "{error}");
    assert!(nested.join("file").exists());
}
