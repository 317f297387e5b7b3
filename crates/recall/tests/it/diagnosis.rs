//! `doctor` names each problem, and where it is.

use std::fs;

use proctor_domain::Timestamp;
use proctor_recall::{FileKind, Weight};

use crate::{Scene, fails};

fn found(scene: &Scene) -> Vec<String> {
    let problems = scene.folder.diagnose(Timestamp(1_764_000_000_000)).unwrap();
    let place = |path: &std::path::Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let line = |line: Option<usize>| line.map(|line| format!(":{line}")).unwrap_or_default();
    problems.iter().map(|problem| format!("{}{}: {}", place(&problem.path), line(problem.line), problem.sentence)).collect()
}

fn check(text: &str, expected: &str) {
    let found = found(&Scene::new().with(FileKind::Works, text));

    assert_eq!(found.len(), 1, "{text}: {found:?}");
    assert!(found[0].contains(expected), "{text}: {found:?}");
}

#[test]
fn a_folder_in_order_has_no_problem() {
    let scene = Scene::new();
    assert_eq!(found(&scene), Vec::<String>::new());

    scene.add(fails("a"));

    assert_eq!(found(&scene), Vec::<String>::new());
}

#[test]
fn each_problem_of_a_line_is_named() {
    const ID: &str = "<!-- proctor id=mem_0000000001 -->";
    check(&format!("- route: a {ID}\n"), "works.md:1: it is no record: a route without a trap is documentation");
    check(&format!("\n- route: a | trap: b | layer: Design {ID}\n"), "works.md:2: `Design` is no layer: one of implementation,");
    check(&format!("- route: a | trap: b | colour: c {ID}\n"), "the key `colour` means nothing here");
    check(&format!("- x | route: a | trap: b {ID}\n"), "`x` stands before the first key");
    check(&format!("- route: a | trap: b | trap: c {ID}\n"), "`trap` stands there twice");
    check("- route: a | trap: b <!-- proctor id=mem_0000000001 created=soon -->\n", "the metadata `created=soon` can't be understood");
    check("- route: a | trap: b <!-- proctor id=mem_0000000001 created=2100-01-01T00:00:00Z -->\n", "it is from the future");
    check(
        "- route: a | trap: b <!-- proctor id=mem_0000000001 supersedes=mem_0000000001 -->\n",
        "it replaces itself, by way of mem_0000000001; in a loop nothing is replaced",
    );
    check(
        "- route: a | trap: b <!-- proctor id=mem_0000000001 supersedes=mem_0000000002 -->\n",
        "it replaces mem_0000000002, which is not there",
    );
    check("- route: a | trap: b\n", "it was written by hand; the next change gives it an id");
    check(&format!("- route: a | trap: {} {ID}\n", "é".repeat(700)), "it is longer than 1200 bytes");
    check(&format!("- route: a\u{202e} | trap: b {ID}\n"), "it has characters that can't be seen");
    check(&format!("- route: a | trap: ghp_0123456789012345678901234567890123456789 {ID}\n"), "it has what looks like a secret");
}

#[test]
fn a_bullet_below_a_bullet_is_neither_a_record_nor_part_of_one_stays_and_is_named() {
    let by_hand = "- route: a | observation: b\n  - and that too\n\t* route: c | observation: d\n- route: e\n  | observation: f\n";
    let scene = Scene::new().with(FileKind::Fails, by_hand);
    let named = |found: Vec<String>| found.into_iter().filter(|problem| problem.contains("below another one")).collect::<Vec<_>>();
    assert_eq!(
        named(found(&scene)),
        [
            "fails.md:3: it is a bullet below another one: no record, and no part of one; it stays as it is",
            "fails.md:2: it is a bullet below another one: no record, and no part of one; it stays as it is",
        ]
    );
    assert_eq!(scene.routes(), ["a", "e"]);
    assert_eq!(scene.folder.read().unwrap().entries().next().unwrap().record.observation.as_deref(), Some("b"));

    scene.add(fails("g"));

    let text = scene.text(FileKind::Fails);
    assert!(text.contains(" -->\n  - and that too\n\t* route: c | observation: d\n- route: e | observation: f <!-- proctor "), "{text}");
    assert_eq!(named(found(&scene)).len(), 2);
    scene.write(FileKind::Works, "- route: x | trap: y <!-- proctor id=mem_0000000001 -->\n  - below the last\n");
    scene.add(crate::works("z"));
    assert!(scene.text(FileKind::Works).contains(" -->\n  - below the last\n- route: z"), "{}", scene.text(FileKind::Works));
}

#[test]
fn twins_are_named_with_each_other() {
    let scene = Scene::new().with(
        FileKind::Works,
        "- route: a | trap: b <!-- proctor id=mem_0000000001 -->\n- route: a | trap: c <!-- proctor id=mem_0000000001 -->\n",
    );

    assert_eq!(found(&scene), ["works.md:2: its id is that of works.md:1 too; the next change gives it its own"]);
}

#[test]
fn a_rejection_of_what_counts_is_named_with_both_places_and_a_moved_line_is_in_order() {
    let line = |more: &str| format!("- route: a | trap: b <!-- proctor id=mem_0000000001{more} -->\n");
    let scene = Scene::new().with(FileKind::Works, line(" is=works approval=proposed"));
    assert_eq!(found(&scene), Vec::<String>::new());

    scene.write(FileKind::Pending, line(" is=works approval=rejected"));

    assert_eq!(
        found(&scene),
        ["pending.md:1: it is rejected here and counts in works.md:1; it counts, and the next change takes this line out"]
    );
    let problems = scene.folder.diagnose(Timestamp(0)).unwrap();
    assert_eq!(problems[0].weight, Weight::Wrong);
    assert!(problems[0].remedy.as_deref().unwrap().contains("proctor memory reject mem_0000000001"));
}

#[test]
fn damaged_files_and_half_written_ones_are_named_beside_the_rest() {
    let scene = Scene::new()
        .with(FileKind::Works, "")
        .with(FileKind::Fails, "<<<<<<< HEAD\n- a\n")
        .with(FileKind::Pending, "- b <!-- proctor id=mem_0000000001 -->\n");
    fs::write(scene.folder.path().join(".proctor-abc.tmp"), "half").unwrap();

    let problems = scene.folder.diagnose(Timestamp(0)).unwrap();

    let weights: Vec<Weight> = problems.iter().map(|problem| problem.weight).collect();
    assert_eq!(weights, [Weight::Damage, Weight::Damage, Weight::Note], "{problems:?}");
    assert!(problems.iter().all(|problem| problem.remedy.is_some()));
    assert!(found(&scene).iter().any(|problem| problem == "works.md: it is empty"));
}
