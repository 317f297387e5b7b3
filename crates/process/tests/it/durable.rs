use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use proctor_process::durable::{Durability, DurableError, Replaced, replace, write};

use crate::world::bash;

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gone/file");

    let error = write(&path, b"x", Durability::Synced).unwrap_err();

    assert!(matches!(&error, DurableError::NoFolder { path: named } if *named == path), "{error:?}");
}

#[test]
fn a_failed_write_leaves_the_old_contents_and_no_other_file() {
    let folder = tempfile::tempdir().unwrap();
    // A folder with something in it can't be replaced by a file, whoever we are.
    let path = folder.path().join("taken");
    fs::create_dir_all(path.join("inside")).unwrap();

    let error = write(&path, b"new", Durability::Renamed).unwrap_err();

    assert!(error.to_string().contains("taken"), "{error}");
    assert_eq!(names_in(folder.path()), ["taken"]);
}

#[test]
fn a_full_disk_leaves_the_old_contents_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o size=64k none '{}'", folder.path().display());
    if !bash(&mount).run(None).unwrap().status.is_success() {
        println!("skipped: only root can mount a small file system");
        return;
    }
    let path = folder.path().join("file");
    write(&path, b"old", Durability::Synced).unwrap();

    let error = write(&path, &[b'x'; 256 * 1024], Durability::Synced).unwrap_err();
    let other = replace(&path, Some(b"old"), &[b'x'; 256 * 1024], Durability::Synced, 0o600).unwrap_err();

    let contents = fs::read(&path).unwrap();
    let names = names_in(folder.path());
    bash(&format!("umount '{}'", folder.path().display())).run(None).unwrap();
    assert!(matches!(error, DurableError::NoSpace { .. }), "{error:?}");
    assert!(matches!(other, DurableError::NoSpace { .. }), "{other:?}");
    assert_eq!((contents, names), (b"old".to_vec(), vec!["file".to_owned()]));
}

#[test]
fn contents_are_replaced_and_private() {
    for durability in [Durability::Synced, Durability::Renamed] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");

        write(&path, b"first", durability).unwrap();
        write(&path, b"second", durability).unwrap();

        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(names_in(folder.path()), ["file"]);
    }
}

#[test]
fn a_file_is_replaced_only_while_it_holds_what_was_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared");
    let to = |known: Option<&[u8]>, bytes: &[u8]| replace(&path, known, bytes, Durability::Synced, 0o600).unwrap();

    assert_eq!(to(None, b"one"), Replaced::Done);
    assert_eq!(to(None, b"two"), Replaced::Changed, "somebody made it meanwhile");
    assert_eq!(to(Some(b"other"), b"two"), Replaced::Changed, "somebody wrote it meanwhile");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(to(Some(b"one"), b"two"), Replaced::Done);

    assert_eq!((fs::read(&path).unwrap(), names_in(folder.path())), (b"two".to_vec(), vec!["shared".to_owned()]));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640, "it keeps its mode");
    fs::remove_file(&path).unwrap();
    assert_eq!(to(Some(b"two"), b"three"), Replaced::Changed, "somebody removed it meanwhile");
    assert!(!path.exists());
}
