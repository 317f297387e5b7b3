//! Layouts, and finding cards on a disk.

use std::fs::{create_dir_all, write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use proctor_cards::{BoxDefaults, FindError, Layout, Source, find_procedure, list_procedures, load_box_defaults};
use tempfile::TempDir;

#[expect(clippy::disallowed_methods, reason = "a fixture has no reader that could see half of it")]
fn put(root: &Path, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
    let path = root.join(path);
    create_dir_all(path.parent().unwrap()).unwrap();
    write(path, bytes).unwrap();
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (path, text) in files {
        put(folder.path(), path, text);
    }
    folder
}

const GOOD: &str = "---\nname: other-name\nsteps: []\n---\n";

#[test]
fn a_folder_with_the_marks_of_a_box_is_one() {
    for (files, layout) in [
        (&[][..], Layout::Proctor),
        (&[("proctor.toml", "")], Layout::Proctor),
        (&[(".beebox/box.json", "{}")], Layout::BeeBox),
        (&[("_config/box.json", "{}")], Layout::BeeBox),
        (&[("_config/other.json", "{}")], Layout::Proctor),
    ] {
        assert_eq!(Layout::find(folder(files).path()), layout, "{files:?}");
    }
}

#[test]
fn a_bad_card_does_not_hide_the_others() {
    let root = folder(&[
        ("proctor/procedures/zebra.procedure.card", GOOD),
        ("proctor/procedures/broken.procedure.card", "---\nname: [\n---\n"),
        ("proctor/procedures/notes.md", "no card"),
        ("proctor/procedures/.procedure.card", GOOD),
        ("proctor/procedures/ant.procedure.card", GOOD),
    ]);
    put(root.path(), "proctor/procedures/latin.procedure.card", b"---\nname: caf\xe9\n---\n");
    put(root.path(), "proctor/procedures/huge.procedure.card", vec![b'x'; 8 * 1024 * 1024 + 1]);
    create_dir_all(root.path().join("proctor/procedures/folder.procedure.card")).unwrap();
    std::os::unix::fs::symlink("nowhere", root.path().join("proctor/procedures/link.procedure.card")).unwrap();
    put(root.path(), Path::new("proctor/procedures").join(std::ffi::OsStr::from_bytes(b"b\xffd.procedure.card")), GOOD);

    let listed = list_procedures(root.path(), Layout::Proctor);

    let lines: Vec<String> = listed
        .into_iter()
        .map(|card| match card.result {
            Ok(found) => format!("{}: {}", card.name, found.definition.name),
            Err(findings) => format!("{}: {}", card.name, findings[0]),
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    ant: other-name
    broken: proctor/procedures/broken.procedure.card:2:7: error: not valid YAML: unclosed bracket '['
      2 | name: [
        |       ^
    b�d: other-name
    folder: proctor/procedures/folder.procedure.card: error: is no regular file
    huge: proctor/procedures/huge.procedure.card: error: is larger than 8 MiB, and no card that large is read
    latin: proctor/procedures/latin.procedure.card:2:10: error: is no UTF-8 text: the byte 0xe9 can't stand here
      2 | name: caf�
        |          ^
      hint: save the file as UTF-8
    link: proctor/procedures/link.procedure.card: error: can't be read: No such file or directory (os error 2)
    zebra: other-name
    ");
}

#[test]
fn a_folder_without_procedures_has_none() {
    assert!(list_procedures(folder(&[]).path(), Layout::BeeBox).is_empty());
    assert_eq!(list_procedures(folder(&[("proctor/procedures", "a file")]).path(), Layout::Proctor).len(), 1);
}

#[test]
fn a_procedure_is_found_by_name_or_path() {
    let root = folder(&[("_config/procedures/tidy-seeds.procedure.card", GOOD), ("sub/x.procedure.card", GOOD), ("odd/name", GOOD)]);
    let absolute = root.path().join("sub/x.procedure.card").display().to_string();

    for (asked, shown) in [
        ("tidy-seeds", "_config/procedures/tidy-seeds.procedure.card"),
        ("sub/x.procedure.card", "sub/x.procedure.card"),
        ("odd/name", "odd/name"),
        (absolute.as_str(), absolute.as_str()),
    ] {
        let found = find_procedure(root.path(), Layout::BeeBox, asked);

        assert_eq!(found, Ok(Source { path: PathBuf::from(shown), text: GOOD.to_owned() }), "{asked}");
    }
}

#[test]
fn a_procedure_that_is_not_there_names_the_nearest() {
    let root = folder(&[("_config/procedures/tidy-seeds.procedure.card", GOOD)]);
    let missing = |asked: &str| find_procedure(root.path(), Layout::BeeBox, asked).unwrap_err().to_string();

    insta::assert_snapshot!(missing("tidy_seed"), @"find the procedure `tidy_seed`: there is no _config/procedures/tidy_seed.procedure.card; did you mean `tidy-seeds`?");
    insta::assert_snapshot!(missing("_config/tidy-seeds.procedure.card"), @"find the procedure `_config/tidy-seeds.procedure.card`: there is no _config/tidy-seeds.procedure.card; did you mean `tidy-seeds`?");
    insta::assert_snapshot!(missing("release"), @"find the procedure `release`: there is no _config/procedures/release.procedure.card");
    insta::assert_snapshot!(missing(""), @"find the procedure ``: there is no _config/procedures/.procedure.card");
    assert!(matches!(find_procedure(root.path(), Layout::BeeBox, "a\0b"), Err(FindError::NotFound { .. })));
    assert!(matches!(find_procedure(root.path(), Layout::BeeBox, "_config/"), Err(FindError::Unreadable(_))));
}

#[test]
fn settings_of_a_box_are_read_where_there_are_any() {
    let root = folder(&[("_config/box.json", "{\"agentModel\": \"opus\"}")]);

    assert_eq!(load_box_defaults(root.path()).unwrap().agent_model.as_deref(), Some("opus"));
    assert_eq!(load_box_defaults(folder(&[]).path()), Ok(BoxDefaults::default()));
    assert!(load_box_defaults(folder(&[("_config/box.json", "{")]).path()).is_err());
}
