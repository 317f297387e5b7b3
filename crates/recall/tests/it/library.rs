//! Several folders of memory, seen and searched as one.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use proctor_domain::{RecordId, Timestamp};
use proctor_recall::advice::Advice;
use proctor_recall::matching::Approach;
use proctor_recall::{Approval, Dependency, Effect, FileKind, Folder, Found, Library, Line, Most, Record, Shelf, StoreError};

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

    /// A library with an index that is kept, and looks as if it had been written long after the records.
    fn kept(&self) -> Library {
        let library = self.library().with_cache(self.cache());
        self.settle();
        library
    }

    fn cache(&self) -> PathBuf {
        self.user.path().join("cache/proctor/memory")
    }

    fn indexes(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.cache()).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// Makes the indexes look as if they had been written some seconds from now, so that nobody doubts them.
    fn settle(&self) {
        for path in self.indexes() {
            fs::File::options().write(true).open(path).unwrap().set_modified(SystemTime::now() + Duration::from_secs(5)).unwrap();
        }
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
    fs::write(place.scene.root().join("Cargo.lock"), "[[package]]\nname = \"sqlx\"\nversion = \"0.8.0\"\n").unwrap();
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

/// What a library says, in full.
fn answers(library: &Library) -> (Vec<Found>, Vec<Found>) {
    let approach = Approach { text: "cache the docker image by its tag", ..Approach::default() };
    (library.try_approach(&approach, Most::default(), NOW).unwrap(), library.about_file("ci/build.sh").unwrap())
}

#[test]
fn an_index_that_is_kept_answers_as_the_files_do_down_to_the_last_character() {
    let file = |record| of_file("ci/build.sh", record);
    let place = Place::new();
    place.scene.write(
        FileKind::Fails,
        "\u{feff}# What fails\r\n\r\n- route: cache the docker image by its tag | observation: it was\r\n  used for a week\r\n\
         - route: cache the docker image by tag | observation: old <!-- proctor id=mem_0000000001 files=ci/ layer=x -->\r\n\
         - route: cache the docker image by tag, twice | observation: old | layer: Design <!-- proctor id=mem_0000000001 -->\r\n\
         <!-- - route: cache the docker image by no tag -->\r\n- cache the docker image by its tag, in prose",
    );
    place.keep(file(works("pull the docker image before its tag is in the cache")));
    place.keep(Record { project: Some("birch".to_owned()), ..file(fails("cache the docker image by its tag")) });
    let plain = answers(&place.library());
    assert_eq!((plain.0.len(), plain.1.len()), (6, 2));

    let first = answers(&place.kept());
    let library = place.kept();
    let kept = answers(&library);
    let held = answers(&library);

    assert_eq!(first, plain);
    assert_eq!(kept, plain);
    assert_eq!(held, plain);
}

#[test]
fn a_change_is_seen_at_once_by_who_holds_an_index_and_by_who_reads_it() {
    let place = Place::new();
    let old = place.scene.add(of_file("ci/build.sh", fails("cache the docker image by its tag")));
    let library = place.kept();
    answers(&library);
    place.settle();
    answers(&library);

    place.scene.add(Record { supersedes: Some(old), ..fails("cache the docker image by its tag and date") });
    let routes = |library: &Library| answers(library).0.into_iter().map(|found| found.entry.record.route).collect::<Vec<_>>();

    assert_eq!(routes(&library), ["cache the docker image by its tag and date"]);
    assert_eq!(routes(&place.kept()), ["cache the docker image by its tag and date"]);
    assert_eq!(answers(&library).1, []);
    place.scene.write(FileKind::Pending, "<<<<<<< HEAD\n");
    assert!(library.about_file("ci/build.sh").is_err(), "a damaged file is refused though no record of it would be shown");
}

#[test]
fn an_index_is_private_and_one_that_can_not_be_kept_is_no_failure() {
    let place = Place::new();
    place.scene.add(of_file("ci/build.sh", fails("cache the docker image by its tag")));
    let plain = answers(&place.library());
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;

    assert_eq!(answers(&place.kept()), plain);

    let [index] = place.indexes().try_into().unwrap();
    assert_eq!((mode(&index), mode(&place.cache())), (0o600, 0o700));
    fs::remove_file(&index).unwrap();
    fs::set_permissions(place.cache(), fs::Permissions::from_mode(0o770)).unwrap();
    assert_eq!(answers(&place.kept()), plain);
    assert_eq!(place.indexes(), Vec::<PathBuf>::new(), "others may write there");
    fs::remove_dir(place.cache()).unwrap();
    symlink(place.scene.root(), place.cache()).unwrap();
    let library = place.library().with_cache(place.cache());
    assert_eq!(answers(&library), plain);
    assert_eq!(fs::read_dir(place.scene.root()).unwrap().count(), 1, "a link leads to another place");
    fs::remove_file(place.cache()).unwrap();
    fs::write(place.cache(), "in the way").unwrap();
    assert_eq!(answers(&library), plain);
}

#[test]
fn an_index_that_does_not_go_with_the_files_is_made_anew() {
    let place = Place::new();
    place.scene.add(of_file("ci/build.sh", fails("cache the docker image by its tag")));
    let plain = answers(&place.kept());
    let [index] = place.indexes().try_into().unwrap();
    let whole = fs::read(&index).unwrap();

    for damaged in [&b""[..], b"no index", &whole[..whole.len() / 2]] {
        fs::write(&index, damaged).unwrap();

        assert_eq!(answers(&place.kept()), plain);
        assert_eq!(fs::read(&index).unwrap(), whole);
    }
}

#[test]
fn each_set_of_folders_has_an_index_of_its_own_and_one_that_nobody_wants_goes_when_another_is_made() {
    let place = Place::new();
    place.scene.add(fails("cache the docker image by its tag"));
    answers(&place.kept());
    let [forgotten] = place.indexes().try_into().unwrap();
    let long_ago = SystemTime::now() - Duration::from_secs(91 * 24 * 60 * 60);
    fs::File::options().write(true).open(&forgotten).unwrap().set_modified(long_ago).unwrap();
    let others = place.cache().join("notes.txt");
    fs::write(&others, "").unwrap();
    fs::File::options().write(true).open(&others).unwrap().set_modified(long_ago).unwrap();

    answers(&Library::new(vec![Shelf { name: "user", folder: place.user() }], None, None).with_cache(place.cache()));

    let left = place.indexes();
    assert!(left.len() == 2 && left.contains(&others) && !left.contains(&forgotten), "{left:?}");
}

#[test]
fn many_who_ask_and_write_at_once_see_whole_records_only() {
    let place = Place::new();
    place.scene.add(fails("cache the docker image by its tag"));
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let place = &place;
            scope.spawn(move || {
                for number in 0..12 {
                    place.scene.add(of_file("ci/build.sh", fails(&format!("cache the docker image by its tag {writer} {number}"))));
                }
            });
        }
        for _ in 0..4 {
            let place = &place;
            scope.spawn(move || {
                let library = place.library().with_cache(place.cache());
                for _ in 0..12 {
                    let approach = Approach { text: "cache the docker image by its tag", ..Approach::default() };
                    match library.try_approach(&approach, Most::default(), NOW) {
                        Ok(found) => assert!(found.iter().all(|found| found.entry.record.route.starts_with("cache the docker image"))),
                        Err(StoreError::Restless { .. }) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
    });

    assert_eq!(place.library().about_file("ci/build.sh").unwrap().len(), 24);
}
