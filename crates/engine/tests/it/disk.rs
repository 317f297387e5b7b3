//! Disks that are full, read-only, or gone.

use std::path::PathBuf;

use proctor_domain::session::SessionEnd;
use proctor_engine::{Found, HostError, Waited, start};

use crate::world::{World, bash, host_program, until, wait, world};

/// A small file system of its own, unmounted at the end.
struct Mount(PathBuf);

impl Mount {
    /// `None` where we may not mount.
    fn new(folder: &tempfile::TempDir, size: &str) -> Option<Self> {
        let place = folder.path().join("small");
        std::fs::create_dir(&place).unwrap();
        let mounted = bash(&format!("mount -t tmpfs -o size={size} none '{}'", place.display())).run(None).unwrap().status.is_success();
        if !mounted {
            println!("skipped: only root can mount a small file system");
        }
        mounted.then_some(Self(place))
    }

    fn remount_read_only(&self) {
        assert!(bash(&format!("mount -o remount,ro '{}'", self.0.display())).run(None).unwrap().status.is_success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = bash(&format!("umount -l '{}'", self.0.display())).run(None);
    }
}

fn small_world(size: &str, shells: &[&str]) -> Option<(World, Mount)> {
    let folder = tempfile::tempdir().unwrap();
    let mount = Mount::new(&folder, size)?;
    Some((World::at(folder, &mount.0, shells), mount))
}

#[test]
fn a_flood_that_fills_the_disk_blocks_nobody_and_is_reported() {
    let Some((world, _mount)) = small_world("2m", &["head -c 8000000 /dev/zero | tr '\\0' 'x' | fold -w 79; echo end >&2", "echo next"])
    else {
        return;
    };

    let report = world.run();

    assert_eq!(report.end, SessionEnd::Completed, "{report:?}");
    assert!(report.stdout.tail.ends_with("xxx\nnext\n") || report.stdout.tail.ends_with("xnext\n"), "{:?}", report.stdout.tail);
    assert_eq!(report.stderr.text(), "end\n");
    let note = report.log_note.unwrap();
    assert!(note.contains("stdout.log: ") && note.contains("bytes not kept (No space left on device"), "{note}");
}

#[test]
fn a_shell_that_fills_the_disk_does_not_take_the_report_along() {
    let Some((world, _mount)) =
        small_world("2m", &["echo $PROCTOR_OUTPUT; seq 1 100000; cat /dev/zero > \"${PROCTOR_OUTPUT%/*}/fill\" || true; exit 3"])
    else {
        return;
    };

    let report = world.run();

    assert_eq!((report.end, report.shells.last().map(|shell| shell.exit_code)), (SessionEnd::Completed, Some(3)));
    let note = report.log_note.unwrap();
    assert!(note.contains("because the disk is full and the report needs room"), "{note}");
}

#[test]
fn a_full_disk_at_the_start_is_an_error_that_names_the_file() {
    let Some((world, mount)) = small_world("64k", &["true"]) else { return };
    bash("cat /dev/zero > fill").dir(&mount.0).run(None).unwrap();

    let error = start(&world.spec, &host_program()).unwrap_err();

    assert!(matches!(error, HostError::Files { .. } | HostError::Durable(_)), "{error:?}");
    assert!(matches!(world.find().unwrap(), Found::NeverStarted));
}

#[test]
fn state_that_is_read_only_at_the_start_is_an_error_that_names_it() {
    let Some((world, mount)) = small_world("1m", &["true"]) else { return };
    mount.remount_read_only();

    let error = start(&world.spec, &host_program()).unwrap_err();

    assert!(matches!(&error, HostError::Files { path, .. } if *path == world.spec.folder), "{error:?}");
}

#[test]
fn state_that_is_removed_under_a_session_loses_it_and_ends_its_processes() {
    let world = world(&["echo $$ > pid; setsid sleep 1000 & read -r _ < go"]);
    bash("mkfifo go").dir(&world.spec.directory).run(None).unwrap();
    let mut attached = world.start();
    world.process("pid");
    std::fs::remove_dir_all(&world.spec.folder).unwrap();
    std::fs::remove_file(&world.spec.lock).unwrap();

    bash("echo > go").dir(&world.spec.directory).run(None).unwrap();
    let waited = wait(&mut attached);

    assert!(matches!(waited, Waited::Lost), "{waited:?}");
    assert!(until(
        || proctor_process::family::marked("PROCTOR_SESSION", |value| value == world.spec.session.as_str().as_bytes()).is_empty()
    ));
}
