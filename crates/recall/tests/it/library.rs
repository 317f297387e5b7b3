//! Several folders of memory, seen and searched as one.

use proctor_domain::{RecordId, Timestamp};
use proctor_recall::advice::Advice;
use proctor_recall::matching::Approach;
use proctor_recall::{Approval, Dependency, Effect, FileKind, Folder, Found, Library, Line, Most, Record, Shelf};

use crate::{Scene, fails, works};

const NOW: Timestamp = Timestamp(1_764_000_000_000);

/// A repository called `acorn`, and the memory of who works there.
struct Place {
    scene: Scene,
    user: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { scene: Scene::new(), user: tempfile::tempdir().unwrap() }
    }

    fn user(&self) -> Folder {
        Folder::of_user(self.user.path())
    }

    fn keep(&self, record: Record) -> RecordId {
        let line = Line::of(record);
        self.user().change(Effect::Write, |contents| contents.add(line.clone())).unwrap().id().clone()
    }

    fn library(&self) -> Library {
        let project = Shelf { name: "project", folder: self.scene.folder.clone() };
        let shelves = vec![project, Shelf { name: "user", folder: self.user() }];
        Library::new(shelves, Some("acorn".to_owned()), Some(self.scene.root().to_owned()))
    }

    fn tried(&self, text: &str, most: Most) -> Vec<Found> {
        self.library().try_approach(&Approach { text, ..Approach::default() }, most, NOW).unwrap()
    }

    /// Shelf and route of each record that names this file.
    fn about(&self, path: &str) -> Vec<(&'static str, String)> {
        self.library().about_file(path).unwrap().into_iter().map(|found| (found.shelf, found.entry.record.route)).collect()
    }
}

fn of_file(file: &str, record: Record) -> Record {
    Record { files: vec![file.to_owned()], ..record }
}

fn days_ago(days: i64, record: Record) -> Record {
    Record { created: Some(Timestamp(NOW.0 - days * 24 * 60 * 60 * 1000)), ..record }
}

#[test]
fn records_of_all_shelves_are_found_those_of_the_repository_first_and_what_is_from_elsewhere_is_flagged() {
    let place = Place::new();
    place.keep(Record { project: Some("birch".to_owned()), ..fails("cache the docker image by its tag") });
    place.keep(fails("cache the docker image by tag for a week"));
    place.scene.add(works("pull the docker image before the cache by its tag"));

    let found = place.tried("cache the docker image by its tag", Most::default());

    let told: Vec<_> = found.iter().map(|found| (found.shelf, found.entry.record.route.as_str(), found.is_elsewhere)).collect();
    assert_eq!(
        told,
        [
            ("user", "cache the docker image by tag for a week", false),
            ("user", "cache the docker image by its tag", true),
            ("project", "pull the docker image before the cache by its tag", false),
        ]
    );
    let advice: Advice<'_> = found[1].advice();
    assert!(advice.is_elsewhere && advice.why.starts_with("says the same"), "{advice:?}");
}

#[test]
fn each_kind_has_a_limit_of_its_own_and_more_of_what_works_may_be_wanted_than_of_dead_ends() {
    let place = Place::new();
    for tag in ["one", "two", "three"] {
        place.scene.add(fails(&format!("cache the docker image by tag {tag}")));
        place.scene.add(works(&format!("cache the docker image by digest {tag}")));
    }
    let count = |most: Most| {
        let found = place.tried("cache the docker image by tag or digest one two three", most);
        let fails = found.iter().filter(|found| found.entry.file == FileKind::Fails).count();
        (fails, found.len() - fails)
    };

    assert_eq!(count(Most::default()), (3, 3));
    assert_eq!(count(Most { fails: 1, works: 2 }), (1, 2));
    assert_eq!(count(Most::of_each(0)), (0, 0));
}

#[test]
fn a_record_that_names_the_file_or_its_folder_is_about_it_the_repositorys_before_ones_own_and_the_newest_first() {
    let place = Place::new();
    place.scene.add(days_ago(9, of_file("./src/db/pool.rs", fails("older"))));
    place.scene.add(days_ago(1, of_file("src/db/", works("newer, of the folder"))));
    place.scene.add(Record { created: None, ..of_file("src/db/pool.rs", fails("at an unknown time")) });
    place.scene.add(of_file("src/db.rs", fails("another file")));
    place.keep(of_file("src/db/pool.rs", fails("my own")));
    place.keep(Record { project: None, ..of_file("src/db/pool.rs", fails("of no repository")) });
    place.keep(Record { project: Some("birch".to_owned()), ..of_file("src/db/pool.rs", fails("the same name elsewhere")) });
    let expected = [
        ("project", "newer, of the folder"),
        ("project", "older"),
        ("project", "at an unknown time"),
        ("user", "my own"),
        ("user", "of no repository"),
    ]
    .map(|(shelf, route)| (shelf, route.to_owned()));

    assert_eq!(place.about("src/db/pool.rs"), expected);
    assert_eq!(place.about(place.scene.root().join("src/db/pool.rs").to_str().unwrap()), expected);
    assert_eq!(place.about("../src/db/pool.rs"), []);
    assert_eq!(place.about("/src/db/pool.rs"), []);
}

#[test]
fn what_does_not_count_is_neither_found_nor_about_a_file() {
    let place = Place::new();
    let file = |record| of_file("src/db/pool.rs", record);
    place.scene.add(Record { approval: Approval::Proposed, ..file(fails("raise the size of the pool twice")) });
    let old = place.scene.add(file(fails("raise the size of the pool")));
    place.scene.add(Record { supersedes: Some(old), ..file(fails("raise the size of the pool to forty")) });

    let found = place.tried("raise the size of the pool", Most::default());

    assert_eq!(found.iter().map(|found| found.entry.record.route.as_str()).collect::<Vec<_>>(), ["raise the size of the pool to forty"]);
    assert_eq!(place.about("src/db/pool.rs"), [("project", "raise the size of the pool to forty".to_owned())]);
}

#[test]
fn a_record_about_a_file_says_that_a_version_differs() {
    let place = Place::new();
    std::fs::write(place.scene.root().join("Cargo.lock"), "[[package]]\nname = \"sqlx\"\nversion = \"0.8.0\"\n").unwrap();
    place.scene.add(Record { dependencies: vec![Dependency::parse("sqlx@0.7")], ..of_file("src/db.rs", fails("a")) });

    let found = place.library().about_file("src/db.rs").unwrap();

    assert_eq!(found[0].stale.as_ref().unwrap().to_string(), "seen with sqlx 0.7; here it is 0.8.0");
    assert_eq!(found[0].why, "it names the file src/db.rs");
}

#[test]
fn a_damaged_file_is_refused_and_not_searched_around() {
    let place = Place::new();
    place.keep(of_file("src/db.rs", fails("cache the docker image")));
    place.scene.write(FileKind::Fails, "<<<<<<< HEAD\n- a\n");

    assert!(
        place.library().try_approach(&Approach { text: "cache the docker image", ..Approach::default() }, Most::default(), NOW).is_err()
    );
    assert!(place.library().about_file("src/db.rs").is_err());
}
