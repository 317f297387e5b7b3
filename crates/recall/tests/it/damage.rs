//! Damaged files are refused with a sentence and never written.

use std::fs;
use std::os::unix::fs::symlink;

use proctor_recall::{Damage, Effect, FileKind, Line, StoreError};

use crate::{Scene, fails, works};

fn refused(scene: &Scene) -> String {
    let text = fs::read(scene.folder.file(FileKind::Fails)).unwrap();
    let line = Line::of(fails("another"));

    let error = scene.folder.change(Effect::Write, |contents| contents.add(line.clone())).unwrap_err();

    assert_eq!(fs::read(scene.folder.file(FileKind::Fails)).unwrap(), text, "the file was written");
    assert!(scene.folder.read().is_err());
    assert!(error.hint().is_some(), "{error}");
    error.to_string().rsplit("fails.md ").next().unwrap().to_owned()
}

#[test]
fn a_file_that_git_could_not_merge_is_refused() {
    let text =
        "- route: a | observation: b\n<<<<<<< HEAD\n- route: c | observation: d\n=======\n- route: e | observation: f\n>>>>>>> other\n";

    assert_eq!(
        refused(&Scene::new().with(FileKind::Fails, text)),
        "can't be used: it has the marks of a merge that git left to you, the first in line 2"
    );
}

#[test]
fn a_file_that_was_cut_off_anywhere_is_refused_or_whole() {
    let scene = Scene::new();
    let first = scene.add(fails("first"));
    scene.add(fails("second"));
    let text = scene.text(FileKind::Fails);
    let begin = text.find("- route: first").unwrap();
    for end in begin..text.len() {
        scene.write(FileKind::Fails, &text[..end]);
        match scene.folder.read() {
            Ok(contents) => assert!(contents.find(first.as_str()).is_ok() && contents.entries().count() == 2, "cut at {end}"),
            Err(StoreError::Damaged { damage: Damage::CutOff | Damage::OpenComment { .. }, .. }) => {}
            Err(other) => panic!("cut at {end}: {other}"),
        }
    }
    scene.write(FileKind::Fails, &text[..text.len() - 40]);

    assert!(refused(&scene).contains("it was cut off"));
}

#[test]
fn an_empty_file_a_file_of_zeros_and_one_that_is_no_text_are_refused() {
    assert_eq!(refused(&Scene::new().with(FileKind::Fails, "")), "can't be used: it is empty");
    assert_eq!(refused(&Scene::new().with(FileKind::Fails, "- a\n- b\0\0\n")), "can't be used: line 2 is not text in UTF-8");
    assert_eq!(refused(&Scene::new().with(FileKind::Fails, b"- a\n\n- \xff\xfe\n")), "can't be used: line 3 is not text in UTF-8");
}

#[test]
fn a_comment_that_does_not_end_is_refused_and_one_that_does_hides_its_lines() {
    let open = Scene::new().with(FileKind::Fails, "- one\n<!-- for later\n- two\n");
    let closed = Scene::new().with(FileKind::Fails, "- one\n<!-- for later\n- two\n-->\n- three\n");

    assert!(refused(&open).contains("the comment that begins in line 2 is not closed"));
    assert_eq!(closed.routes(), ["one", "three"]);
}

#[test]
fn a_link_instead_of_a_file_or_of_the_folder_is_refused() {
    let scene = Scene::new().with(FileKind::Works, "- route: a | trap: b\n");
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("fails.md"), "- precious\n").unwrap();
    symlink(outside.path().join("fails.md"), scene.folder.file(FileKind::Fails)).unwrap();

    assert_eq!(refused(&scene), "can't be used: it is no ordinary file");

    let other = Scene::new();
    fs::create_dir(other.root().join("proctor")).unwrap();
    symlink(outside.path(), other.root().join("proctor/memory")).unwrap();
    assert!(matches!(other.folder.read(), Err(StoreError::Elsewhere { .. })));
    let dangling = Scene::new();
    symlink("/nowhere/at/all", dangling.root().join("proctor")).unwrap();
    let line = Line::of(works("x"));
    let error = dangling.folder.change(Effect::Write, |contents| contents.add(line.clone())).unwrap_err();
    assert!(matches!(error, StoreError::Elsewhere { .. }), "{error}");
}

#[test]
fn a_newer_file_is_read_and_not_written() {
    let text = "<!-- proctor memory 2 -->\n- route: a | observation: b | smell: new\n<!-- end of memory -->\n";
    let scene = Scene::new().with(FileKind::Fails, text);
    let line = Line::of(fails("another"));

    assert_eq!(scene.routes(), ["a"]);
    let error = scene.folder.change(Effect::Write, |contents| contents.add(line.clone())).unwrap_err();

    assert!(matches!(error, StoreError::Newer { .. }), "{error}");
    assert_eq!(scene.text(FileKind::Fails), text);
    // What it does not concern goes on.
    scene.add(works("elsewhere"));
}
