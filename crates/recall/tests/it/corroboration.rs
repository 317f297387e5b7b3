//! When what runs taught counts although nobody approved it.

use proctor_domain::RecordId;
use proctor_recall::corroboration::{Draft, Meeting, Taken, is_corroborated, meetings, run_of, take};
use proctor_recall::{Approval, Effect, Entry, FileKind, Line, Polarity, Record};

use crate::{Scene, draft, fails, works};

const ROUTE: &str = "Upgrade the parser to version 4";
const SEEN: &str = "error: two fixtures of the grammar differ";

fn lesson(number: u64) -> Record {
    Record { id: RecordId::from_bits(number), observation: Some(SEEN.to_owned()), ..fails(ROUTE) }
}

/// Takes a lesson of run `number`, whose sessions were shown these records.
fn taken(scene: &Scene, record: Record, number: u64, shown: &[RecordId]) -> Taken {
    let by = Meeting { run: format!("run_{number}"), session: format!("ses_{number}"), agent: "scripted/m".to_owned() };
    let sessions = [by.session.clone(), format!("ses_{number}b")];
    let draft = Draft { line: Line::of(record), by, sessions: &sessions, shown };
    scene.folder.change(Effect::Write, |contents| take(contents, &draft, &[])).unwrap()
}

fn only(scene: &Scene) -> Entry {
    let entries: Vec<Entry> = scene.folder.read().unwrap().entries().cloned().collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries[0].clone()
}

#[test]
fn a_lesson_waits_with_its_run_and_is_no_twin_when_it_is_proposed_again() {
    let scene = Scene::new();
    let id = RecordId::from_bits(1);

    assert_eq!(taken(&scene, lesson(1), 1, &[]), Taken::Proposed(id.clone()));
    assert_eq!(taken(&scene, lesson(1), 1, &[]), Taken::Proposed(id));

    let record = only(&scene).record;
    assert_eq!((record.approval, run_of(&record)), (Approval::Proposed, Some("run_1")));
    assert_eq!((record.session.as_deref(), record.agent.as_deref()), (Some("ses_1"), Some("scripted/m")));
}

#[test]
fn another_run_that_meets_the_same_lets_it_count_and_says_who_met_it() {
    let scene = Scene::new();
    taken(&scene, lesson(1), 1, &[]);
    let id = RecordId::from_bits(1);

    assert_eq!(taken(&scene, lesson(2), 2, &[]), Taken::Corroborated(id.clone()));
    assert_eq!(taken(&scene, lesson(2), 2, &[]), Taken::Corroborated(id.clone()), "asked again it comes to the same");
    assert_eq!(taken(&scene, lesson(3), 3, &[]), Taken::Known(id.clone()), "what counts is not counted further");

    let entry = only(&scene);
    assert_eq!((entry.file, entry.record.approval, is_corroborated(&entry.record)), (FileKind::Fails, Approval::Active, true));
    let met = Meeting { run: "run_2".to_owned(), session: "ses_2".to_owned(), agent: "scripted/m".to_owned() };
    assert_eq!(meetings(&entry.record), [met]);
    scene.folder.change(Effect::Write, |contents| contents.set_approval(&id, Approval::Rejected)).unwrap();
    assert_eq!(taken(&scene, lesson(4), 4, &[]), Taken::Known(id.clone()), "what a person rejected stays so");
    scene.folder.change(Effect::Write, |contents| contents.set_approval(&id, Approval::Active)).unwrap();
    assert!(!is_corroborated(&only(&scene).record), "a person has spoken");
}

#[test]
fn nobody_corroborates_its_own_record_or_one_that_it_was_shown() {
    let scene = Scene::new();
    taken(&scene, lesson(1), 1, &[]);
    let id = RecordId::from_bits(1);

    assert_eq!(taken(&scene, lesson(2), 1, &[]), Taken::Known(id.clone()), "another step of the same run");
    assert_eq!(taken(&scene, lesson(3), 2, std::slice::from_ref(&id)), Taken::Known(id.clone()), "it was shown the record");
    let by_hand = Scene::new();
    by_hand.add(Record { approval: Approval::Proposed, session: Some("ses_5b".to_owned()), ..lesson(1) });
    assert_eq!(taken(&by_hand, lesson(3), 5, &[]), Taken::Known(id.clone()), "a session of its run wrote it");
    let unsigned = Scene::new();
    unsigned.add(Record { approval: Approval::Proposed, ..lesson(1) });
    assert_eq!(taken(&unsigned, lesson(3), 5, &[]), Taken::Known(id), "nobody knows who wrote it");

    for scene in [scene, by_hand, unsigned] {
        assert_eq!(only(&scene).record.approval, Approval::Proposed);
    }
}

#[test]
fn both_halves_have_to_say_the_same() {
    let way = |route: &str, trap: &str| Record { trap: Some(trap.to_owned()), ..works(route) };
    let known = way("run the formatter before the check", "the check reads what the formatter writes");
    for (record, is_same) in [
        (way("run the formatter  before\nthe check", "the check reads what the formatter writes"), true),
        (way("Run the formatter before the check.", "The checks read what the formatter writes!"), true),
        (way("run the formatter before the check", "the network is slow on Mondays"), false),
        (way("install the compiler", "the check reads what the formatter writes"), false),
        (Record { project: Some("birch".to_owned()), ..known.clone() }, false),
        (
            Record { observation: Some("the check reads what the formatter writes".to_owned()), ..draft(Polarity::Fails, &known.route) },
            false,
        ),
    ] {
        let scene = Scene::new();
        taken(&scene, Record { id: RecordId::from_bits(1), ..known.clone() }, 1, &[]);

        let became = taken(&scene, Record { id: RecordId::from_bits(2), ..record.clone() }, 2, &[]);

        assert_eq!(matches!(became, Taken::Corroborated(_)), is_same, "{record:?}: {became:?}");
    }
}

#[test]
fn what_counts_in_another_folder_is_not_proposed() {
    let (scene, other) = (Scene::new(), Scene::new());
    let id = other.add(lesson(7));
    let elsewhere: Vec<Entry> = other.folder.read().unwrap().entries().cloned().collect();
    let by = Meeting { run: "run_1".to_owned(), session: "ses_1".to_owned(), agent: String::new() };
    let draft = Draft { line: Line::of(lesson(1)), by, sessions: &[], shown: &[] };

    let taken = scene.folder.change(Effect::Write, |contents| take(contents, &draft, &elsewhere)).unwrap();

    assert_eq!(taken, Taken::Known(id));
    assert_eq!(scene.routes(), [""; 0]);
}
