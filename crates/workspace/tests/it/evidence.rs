//! What a judge is shown of a change.

use proctor_domain::Oid;
use proctor_workspace::Repository;

use crate::world::{World, write_script};

const LIMIT: usize = 200 * 1024;

/// The tree of everything that is in the work tree now.
fn tree(repository: &Repository) -> Oid {
    let changed = repository.status().unwrap().paths();
    repository.snapshot(&changed).unwrap()
}

fn evidence(repository: &Repository, limit: usize) -> String {
    let head = repository.head().unwrap().commit;
    repository.evidence(head.as_ref(), &tree(repository), limit).unwrap()
}

#[test]
fn programs_and_attributes_that_a_step_plants_neither_run_nor_hide_anything() {
    let world = World::new();
    let repository = world.repository();
    let trace = world.outside("trace");
    write_script(&world.outside("plant"), &format!("echo ran >> '{}'; echo nothing to see", trace.display()));
    let plant = world.outside("plant");
    for key in ["diff.external", "diff.x.textconv", "diff.x.command", "core.pager", "core.fsmonitor"] {
        world.git(&["config", key, plant.to_str().unwrap()]);
    }
    world.git(&["config", "color.ui", "always"]);
    world.git(&["config", "diff.noprefix", "true"]);
    world.write(".gitattributes", "kept diff=x\ndir/* binary\n");
    world.write("kept", "changed\n");
    world.write("dir/a", "changed\n");
    let tree = tree(&repository);
    world.git(&["diff"]);
    assert!(trace.exists(), "the plant does not work");
    std::fs::remove_file(&trace).unwrap();

    let text = repository.evidence(repository.head().unwrap().commit.as_ref(), &tree, LIMIT).unwrap();

    assert!(!trace.exists(), "the plant ran");
    let kept = "diff --git a/kept b/kept\n--- a/kept\n+++ b/kept\n@@ -1 +1 @@\n-kept\n+changed\n";
    assert!(text.ends_with(kept), "{text}");
    assert!(text.contains("@@ -1 +1 @@\n-dir/a\n+changed\n"), "{text}");
}

#[test]
fn replacement_objects_are_not_followed() {
    let world = World::new();
    let repository = world.repository();
    world.write("kept", "evil\n");
    let tree = tree(&repository);
    let evil = world.git(&["rev-parse", &format!("{tree}:kept")]).trim().to_owned();
    let good = world.git(&["rev-parse", "HEAD:kept"]).trim().to_owned();
    world.git(&["replace", &evil, &good]);

    let text = repository.evidence(repository.head().unwrap().commit.as_ref(), &tree, LIMIT).unwrap();

    assert!(text.contains("+evil\n"), "{text}");
}

#[test]
fn what_is_longer_than_the_limit_has_a_list_before_it_and_says_what_was_cut() {
    let world = World::new();
    let repository = world.repository();
    world.write("long", &"a line of text\n".repeat(40_000));
    world.write("kept", "short change\n");
    world.write("dir/other", &"another line\n".repeat(40_000));

    let text = evidence(&repository, LIMIT);

    assert!(text.len() <= LIMIT + 200, "{}", text.len());
    assert!(text.len() > LIMIT / 2, "{}", text.len());
    let list = text.split("diff --git ").next().unwrap();
    for line in [" kept | +1 -1\n", " long (new) | +40000 -0\n", " dir/other (new) | +40000 -0\n", " 3 files changed\n"] {
        assert!(list.contains(line), "{list}");
    }
    assert!(text.contains("-kept\n+short change\n"));
    assert_eq!(text.matches("[Cut here: ").count(), 2);
}

#[test]
fn where_thousands_of_files_changed_the_rest_is_counted() {
    let world = World::new();
    let repository = world.repository();
    for number in 0..3_000 {
        world.write(format!("many/{number:04}"), "x\n");
    }

    let text = evidence(&repository, 20_000);

    assert!(text.len() <= 20_400, "{}", text.len());
    assert!(text.contains(" 3000 files changed\n"));
    assert!(text.contains(" more changed files are not listed.]"));
    assert!(text.contains(" more files, from many/"));
}

#[test]
fn without_a_commit_before_everything_is_new() {
    for format in ["sha1", "sha256"] {
        let world = World::without_repository();
        world.git(&["init", "--quiet", "--template=", "--object-format", format]);
        world.write("a", "one\n");
        let repository = world.repository();

        let text = repository.evidence(None, &tree(&repository), LIMIT).unwrap();

        assert_eq!(text, "diff --git a/a b/a\nnew file mode 100644\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+one\n", "{format}");
        world.git(&["add", "--all"]);
        world.git(&["commit", "--quiet", "--message", "first"]);
        world.write("a", "two\n");
        assert!(evidence(&repository, LIMIT).contains("-one\n+two\n"), "{format}");
    }
}

#[test]
fn nothing_changed_is_nothing() {
    let world = World::new();

    assert_eq!(evidence(&world.repository(), LIMIT), "");
}

#[test]
fn binaries_come_by_name_and_size() {
    let world = World::new();
    std::fs::copy(std::env::current_exe().unwrap(), world.on_disk("tool")).unwrap();
    let file = std::fs::File::create(world.on_disk("small")).unwrap();
    std::io::Write::write_all(&mut &file, &[0, 159, 146, 150, 0, 0, 255]).unwrap();
    let huge = std::fs::File::create(world.on_disk("huge")).unwrap();
    huge.set_len(33 * 1024 * 1024).unwrap();

    let text = evidence(&world.repository(), LIMIT);

    assert!(
        text.contains("diff --git a/small b/small\nnew file mode 100644\n[binary: 7 bytes, new]\n"),
        "{}",
        &text[..2_000.min(text.len())]
    );
    assert!(text.contains("diff --git a/huge b/huge\nnew file mode 100644\n[too large to be compared: 34603008 bytes, new]\n"));
    assert!(text.contains("diff --git a/tool b/tool\nnew file mode 100755\n["));
}

#[test]
fn paths_of_any_bytes_are_named() {
    let world = World::new();
    for name in [&b"\xff.txt"[..], b"new\nline", b"quote\"", "ä ö".as_bytes(), b":(top)x", b"-x"] {
        world.write(name, "x\n");
    }

    let text = evidence(&world.repository(), LIMIT);

    for line in [
        r#"+++ "b/\377.txt""#,
        r#"+++ "b/new\nline""#,
        r#"+++ b/quote""#,
        "+++ b/ä ö",
        "+++ b/:(top)x",
        "+++ b/-x",
        r#"diff --git "a/\377.txt" "b/\377.txt""#,
    ] {
        assert!(text.lines().any(|known| known == line), "{line} in {text}");
    }
}

#[test]
fn renames_links_modes_and_changes_of_kind_are_shown() {
    let world = World::new();
    world.write("dir/long", &"a line\n".repeat(100));
    world.commit_all(&world.repository());
    std::fs::rename(world.on_disk("dir/long"), world.on_disk("moved")).unwrap();
    world.remove("kept");
    std::os::unix::fs::symlink("elsewhere", world.on_disk("kept")).unwrap();
    crate::world::make_executable(&world.on_disk("dir/a"));
    // A file becomes a folder of that name.
    world.remove("dir/b");
    world.write("dir/b/inner", "x\n");

    let text = evidence(&world.repository(), LIMIT);

    assert!(text.contains("diff --git a/dir/long b/moved\nrename from dir/long\nrename to moved\n"), "{text}");
    assert!(text.contains("diff --git a/dir/a b/dir/a\nold mode 100644\nnew mode 100755\n"), "{text}");
    assert!(text.contains("diff --git a/kept b/kept\ndeleted file mode 100644\n--- a/kept\n+++ /dev/null\n"), "{text}");
    assert!(
        text.contains("diff --git a/kept b/kept\nnew file mode 120000\n--- /dev/null\n+++ b/kept\n@@ -0,0 +1 @@\n+elsewhere\n"),
        "{text}"
    );
    assert!(text.contains("deleted file mode 100644\n--- a/dir/b\n") && text.contains("+++ b/dir/b/inner\n"), "{text}");
}

#[test]
fn many_large_files_are_compared_in_parts() {
    let world = World::new();
    for number in 0..5 {
        world.write(format!("large{number}"), &format!("{number} some line\n").repeat(1_500_000));
    }
    world.remove("dir/b");
    world.write("dir/b/inner", "x\n");

    let text = evidence(&world.repository(), LIMIT);

    assert!(text.len() <= LIMIT + 200);
    for number in 0..5 {
        assert!(text.contains(&format!(" large{number} (new) | +1500000 -0\n")), "{}", &text[..1_000]);
    }
    assert!(text.contains("+++ b/dir/b/inner\n@@ -0,0 +1 @@\n+x\n"));
}
