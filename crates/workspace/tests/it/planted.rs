//! What a step plants is not run by what Proctor reads.
//!
//! Each test shows first that the plant works: git called by a person runs it.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use proctor_workspace::{ChangeKind, Repository, WorkspaceError};

use crate::world::{World, changes, path, paths, write, write_script};

/// A program that leaves a trace, and that trace.
struct Plant {
    program: PathBuf,
    trace: PathBuf,
}

impl Plant {
    fn new(world: &World, name: &str) -> Self {
        let (program, trace) = (world.outside(name), world.outside(&format!("{name}.trace")));
        write_script(&program, &format!("echo ran >> '{}'; cat", trace.display()));
        Self { program, trace }
    }

    fn command(&self) -> &str {
        self.program.to_str().unwrap()
    }

    fn take(&self) -> bool {
        let ran = self.trace.exists();
        let _ = std::fs::remove_file(&self.trace);
        ran
    }
}

/// Everything that only reads, or keeps and puts back what is Proctor's.
fn read_everything(world: &World, repository: &Repository) {
    let head = repository.head().unwrap().commit.unwrap();
    let status = repository.status().unwrap();
    let changed = status.paths();
    let snapshot = repository.snapshot(&changed).unwrap();
    repository.differing(&head, &snapshot).unwrap();
    repository.tree_with(Some(&head), &changed).unwrap();
    repository.save("refs/proctor/salvage/x", &snapshot, Some(&head), "kept").unwrap();
    repository.commits_since(None).unwrap();
    repository.is_ancestor(&head, &head).unwrap();
    repository.delete_refs("refs/proctor/salvage").unwrap();
    repository.settle_index(&head).unwrap();
    repository.identity_works().unwrap();
    repository.restore(&changed, Some(&head)).unwrap();
    assert_eq!(world.read("kept"), "kept\n");
}

/// Makes git look into `kept` again, although its size is the same.
fn touch(world: &World) {
    world.write("beside", "KEPT\n");
    std::fs::rename(world.on_disk("beside"), world.on_disk("kept")).unwrap();
}

fn check(world: &World, repository: &Repository, plant: &Plant) {
    touch(world);
    world.try_git(&world.top, &["status"]);
    assert!(plant.take(), "the plant does not work");
    touch(world);

    read_everything(world, repository);

    assert!(!plant.take(), "the plant ran");
}

#[test]
fn a_planted_fsmonitor_is_not_run() {
    let world = World::new();
    let repository = world.repository();
    let plant = Plant::new(&world, "fsmonitor");

    world.git(&["config", "core.fsmonitor", plant.command()]);

    check(&world, &repository, &plant);
}

#[test]
fn planted_hooks_are_not_run() {
    let world = World::new();
    let repository = world.repository();
    let plant = Plant::new(&world, "hook");
    std::fs::create_dir_all(world.on_disk(".git/hooks")).unwrap();
    for hook in ["post-index-change", "reference-transaction", "post-checkout", "post-commit", "pre-commit"] {
        symlink(&plant.program, world.on_disk(format!(".git/hooks/{hook}"))).unwrap();
    }

    check(&world, &repository, &plant);

    let elsewhere = world.outside("hooks");
    std::fs::rename(world.on_disk(".git/hooks"), &elsewhere).unwrap();
    world.git(&["config", "core.hooksPath", elsewhere.to_str().unwrap()]);
    check(&world, &repository, &plant);
}

#[test]
fn a_planted_filter_is_not_run_wherever_its_settings_are() {
    for (kind, name) in [("clean", "evil"), ("process", "evil"), ("clean", "a=b.c"), ("smudge", "evil")] {
        let world = World::new();
        write(&world.outside("included"), "");
        world.git(&["config", "include.path", world.outside("included").to_str().unwrap()]);
        world.git(&["config", "includeIf.onbranch:main.path", world.outside("not there yet").to_str().unwrap()]);
        for place in ["--local", "--global", "--worktree", "included", "not there yet"] {
            let repository = world.repository();
            repository.guard_config(None).unwrap();
            let plant = Plant::new(&world, "filter");
            let key = format!("filter.{name}.{kind}");
            let file = world.outside(place);
            let to_file = ["config", "--file", file.to_str().unwrap(), &key, plant.command()];
            let to_place = ["config", place, &key, plant.command()];
            world.git(if place.starts_with("--") { &to_place[..] } else { &to_file[..] });
            let required = format!("filter.{name}.required");
            // A filter for one direction only can't be required.
            if kind != "smudge" {
                world.git(&["config", &required, "true"]);
            }
            world.write(".git/info/attributes", &format!("kept filter={name}\n"));

            if kind == "smudge" {
                touch(&world);
                world.git(&["checkout-index", "--force", "kept"]);
                assert!(plant.take(), "the plant does not work");
                touch(&world);
                read_everything(&world, &repository);
                assert!(!plant.take(), "{place}");
            } else {
                check(&world, &repository, &plant);
            }

            let expected = if kind == "smudge" { vec![key.clone()] } else { vec![key.clone(), required.clone()] };
            assert_eq!(repository.planted_settings().unwrap(), expected);
            let _ = world.try_git(&world.top, &["config", "--unset", &required]);
            if place.starts_with("--") {
                world.git(&["config", place, "--unset", &key]);
            } else {
                std::fs::remove_file(&file).unwrap();
            }
        }
    }
}

#[test]
fn a_planted_filter_whose_name_is_no_text_is_not_run() {
    let world = World::new();
    let repository = world.repository();
    repository.guard_config(None).unwrap();
    let plant = Plant::new(&world, "filter");
    let config = world.top.join(".git/config");
    let mut settings = std::fs::read(&config).unwrap();
    settings.extend([b"[filter \"\xff\"]\nclean = ", plant.command().as_bytes(), b"\n"].concat());
    std::io::Write::write_all(&mut std::fs::File::create(config).unwrap(), &settings).unwrap();
    std::fs::create_dir_all(world.top.join(".git/info")).unwrap();
    let mut attributes = std::fs::File::create(world.top.join(".git/info/attributes")).unwrap();
    std::io::Write::write_all(&mut attributes, b"kept filter=\xff\n").unwrap();

    check(&world, &repository, &plant);
}

#[test]
fn a_planted_source_of_missing_objects_is_not_asked() {
    let world = World::new();
    let repository = world.repository();
    repository.guard_config(None).unwrap();
    let plant = Plant::new(&world, "fetch");
    // Git talks to what it fetches from, and would wait for an answer.
    write_script(&plant.program, &format!("echo ran >> '{}'", plant.trace.display()));
    for (name, value) in [
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "evil"),
        ("remote.evil.promisor", "true"),
        ("remote.evil.url", &format!("ext::{}", plant.command())),
        ("protocol.ext.allow", "always"),
    ] {
        world.git(&["config", name, value]);
    }
    let blob = world.git(&["rev-parse", "HEAD:kept"]);
    let (folder, file) = blob.trim().split_at(2);
    std::fs::remove_file(world.top.join(".git/objects").join(folder).join(file)).unwrap();
    let _ = world.try_git(&world.top, &["cat-file", "-p", "HEAD:kept"]);
    assert!(plant.take(), "the plant does not work");
    world.remove("kept");

    let restored = repository.restore(&paths(&["kept"]), repository.head().unwrap().commit.as_ref());

    assert!(restored.is_err());
    assert!(!plant.take());
}

#[test]
fn a_users_settings_file_that_a_step_makes_is_noticed() {
    let world = World::new();
    let without_global = world.variables().into_iter().filter(|(name, _)| name != "GIT_CONFIG_GLOBAL");
    let environment = proctor_workspace::GitEnvironment::from_user(without_global);
    let repository = Repository::discover(&world.top, &environment).unwrap();
    repository.guard_config(None).unwrap();
    let plant = Plant::new(&world, "filter");

    write(&world.home().join(".config/git/config"), &format!("[filter \"evil\"]\nclean = {}\n", plant.command()));

    assert_eq!(repository.planted_settings().unwrap(), ["filter.evil.clean"]);
}

#[test]
fn a_filter_that_was_there_is_run_as_it_was() {
    let world = World::new();
    let plant = Plant::new(&world, "filter");
    world.write(".gitattributes", "kept filter=mine\n");
    world.git(&["config", "filter.mine.clean", "tr A-Z a-z"]);
    let repository = world.repository();
    repository.guard_config(None).unwrap();

    world.git(&["config", "filter.mine.clean", plant.command()]);

    // By the user's own filter the contents are what they were.
    touch(&world);
    assert_eq!(repository.status().unwrap().paths(), paths(&[".gitattributes"]));
    assert!(!plant.take());
}

#[test]
fn what_was_planted_before_a_death_is_still_known_after_it() {
    let world = World::new();
    let kept = world.outside("settings");
    world.repository().guard_config(Some(&kept)).unwrap();
    let plant = Plant::new(&world, "filter");
    world.git(&["config", "filter.evil.clean", plant.command()]);
    world.write(".git/info/attributes", "kept filter=evil\n");
    let resumed = world.repository();

    resumed.guard_config(Some(&kept)).unwrap();

    assert_eq!(resumed.planted_settings().unwrap(), ["filter.evil.clean"]);
    check(&world, &resumed, &plant);
}

#[test]
fn planted_diff_programs_are_not_run() {
    let world = World::new();
    let repository = world.repository();
    repository.guard_config(None).unwrap();
    let plant = Plant::new(&world, "diff");
    world.write(".git/info/attributes", "kept diff=evil\n");
    for key in ["diff.external", "diff.evil.textconv", "diff.evil.command"] {
        world.git(&["config", key, plant.command()]);
    }
    touch(&world);
    world.git(&["diff"]);
    assert!(plant.take(), "the plant does not work");

    read_everything(&world, &repository);

    assert!(!plant.take());
}

#[test]
fn a_planted_signature_program_is_not_run_by_reading_the_log() {
    let world = World::new();
    let repository = world.repository();
    repository.guard_config(None).unwrap();
    let plant = Plant::new(&world, "gpg");
    let commit = world.git(&["cat-file", "commit", "HEAD"]);
    let signed = commit.replacen("\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n", 1);
    write(&world.outside("signed"), &signed);
    let signed = world.git(&["hash-object", "-t", "commit", "-w", world.outside("signed").to_str().unwrap()]);
    world.git(&["reset", "--quiet", "--hard", signed.trim()]);
    world.git(&["config", "log.showSignature", "true"]);
    world.git(&["config", "gpg.program", plant.command()]);
    let _ = world.try_git(&world.top, &["log"]);
    assert!(plant.take(), "the plant does not work");

    assert_eq!(repository.commits_since(None).unwrap().len(), 1);

    assert!(!plant.take());
}

#[test]
fn a_replaced_or_removed_pointer_to_the_git_directory_changes_nothing() {
    let world = World::new();
    let linked = world.outside("linked");
    world.git(&["worktree", "add", "--quiet", linked.to_str().unwrap()]);
    let repository = Repository::discover(&linked, &world.environment()).unwrap();
    write(&linked.join("new"), "x");
    let plant = Plant::new(&world, "fsmonitor");
    let evil = world.outside("evil");
    world.git(&["clone", "--quiet", "--bare", ".", evil.to_str().unwrap()]);
    for (name, value) in [("core.fsmonitor", plant.command()), ("core.bare", "false"), ("filter.evil.clean", plant.command())] {
        world.git_in(&evil, &["config", name, value]);
    }
    let pointer = std::fs::read_to_string(linked.join(".git")).unwrap();
    let expected = [("new".to_owned(), ChangeKind::Untracked, false)];

    write(&linked.join(".git"), &format!("gitdir: {}\n", evil.display()));
    world.try_git(&linked, &["status"]);
    assert!(plant.take(), "the plant does not work");
    assert_eq!(changes(&repository.status().unwrap()), expected);

    std::fs::remove_file(linked.join(".git")).unwrap();
    assert_eq!(changes(&repository.status().unwrap()), expected);

    std::fs::rename(&evil, linked.join(".git")).unwrap();
    assert_eq!(changes(&repository.status().unwrap()), expected);
    std::fs::remove_dir_all(linked.join(".git")).unwrap();

    // The work tree's own folder of git's points on, to the one that is shared.
    write(&linked.join(".git"), &pointer);
    world.git(&["clone", "--quiet", "--bare", ".", evil.to_str().unwrap()]);
    world.git_in(&evil, &["config", "core.fsmonitor", plant.command()]);
    write(&repository.git_dir.join("commondir"), &format!("{}\n", evil.display()));
    world.try_git(&linked, &["status"]);
    assert!(plant.take(), "the plant does not work");
    assert_eq!(changes(&repository.status().unwrap()), expected);
    assert!(!plant.take());
}

#[test]
fn settings_that_say_the_repository_is_bare_or_elsewhere_do_not_lead_astray() {
    let world = World::new();
    let repository = world.repository();
    world.write("new", "x");
    world.git(&["config", "core.worktree", "/nonexistent"]);
    assert_eq!(repository.status().unwrap().paths(), paths(&["new"]));
    let _ = world.try_git(&world.top.join(".git"), &["config", "--unset", "core.worktree"]);
    let _ = world.try_git(&world.top.join(".git"), &["config", "core.bare", "true"]);

    assert_eq!(repository.status().unwrap().paths(), paths(&["new"]));
}

#[test]
fn a_removed_repository_is_said_to_be_gone() {
    let world = World::new();
    let repository = world.repository();
    std::fs::remove_dir_all(world.top.join(".git")).unwrap();

    let error = repository.status().unwrap_err();

    assert!(matches!(&error, WorkspaceError::NotARepository { directory } if directory.ends_with(".git")), "{error}");
}

#[test]
fn settings_that_git_cannot_read_are_said_with_the_line() {
    let world = World::new();
    let repository = world.repository();
    repository.guard_config(None).unwrap();
    write(&world.top.join(".git/config"), "[core\n");

    let error = repository.status().unwrap_err();

    assert!(error.to_string().contains("bad config line 1"), "{error}");
}

#[test]
fn a_fifo_in_place_of_a_settings_file_does_not_hang_the_comparison() {
    let world = World::new();
    let repository = world.repository();
    repository.guard_config(None).unwrap();
    let made = proctor_process::Program::new("mkfifo").arg(world.top.join(".git/config.worktree")).run(None);
    assert!(made.unwrap().status.is_success());

    assert!(repository.status().unwrap().changes.is_empty());
}

#[test]
fn what_is_planted_in_a_submodule_is_not_run() {
    let world = World::new();
    let library = World::new();
    world.git(&["submodule", "--quiet", "add", library.top.to_str().unwrap(), "sub"]);
    world.git(&["commit", "--quiet", "--message", "submodule"]);
    let repository = world.repository();
    repository.status().unwrap();
    let plant = Plant::new(&world, "filter");
    let sub = world.on_disk("sub");
    world.git_in(&sub, &["config", "filter.evil.clean", plant.command()]);
    world.git_in(&sub, &["config", "core.fsmonitor", plant.command()]);
    world.write(".git/modules/sub/info/attributes", "kept filter=evil\n");
    world.write("sub/beside", "KEPT\n");
    std::fs::rename(world.on_disk("sub/beside"), world.on_disk("sub/kept")).unwrap();
    world.git(&["status"]);
    assert!(plant.take(), "the plant does not work");

    assert_eq!(changes(&repository.status().unwrap()), [("sub".to_owned(), ChangeKind::SubmoduleDirty, false)]);

    assert!(!plant.take());
}

#[test]
fn a_planted_repository_in_the_index_is_not_run() {
    let world = World::new();
    let repository = world.repository();
    repository.status().unwrap();
    let plant = Plant::new(&world, "filter");
    let inner = world.on_disk("inner");
    world.git(&["init", "--quiet", "inner"]);
    world.write("inner/x", "x\n");
    world.git_in(&inner, &["add", "x"]);
    world.git_in(&inner, &["commit", "--quiet", "--message", "x"]);
    world.git(&["add", "inner"]);
    world.git_in(&inner, &["config", "filter.evil.clean", plant.command()]);
    world.write("inner/.git/info/attributes", "x filter=evil\n");
    world.write("inner/beside", "X\n");
    std::fs::rename(world.on_disk("inner/beside"), world.on_disk("inner/x")).unwrap();
    world.git(&["status"]);
    assert!(plant.take(), "the plant does not work");

    let status = repository.status().unwrap();

    assert_eq!(status.paths(), [path("inner")]);
    assert!(!plant.take());
}
