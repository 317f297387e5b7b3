//! Files are the truth: hand edits are taken in, two writers lose nothing, and nothing is written that was not changed.

use std::cell::Cell;
use std::fs;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, SystemTime};

use proctor_domain::{RecordId, Timestamp};
use proctor_recall::{Added, Approval, Damage, Effect, FileKind, Folder, Incomplete, Line, Polarity, Record, StoreError};

use crate::{Scene, draft, fails, works};

#[test]
fn what_is_incomplete_is_refused_and_nothing_is_written() {
    let scene = Scene::new();

    for (record, expected) in [
        (draft(Polarity::Works, "route"), Incomplete::Trap),
        (draft(Polarity::Fails, "route"), Incomplete::Observation),
        (draft(Polarity::Works, " "), Incomplete::Route),
    ] {
        let line = Line::of(record);
        let error = scene.folder.change(Effect::Write, |contents| contents.add(line.clone())).unwrap_err();

        assert!(matches!(error, StoreError::Incomplete(missing) if missing == expected), "{error}");
    }
    assert_eq!(fs::read_dir(scene.folder.path()).unwrap().count(), 0);
}

#[test]
fn saying_what_would_be_makes_nothing() {
    let scene = Scene::new();
    let line = Line::of(works("a"));

    let added = scene.folder.change(Effect::OnlySay, |contents| contents.add(line.clone())).unwrap();

    assert!(matches!(added, Added::New(_)));
    assert!(!scene.folder.path().exists());
}

#[test]
fn lines_that_somebody_wrote_by_hand_are_taken_in_and_the_rest_is_left_as_it_is() {
    let by_hand = "Some words of mine.\r\n\r\n* route: a | observation: b\r\n  and more\r\n- just prose\r\n\r\n## Old ones\r\n+ route: c | observation: d";
    let scene = Scene::new().with(FileKind::Fails, by_hand);
    let before: Vec<(String, RecordId)> =
        scene.folder.read().unwrap().entries().map(|entry| (entry.record.route.clone(), entry.record.id.clone())).collect();

    scene.add(fails("new"));

    let text = scene.text(FileKind::Fails);
    assert!(text.contains("Some words of mine.\r\n\r\n- route: a | observation: b and more <!-- proctor id=mem_"), "{text}");
    assert!(text.contains("\r\n\r\n## Old ones\r\n- route: c | observation: d <!-- proctor id=mem_"), "{text}");
    assert!(!text.replace("\r\n", "").contains(['\n', '\r']), "one kind of line break");
    let after: Vec<(String, RecordId)> =
        scene.folder.read().unwrap().entries().map(|entry| (entry.record.route.clone(), entry.record.id.clone())).collect();
    assert_eq!(after[..3], before[..], "an id that was shown stays");
    assert_eq!(after[3].0, "new");
    assert!(scene.folder.read().unwrap().entries().all(proctor_recall::Entry::has_id));
}

#[test]
fn a_deleted_line_is_forgotten_and_a_removed_file_is_no_file() {
    let scene = Scene::new();
    scene.add(fails("first"));
    scene.add(fails("second"));
    let kept: String = scene.text(FileKind::Fails).split_inclusive('\n').filter(|line| !line.contains("first")).collect();
    scene.write(FileKind::Fails, kept);

    scene.add(fails("third"));

    assert_eq!(scene.routes(), ["second", "third"]);
    fs::remove_file(scene.folder.file(FileKind::Fails)).unwrap();
    scene.add(fails("fourth"));
    assert_eq!(scene.routes(), ["fourth"]);
}

#[test]
fn a_hand_edit_during_a_write_is_taken_in() {
    let scene = Scene::new();
    scene.add(fails("first"));
    let asked = Cell::new(0);
    let line = Line::of(fails("ours"));

    scene
        .folder
        .change(Effect::Write, |contents| {
            asked.set(asked.get() + 1);
            if asked.get() == 1 {
                let edited = scene.text(FileKind::Fails).replace("route: first", "route: edited by hand");
                fs::write(scene.folder.file(FileKind::Fails), edited).unwrap();
            }
            contents.add(line.clone())
        })
        .unwrap();

    assert_eq!(asked.get(), 2);
    assert_eq!(scene.routes(), ["edited by hand", "ours"]);
}

#[test]
fn a_file_that_somebody_makes_during_a_write_is_taken_in() {
    let scene = Scene::new();
    let asked = Cell::new(0);
    let line = Line::of(fails("ours"));

    scene
        .folder
        .change(Effect::Write, |contents| {
            asked.set(asked.get() + 1);
            if asked.get() == 1 {
                scene.write(FileKind::Fails, "- theirs\n");
            }
            contents.add(line.clone())
        })
        .unwrap();

    assert_eq!(scene.routes(), ["theirs", "ours"]);
}

#[test]
fn many_writers_at_once_lose_nothing() {
    let scene = Scene::new();
    let barrier = Barrier::new(8);
    thread::scope(|scope| {
        for writer in 0..8 {
            let (folder, barrier) = (&scene.folder, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for number in 0..10 {
                    let line = Line::of(fails(&format!("writer {writer} number {number}")));
                    folder.change(Effect::Write, |contents| contents.add(line.clone())).unwrap();
                    folder.read().unwrap();
                }
            });
        }
    });

    let mut routes = scene.routes();
    routes.sort();
    routes.dedup();
    assert_eq!(routes.len(), 80);
    let leftovers = fs::read_dir(scene.folder.path()).unwrap().count();
    assert_eq!(leftovers, 1, "nothing but the file");
}

#[test]
fn the_same_is_known_but_not_across_polarity_or_repository() {
    let scene = Scene::new();
    let id = scene.add(works("retry 3 times"));
    let again = |record: Record| {
        let line = Line::of(record);
        scene.folder.change(Effect::OnlySay, |contents| contents.add(line.clone())).unwrap()
    };

    assert_eq!(again(works("retry 3 times")), Added::Known(id, Approval::Active));
    assert!(matches!(again(works("retry 4 times")), Added::New(_)), "other numbers are another procedure");
    let mut other = works("retry 3 times");
    other.project = Some("birch".to_owned());
    assert!(matches!(again(other), Added::New(_)));
    let opposite = Record { observation: Some("it broke".to_owned()), ..Record { polarity: Polarity::Fails, ..works("retry 3 times") } };
    assert!(matches!(again(opposite), Added::New(_)));
}

#[test]
fn a_record_of_this_repository_does_not_name_it() {
    let scene = Scene::new();
    scene.add(works("ours"));
    let mut other = works("theirs");
    other.project = Some("birch".to_owned());
    scene.add(other);

    let text = scene.text(FileKind::Works);
    assert!(!text.contains("project=acorn") && text.contains("project=birch"), "{text}");
    let renamed = Folder::of_project(scene.root(), "oak").read().unwrap();
    let projects: Vec<Option<&str>> = renamed.entries().map(|entry| entry.record.project.as_deref()).collect();
    assert_eq!(projects, [Some("oak"), Some("birch")]);
}

#[test]
fn what_is_proposed_is_in_a_file_of_its_own_and_moves_when_it_is_approved() {
    let scene = Scene::new();
    let proposed = |record| Record { approval: Approval::Proposed, ..record };
    let id = scene.add(proposed(works("try this")));
    let other = scene.add(proposed(fails("not that")));
    assert_eq!(scene.folder.read().unwrap().active().count(), 0);

    scene.folder.change(Effect::Write, |contents| contents.set_approval(&id, Approval::Active)).unwrap();
    scene.folder.change(Effect::Write, |contents| contents.set_approval(&other, Approval::Rejected)).unwrap();

    let contents = scene.folder.read().unwrap();
    assert_eq!(contents.active().map(|entry| entry.record.route.as_str()).collect::<Vec<_>>(), ["try this"]);
    assert_eq!(contents.find(other.as_str()).unwrap().record.approval, Approval::Rejected);
    assert!(scene.text(FileKind::Works).contains(id.as_str()) && !scene.text(FileKind::Pending).contains(id.as_str()));
    let line = Line::of(proposed(fails("not that")));
    let again = scene.folder.change(Effect::Write, |contents| contents.add(line.clone())).unwrap();
    assert_eq!(again, Added::Known(other, Approval::Rejected), "what was rejected is not proposed again");
}

#[test]
fn a_line_among_proposals_can_not_approve_itself() {
    let scene = Scene::new().with(
        FileKind::Pending,
        "- route: a | trap: b <!-- proctor id=mem_0000000001 is=works approval=active -->\n- c <!-- proctor id=mem_0000000002 approval=yes -->\n",
    );

    let contents = scene.folder.read().unwrap();

    assert_eq!(contents.active().count(), 0);
    assert!(contents.entries().all(|entry| entry.record.approval == Approval::Proposed));
}

#[test]
fn what_counts_wins_over_the_same_among_proposals_and_rejections() {
    for mark in ["proposed", "rejected"] {
        let line = |approval: &str| format!("- route: a | trap: b <!-- proctor id=mem_0000000001{approval} -->\n");
        let scene = Scene::new().with(FileKind::Works, line("")).with(FileKind::Pending, line(&format!(" is=works approval={mark}")));

        let contents = scene.folder.read().unwrap();

        let found: Vec<Approval> = contents.entries().map(|entry| entry.record.approval).collect();
        assert_eq!(found, [Approval::Active], "{mark}");
        scene.add(fails("another"));
        let texts = scene.text(FileKind::Works) + &scene.text(FileKind::Pending);
        assert_eq!(texts.matches("mem_0000000001").count(), 1, "the next change ends it");
    }
}

#[test]
fn a_line_among_proposals_takes_neither_a_record_nor_its_id_away() {
    let line = |body: &str, more: &str| format!("- {body} <!-- proctor id=mem_0000000001{more} -->\n");
    let forged = line("route: a | trap: b", " is=works approval=rejected") + &line("route: forged | observation: x", " approval=proposed");
    let scene = Scene::new()
        .with(FileKind::Works, line("route: a | trap: b", ""))
        .with(FileKind::Fails, line("route: c | observation: d", ""))
        .with(FileKind::Pending, forged);

    scene.add(fails("another"));

    let contents = scene.folder.read().unwrap();
    let routes: Vec<&str> = contents.active().map(|entry| entry.record.route.as_str()).collect();
    assert_eq!(routes, ["a", "c", "another"]);
    assert_eq!(contents.find("mem_0000000001").unwrap().record.route, "a");
}

#[test]
fn a_line_that_somebody_moved_to_what_counts_is_approved_whatever_its_comment_says() {
    for mark in ["proposed", "rejected"] {
        let line = |fields: &str| format!("- route: a | {fields}: b <!-- proctor id=mem_0000000001 is=works approval={mark} -->\n");
        for (kind, text) in [(FileKind::Works, line("trap")), (FileKind::Fails, line("observation"))] {
            let contents = Scene::new().with(kind, text).folder.read().unwrap();

            assert_eq!(contents.active().count(), 1, "{mark}");
        }
    }
}

#[test]
fn two_lines_with_one_id_are_two_records() {
    let scene = Scene::new().with(
        FileKind::Fails,
        "- route: a | observation: b <!-- proctor id=mem_0000000001 -->\n- route: a | observation: c <!-- proctor id=mem_0000000001 -->\n",
    );
    let ids = || scene.folder.read().unwrap().entries().map(|entry| entry.record.id.clone()).collect::<Vec<_>>();
    let before = ids();
    assert_eq!((before[0].as_str(), before.len()), ("mem_0000000001", 2));
    assert_ne!(before[0], before[1]);

    scene.add(works("another"));

    assert!(before.iter().all(|id| ids().contains(id)));
    assert_eq!(scene.text(FileKind::Fails).matches("mem_0000000001").count(), 1);
}

#[test]
fn a_clock_that_was_set_back_changes_no_id_and_no_order() {
    let scene = Scene::new();
    let later = Record { created: Some(Timestamp(4_000_000_000_000)), ..fails("first") };
    let first = scene.add(later);
    let second = scene.add(Record { created: Some(Timestamp(0)), ..fails("second") });
    let third = scene.add(Record { created: Some(Timestamp(-1)), ..fails("third") });

    assert_eq!(scene.routes(), ["first", "second", "third"]);
    assert!(first != second && second != third);
    assert_eq!(scene.folder.read().unwrap().find(third.as_str()).unwrap().record.created, Some(Timestamp(-1)));
}

#[test]
fn an_id_is_found_by_its_beginning_if_that_is_one_only() {
    let scene = Scene::new().with(
        FileKind::Fails,
        "- a <!-- proctor id=mem_abc0000001 -->\n- b <!-- proctor id=mem_abc0000002 -->\n- c <!-- proctor id=mem_xyz0000001 -->\n",
    );
    let contents = scene.folder.read().unwrap();
    let route = |text: &str| contents.find(text).map(|entry| entry.record.route.clone());

    assert_eq!(route("mem_xyz").unwrap(), "c");
    assert_eq!(route("abc0000002").unwrap(), "b");
    assert!(matches!(route("mem_abc"), Err(StoreError::Ambiguous { ids, .. }) if ids.len() == 2));
    assert!(matches!(route("mem_q"), Err(StoreError::NoRecord { .. })));
    assert!(matches!(route("mem_"), Err(StoreError::NoRecord { .. } | StoreError::Ambiguous { .. })));
}

#[test]
fn a_record_that_is_replaced_is_not_shown_as_active() {
    let scene = Scene::new();
    let old = scene.add(works("old"));
    let proposed = Record { supersedes: Some(old.clone()), approval: Approval::Proposed, ..works("new") };
    let new = scene.add(proposed);
    let active = || scene.folder.read().unwrap().active().map(|entry| entry.record.route.clone()).collect::<Vec<_>>();
    assert_eq!(active(), ["old"], "a proposal replaces nothing");

    scene.folder.change(Effect::Write, |contents| contents.set_approval(&new, Approval::Active)).unwrap();

    assert_eq!(active(), ["new"]);
}

#[test]
fn records_that_replace_each_other_in_a_loop_are_all_shown() {
    let line = |route: &str, id: u8, old: u8| {
        format!("- route: {route} | trap: t <!-- proctor id=mem_000000000{id} supersedes=mem_000000000{old} -->\n")
    };
    let text = line("itself", 1, 1) + &line("a", 2, 3) + &line("b", 3, 4) + &line("c", 4, 2) + &line("new", 5, 6) + &line("old", 6, 2);
    let contents = Scene::new().with(FileKind::Works, text).folder.read().unwrap();

    let shown: Vec<&str> = contents.active().map(|entry| entry.record.route.as_str()).collect();

    assert_eq!(shown, ["itself", "b", "c", "new"], "what replaces a member of a loop from outside does so");
}

#[test]
fn the_mark_of_an_encoding_hides_neither_record_nor_header_and_stays() {
    let scene = Scene::new().with(FileKind::Fails, "\u{feff}- route: first | observation: b\n");
    scene.add(fails("second"));
    let text = scene.text(FileKind::Fails);

    assert_eq!(scene.routes(), ["first", "second"]);
    assert!(text.starts_with("\u{feff}<!-- proctor memory 1 -->\n") && text.matches('\u{feff}').count() == 1, "{text}");
    let newer = Scene::new().with(FileKind::Fails, "\u{feff}<!-- proctor memory 2 -->\n<!-- end of memory -->\n");
    let line = Line::of(fails("another"));
    let refused = newer.folder.change(Effect::Write, |contents| contents.add(line.clone())).unwrap_err();
    assert!(matches!(refused, StoreError::Newer { .. }), "{refused}");
    let cut = Scene::new().with(FileKind::Fails, "\u{feff}<!-- proctor memory 1 -->\n- a\n").folder.read().unwrap_err();
    assert!(matches!(cut, StoreError::Damaged { damage: Damage::CutOff, .. }), "{cut}");
}

#[test]
fn what_a_killed_process_left_goes_with_the_next_change_once_it_is_old() {
    let scene = Scene::new();
    scene.add(fails("first"));
    let path = |name: &str| scene.folder.path().join(name);
    for (name, age) in [(".proctor-old.tmp", 7200), (".proctor-new.tmp", 0), ("mine.tmp", 7200)] {
        fs::write(path(name), "half").unwrap();
        let file = fs::File::options().write(true).open(path(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    }

    scene.add(fails("second"));

    let is_there = |name: &str| path(name).exists();
    assert_eq!((is_there(".proctor-old.tmp"), is_there(".proctor-new.tmp"), is_there("mine.tmp")), (false, true, true));
}

#[test]
fn a_file_of_fifty_megabytes_is_read_and_changed() {
    let line = format!("- route: number 000000 | observation: {}\n", "x".repeat(1000));
    let mut text = String::with_capacity(51 << 20);
    for number in 0..50_000 {
        text.push_str(&line.replace("000000", &format!("{number:06}")));
    }
    assert!(text.len() > 50_000_000);
    let scene = Scene::new().with(FileKind::Fails, text);

    let id = scene.add(fails("one more"));

    let contents = scene.folder.read().unwrap();
    assert_eq!(contents.entries().count(), 50_001);
    assert_eq!(contents.find(id.as_str()).unwrap().record.route, "one more");
}

#[test]
fn the_mode_of_a_file_stays() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::new().with(FileKind::Fails, "- a\n");
    fs::set_permissions(scene.folder.file(FileKind::Fails), fs::Permissions::from_mode(0o640)).unwrap();

    scene.add(fails("b"));

    let mode = fs::metadata(scene.folder.file(FileKind::Fails)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    let data = tempfile::tempdir().unwrap();
    let user = Folder::of_user(data.path());
    let line = Line::of(Record { project: None, ..fails("mine") });
    user.change(Effect::Write, |contents| contents.add(line.clone())).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(user.path()), mode(&user.file(FileKind::Fails))), (0o700, 0o600));
}

#[test]
fn a_new_file_says_what_it_is_and_its_records_stand_together() {
    let scene = Scene::new();
    scene.add(fails("first"));
    scene.add(fails("second"));

    let lines: Vec<String> = scene.text(FileKind::Fails).lines().map(|line| line.chars().take(15).collect()).collect();

    assert_eq!(
        lines,
        ["# What fails", "", "<!-- proctor me", "A line is a rec", "", "- route: first ", "- route: second", "", "<!-- end of mem"]
    );
}
