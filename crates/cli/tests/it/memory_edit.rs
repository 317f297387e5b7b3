//! `proctor memory edit`, `forget` and `import`: what a person did not touch stays.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use proctor_testkit::World;

use crate::memory::{FAILS, WORKS, ids};
use crate::world;

/// An editor that runs a script with the file as its first argument.
fn with_script(world: World, script: &str) -> World {
    let path = world.root().join("editor");
    world.write(&path, format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    world.with_variable("EDITOR", path.display().to_string())
}

#[test]
fn an_edit_keeps_parts_that_look_like_something_else() {
    for body in ["# 3 of them were red", "deps: they were old | files: too", "route: a | observation: x | # note | files: b | deps: c"] {
        let world = world().with_file("proctor/memory/fails.md", &format!("- {body}\n"));
        let id = ids(&world)[0].clone();
        let world = with_script(world, "sed -i 's/^files: *$/files: a.sql/' \"$1\"");

        let _ = world.proctor(&["memory", "edit", &id]).expect_code(0);

        let text = world.read("proctor/memory/fails.md");
        assert!(text.contains(&format!("- {body} <!-- proctor id={id} ")) && text.contains("files=a.sql"), "{text}");
    }
}

#[test]
fn an_edit_without_its_boundary_changes_nothing() {
    let world = world();
    let _ = world.proctor(&WORKS).expect_code(0);
    let before = world.read("proctor/memory/works.md");
    let id = ids(&world)[0].clone();
    let world = with_script(world, "sed -i '/^# /d' \"$1\"");

    let refused = world.proctor(&["memory", "edit", &id]).expect_code(2);

    assert!(refused.stderr.contains("is gone, and nothing was changed") && refused.stderr.contains("what you wrote is in"), "{refused}");
    assert_eq!(world.read("proctor/memory/works.md"), before);
}

#[test]
fn an_edit_that_changes_nothing_says_so_as_json_too() {
    let world = world();
    let _ = world.proctor(&WORKS).expect_code(0);
    let id = ids(&world)[0].clone();
    let world = with_script(world, "true");

    let receipt = world.proctor(&["memory", "edit", &id, "--json"]).expect_code(0).json();

    assert_eq!((&receipt["records"][0]["id"], &receipt["records"][0]["what"]), (&id.into(), &"unchanged".into()));
}

#[test]
fn what_an_editor_left_that_is_no_text_can_not_be_read() {
    for script in ["rm \"$1\"", "printf '\\377' > \"$1\""] {
        let world = world();
        let _ = world.proctor(&WORKS).expect_code(0);
        let id = ids(&world)[0].clone();
        let world = with_script(world, script);

        let refused = world.proctor(&["memory", "edit", &id]).expect_code(2);

        assert!(refused.stderr.contains("failed to read /") && !refused.stderr.contains("make"), "{refused}");
    }
}

#[test]
fn a_record_that_is_named_twice_is_decided_once() {
    let world = world();
    let _ = world.proctor(&WORKS).expect_code(0);
    let _ = world.proctor(&FAILS).expect_code(0);
    let ids = ids(&world);

    let receipt = world.proctor(&["memory", "forget", &ids[0], &ids[0], &ids[1], "--json"]).expect_code(0).json();

    assert_eq!(receipt["records"].as_array().map(Vec::len), Some(2));
    assert_eq!(crate::memory::ids(&world), Vec::<String>::new());
}
