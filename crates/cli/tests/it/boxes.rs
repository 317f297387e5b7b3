//! What a boxed process can and can't do, each cell tried for real, with each kind of box that this machine has.
//!
//! A kind that it has not is skipped with a line that says so; with `PROCTOR_REQUIRE_BOXES=1` that is a failure.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::Duration;

use proctor_process::confine::{BoxKind, BoxRules, Confine, ContainerSetup, Net, choose, probe};
use proctor_process::{ProcessIdentity, Signal};
use proctor_testkit::wait_for;

use crate::box_scene::{KINDS, Scene, bash, expect, is_here, on_each_kind};
use crate::procedures::LIMIT;

/// Everything that changes what is at a path.
const ATTEMPTS: [&str; 7] = [
    "echo planted > \"$1\"",
    "echo planted >> \"$1\"",
    "rm \"$1\"",
    "mv \"$1\" \"$1.moved\"",
    "echo planted > own && mv -f own \"$1\"",
    "echo planted > own && ln -f own \"$1\"",
    "mkdir \"$1.d\"",
];

#[track_caller]
fn expect_untouchable(scene: &Scene, path: &Path) {
    let before = fs::read(path).ok();
    for attempt in ATTEMPTS {
        let finished = scene.bash(attempt, path);

        assert!(!finished.status.is_success(), "{}: {attempt}: {}", scene.kind(), path.display());
        assert_eq!(fs::read(path).ok(), before, "{}: {attempt}: {}", scene.kind(), path.display());
    }
    let mut neighbour = path.as_os_str().to_owned();
    neighbour.push(".d");
    assert!(!Path::new(&neighbour).exists(), "{}", path.display());
}

#[test]
fn nothing_outside_can_be_written() {
    on_each_kind(|scene| {
        let git = scene.path("repository/.git");
        scene.world.write("../repository/.git/info/exclude", "*.o\n");
        scene.world.write("../repository/.git/hooks/pre-commit", "#!/bin/sh\n");
        for path in ["config", "HEAD", "hooks/pre-commit", "info/exclude", "packed-refs", "commondir"] {
            expect_untouchable(scene, &git.join(path));
        }
        for path in ["home/.bashrc", "home/.gitconfig", "sibling/file", "repository/README.md", "planted"] {
            expect_untouchable(scene, &scene.path(path));
        }
        for path in ["/etc/proctor-test", "/usr/bin/proctor-test", "/var/tmp/proctor-test"] {
            let finished = scene.bash("echo planted > \"$1\"", path);

            assert!(!finished.status.is_success(), "{}: {path}", scene.kind());
        }
    });
}

#[test]
fn switches_of_the_machine_can_not_be_set() {
    on_each_kind(|scene| {
        for path in ["/proc/sys/kernel/core_pattern", "/proc/sys/vm/swappiness", "/proc/sysrq-trigger", "/sys/kernel/rcu_expedited"] {
            // Opened and not written: if it could be, the machine should not be the worse for it.
            let finished = scene.bash(": >> \"$1\"", path);

            assert!(!finished.status.is_success(), "{}: {path}", scene.kind());
        }
    });
}

#[test]
fn what_a_session_works_on_can_be_written() {
    on_each_kind(|scene| {
        let script =
            "cd \"$1\" && echo a > a && echo b >> a && mkdir -p d/e && mv a d/e/ && ln -s e d/l && rm d/l && mkfifo f && cat d/e/a";
        for folder in ["tree", "session", "repository/.git/objects", "repository/.git/refs", "repository/.git/logs"] {
            let printed = expect(&scene.bash(script, scene.path(folder)), 0, folder);

            assert_eq!(printed, "a\nb\n", "{}: {folder}", scene.kind());
            assert_eq!(fs::read_to_string(scene.path(folder).join("d/e/a")).unwrap(), "a\nb\n");
        }
        let script = "echo x > /dev/null && mktemp -p \"$TMPDIR\" && mv \"$TMPDIR\"/tmp.* .";
        expect(&scene.bash(script, ""), 0, "devices, and moves from the temporary folder");
    });
}

#[test]
fn git_commits_in_a_linked_worktree() {
    on_each_kind(|scene| {
        let script = "echo new > new && git add new && git commit --quiet -m 'From a box' && git status --porcelain && git branch other";
        let printed = expect(&scene.bash(script, ""), 0, "commit");

        assert_eq!(printed, "");
        assert_eq!(scene.world.git(&["log", "-1", "--format=%s", "work"]), "From a box");
        assert_eq!(scene.bash("git config user.name Mallory", "").status.shell_code(), 255, "{}", scene.kind());
    });
}

#[test]
fn a_link_in_the_tree_leads_no_write_outside() {
    on_each_kind(|scene| {
        let script = "ln -s \"$1\" link && echo planted > link";
        let finished = scene.bash(script, scene.path("sibling/file"));

        assert!(!finished.status.is_success(), "{}", scene.kind());
        assert_eq!(scene.world.read("../sibling/file"), "theirs\n");
    });
}

#[test]
fn mode_and_owner_of_what_is_outside_stay_with_bwrap() {
    let scene = Scene::new(BoxKind::Bwrap);
    if is_here(scene.kind()) {
        for attempt in ["chmod 777 \"$1\"", "touch -d 2001-01-01 \"$1\"", "setfattr -n user.a -v b \"$1\"", "truncate -s 0 \"$1\""] {
            let finished = scene.bash(attempt, scene.path("sibling/file"));

            assert!(!finished.status.is_success(), "{attempt}");
        }
    }
}

#[test]
fn mounts_can_not_be_undone() {
    on_each_kind(|scene| {
        let target = scene.path("sibling");
        for attempt in [
            "mount -o remount,rw,bind \"$1\"",
            "mount -o remount,rw /",
            "umount /tmp",
            "mount --bind . \"$1\"",
            "unshare --user --map-root-user --mount mount -o remount,rw,bind /",
            "nsenter --target 1 --mount touch \"$1/planted\"",
            "chroot /proc/1/root touch \"$1/planted\"",
        ] {
            let _ = scene.bash(&format!("{attempt}; touch \"$1/planted\""), &target);

            assert!(!target.join("planted").exists(), "{}: {attempt}", scene.kind());
        }
        let printed = expect(&scene.bash("grep -E 'CapEff|NoNewPrivs' /proc/self/status", ""), 0, "status");
        assert_eq!(printed, "CapEff:\t0000000000000000\nNoNewPrivs:\t1\n", "{}", scene.kind());
    });
}

#[test]
fn what_is_hidden_can_not_be_read_with_bwrap_and_not_written_with_either() {
    on_each_kind(|scene| {
        let journal = scene.path("home/.local/state/proctor/journal.db");
        let finished = scene.bash("cat \"$1\"", &journal);

        assert_eq!(finished.status.is_success(), scene.kind() == BoxKind::Landlock);
        let _ = scene.bash("echo planted > \"$1\"; rm -f \"$1\"; rm -rf \"${1%/*}\"", &journal);
        assert_eq!(fs::read_to_string(&journal).unwrap(), "ours\n", "{}", scene.kind());
    });
}

#[test]
fn what_is_shown_inside_a_hidden_folder_is_read_only() {
    let mut scene = Scene::new(BoxKind::Bwrap);
    if is_here(scene.kind()) {
        scene.world.write("../home/.local/state/proctor/sessions/one/prompt.md", "Do it.\n");
        scene.world.write("../home/.local/state/proctor/sessions/two/prompt.md", "Not yours.\n");
        scene.rules.read_only_inside.push(scene.path("home/.local/state/proctor/sessions/one"));
        let script = "cd \"$1\" && ls && cat one/prompt.md && ! touch one/planted 2>/dev/null";

        let finished = scene.bash(script, scene.path("home/.local/state/proctor/sessions"));

        assert_eq!(expect(&finished, 0, "look"), "one\nDo it.\n");
    }
}

#[test]
fn temporary_files_of_others_are_not_seen_with_bwrap() {
    let scene = Scene::new(BoxKind::Bwrap);
    if is_here(scene.kind()) {
        let other = tempfile::Builder::new().prefix("proctor-other-").tempdir_in("/tmp").unwrap();
        fs::File::create(other.path().join("socket")).unwrap();

        assert!(!scene.bash("cat \"$1\"", other.path().join("socket")).status.is_success());
        expect(&scene.bash("echo mine > /tmp/proctor-test && cat /tmp/proctor-test", ""), 0, "its own /tmp");
        assert!(!Path::new("/tmp/proctor-test").exists());
    }
}

#[test]
fn an_in_place_checkout_keeps_its_settings_and_hooks() {
    let scene = Scene::in_place();
    if is_here(scene.kind()) {
        scene.world.write(".git/info/exclude", "*.o\n");
        let git = scene.tree.join(".git");
        let config = fs::read(git.join("config")).unwrap();
        let script = "echo new > new && git add new && git commit --quiet -m 'From a box' && git status --porcelain";

        expect(&scene.bash(script, ""), 0, "commit");
        for name in ["config", "info/exclude"] {
            for attempt in ATTEMPTS.iter().filter(|attempt| !attempt.starts_with("mkdir")) {
                let finished = scene.bash(attempt, git.join(name));

                assert!(!finished.status.is_success(), "{name}: {attempt}");
            }
        }
        for attempt in ["touch \"$1/hooks/pre-commit\"", "mv \"$1\" \"$1.old\"", "mv \"$1/hooks\" \"$1/h\"", "rm -rf \"$1/hooks\""] {
            assert!(!scene.bash(attempt, &git).status.is_success(), "{attempt}");
        }
        assert_eq!(fs::read(git.join("config")).unwrap(), config);
        assert!(git.join("hooks").is_dir());
        assert_eq!(scene.world.commits(), ["Begin", "From a box"]);
    }
}

#[test]
fn nothing_outlives_a_bwrap_box() {
    let scene = Scene::new(BoxKind::Bwrap);
    if is_here(scene.kind()) {
        let script = "setsid --fork env -i sleep 1000 >/dev/null 2>&1 </dev/null; echo started";

        assert_eq!(expect(&scene.bash(script, ""), 0, "it ends though a grandchild does not"), "started\n");
        // The namespace is emptied by the kernel, which may need a moment more than `bwrap`.
        wait_for("nothing is left", LIMIT, || sleepers(&scene).is_empty());
    }
}

#[test]
fn a_bwrap_box_dies_with_whoever_made_it() {
    let scene = Scene::new(BoxKind::Bwrap);
    if is_here(scene.kind()) {
        let mut child = scene.program(bash("setsid --fork env -i sleep 1000; touch ready; sleep 1000", OsStr::new(""))).spawn().unwrap();
        wait_for("it is ready", LIMIT, || scene.tree.join("ready").exists());
        assert!(!sleepers(&scene).is_empty());

        // No signal of the group, and none that `bwrap` could act on.
        let _ = child.signal(Signal::Kill).unwrap();

        wait_for("nothing is left", LIMIT, || sleepers(&scene).is_empty());
        let _ = child.wait().unwrap();
    }
}

/// Living processes whose working directory is the scene's tree. Its path is the test's own.
fn sleepers(scene: &Scene) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|folder| folder == scene.tree))
        .filter(|pid| ProcessIdentity::of(*pid).is_some_and(|identity| identity.is_alive()))
        .collect()
}

#[test]
fn exit_codes_come_through() {
    on_each_kind(|scene| {
        for code in [0, 1, 3, 75, 255] {
            expect(&scene.bash("exit \"$1\"", code.to_string()), code, scene.kind().name());
        }
        expect(&scene.bash("kill -KILL $$", ""), 137, "killed by itself");
        expect(&scene.bash("kill -TERM $$", ""), 143, "ended by itself");
        let finished = scene.run(vec!["proctor-no-such-program".into()]);
        expect(&finished, 127, "no such program");
        let stderr = String::from_utf8_lossy(&finished.stderr).into_owned();
        assert!(stderr.contains("failed to start proctor-no-such-program in its box"), "{stderr}");
        expect(&scene.run(vec!["/etc".into()]), 126, "not a program");
    });
}

#[test]
fn a_request_to_end_reaches_the_program_and_not_the_box_first() {
    on_each_kind(|scene| {
        let script = "trap 'touch cleaned; exit 7' TERM; touch ready; while :; do sleep 0.01; done";
        let mut child = scene.program(bash(script, OsStr::new(""))).spawn().unwrap();
        wait_for("it is ready", LIMIT, || scene.tree.join("ready").exists());

        let _ = child.signal_group(Signal::Terminate).unwrap();

        let mut status = None;
        wait_for("it ends", LIMIT, || {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        assert_eq!(status.unwrap().shell_code(), 7, "{}", scene.kind());
        assert!(scene.tree.join("cleaned").exists());
    });
}

#[test]
fn input_directory_and_environment_are_kept() {
    on_each_kind(|scene| {
        let program = scene.program(bash("cat; pwd; echo \"$TMPDIR\"", OsStr::new("")));
        let finished = program.stdin(proctor_process::Stdin::Bytes(b"a prompt\n".to_vec())).run(Some(LIMIT)).unwrap();

        let expected = format!("a prompt\n{}\n{}\n", scene.tree.display(), scene.path("session").display());
        assert_eq!(expect(&finished, 0, scene.kind().name()), expected);
    });
}

#[test]
fn odd_names_are_names() {
    on_each_kind(|scene| {
        let mut scene = Scene::new(scene.kind());
        for name in [b"with space --".to_vec(), b"not \xff utf-8".to_vec(), b"--bind".to_vec(), b"new\nline".to_vec()] {
            let folder = scene.world.root().join(OsString::from_vec(name));
            fs::create_dir(&folder).unwrap();
            scene.rules.writable.push(folder.clone());

            expect(&scene.bash("echo \"$1\" > \"$1/file\"", &folder), 0, scene.kind().name());
            assert!(folder.join("file").exists());
        }
        let file = scene.path("one-file");
        fs::File::create(&file).unwrap();
        scene.rules.writable.push(file.clone());
        expect(&scene.bash("echo written > \"$1\"", &file), 0, "a single file");
        assert_eq!(fs::read_to_string(file).unwrap(), "written\n");
    });
}

#[test]
fn a_writable_path_that_is_not_there_is_refused() {
    on_each_kind(|scene| {
        let mut scene = Scene::new(scene.kind());
        let gone = scene.path("gone");
        scene.rules.writable.push(gone.clone());

        let finished = scene.bash("echo ran", "");

        assert!(!finished.status.is_success() && finished.stdout.is_empty(), "{}", scene.kind());
        let stderr = String::from_utf8_lossy(&finished.stderr).into_owned();
        assert!(stderr.contains(gone.to_str().unwrap()), "{stderr}");
    });
}

#[test]
fn a_box_is_made_quickly() {
    on_each_kind(|scene| {
        let quickest = (0..5).map(|_| {
            let begun = std::time::Instant::now();
            expect(&scene.run(vec!["true".into()]), 0, "true");
            begun.elapsed()
        });

        // Far more than it takes; what it takes is printed.
        let quickest = quickest.min().unwrap();
        eprintln!("{}: {quickest:?}", scene.kind());
        assert!(quickest < Duration::from_secs(5));
    });
}

#[test]
fn a_program_that_is_not_bwrap_is_no_box() {
    let world = crate::world();
    let available = probe(&world.root().join("no-such-program"), Net::All, &ContainerSetup::default());

    assert!(available.bwrap.is_err() && available.landlock.is_err(), "{available:?}");
    for kind in KINDS {
        let refused = choose(Confine::Named(kind), &available, &BoxRules::default()).unwrap_err().to_string();

        assert!(refused.starts_with(&format!("make a {kind} box: ")), "{refused}");
    }
    assert_eq!(choose(Confine::Auto, &available, &BoxRules::default()).unwrap().kind(), BoxKind::None);
}

#[test]
fn the_hidden_command_says_that_it_is_not_for_people() {
    let output = crate::world().proctor(&["confine"]).expect_code(126);

    assert_eq!(output.stderr, "error: failed to enter a box: this command is for Proctor itself, which gave no `stage`\n");
}
