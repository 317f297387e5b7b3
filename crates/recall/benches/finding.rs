//! How long it takes to find records among many, beside a plain scan of the same records in a file.
//!
//! `cargo bench -p proctor-recall --bench finding`; with `PROCTOR_BENCH=smoke` a small size that only shows that it works.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints its figures and stops at the first surprise")]
#![expect(clippy::disallowed_methods, reason = "the time of a file is moved on from now")]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use proctor_domain::{RecordId, Timestamp};
use proctor_process::durable::{self, Durability};
use proctor_process::{Program, Sink};
use proctor_recall::matching::Approach;
use proctor_recall::{FileKind, Folder, Library, Most, Shelf};

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % sides
    }

    /// A word of a language in which few words are said often and most are rare: the square of an even share falls as the
    /// frequencies of words do, near enough.
    fn word(&mut self) -> String {
        const SYLLABLES: [&str; 16] =
            ["bal", "cor", "di", "fen", "gra", "hu", "jol", "ka", "lim", "mo", "nes", "pri", "qua", "ro", "sti", "vel"];
        let share = self.roll(1_000_000) as f64 / 1_000_000.0;
        let mut rank = (share.powi(3) * 40_000.0) as usize + 16;
        let mut word = String::new();
        while rank > 0 {
            word += SYLLABLES[rank % 16];
            rank /= 16;
        }
        word
    }

    fn words(&mut self, count: usize) -> String {
        (0..count).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }
}

struct Written {
    route: String,
    second: String,
    file: String,
    project: String,
}

fn records(count: usize) -> Vec<Written> {
    let mut dice = Dice(7);
    let make = |_| Written {
        route: dice.words(9),
        second: format!("{} E{:04} {}", dice.words(6), dice.roll(900), dice.words(5)),
        file: format!("src/{}/{}.rs", dice.roll(50), dice.word()),
        project: format!("project-{}", dice.roll(20)),
    };
    (0..count).map(make).collect()
}

/// The records as they stand in the file that people edit, one a line.
fn text_of(records: &[Written]) -> String {
    let line = |(number, record): (usize, &Written)| {
        let Written { route, second, file, project } = record;
        let id = RecordId::from_bits(number as u64 + 1);
        format!("- route: {route} | observation: {second} <!-- proctor id={id} project={project} files={file} -->\n")
    };
    records.iter().enumerate().map(line).collect()
}

/// Approaches that somebody could have: most of the words of a record, and some of their own.
fn approaches(records: &[Written], count: usize) -> Vec<String> {
    let mut dice = Dice(11);
    let make = |_| {
        let record = &records[dice.roll(records.len())];
        let told: Vec<&str> = record.route.split(' ').filter(|_| dice.roll(4) > 0).collect();
        format!("{} {}", told.join(" "), dice.words(3))
    };
    (0..count).map(make).collect()
}

/// The baseline: reads the file and counts, for each line, how many words of the approach it has.
fn scan(path: &Path, approach: &str) -> usize {
    let text = fs::read_to_string(path).unwrap();
    let words: Vec<&str> = approach.split(' ').collect();
    text.lines().map(|line| words.iter().filter(|word| line.contains(**word)).count()).max().unwrap_or_default()
}

/// What whoever works in one of the projects sees, with its index in a folder of the cache.
fn library(home: &Path) -> Library {
    let shelf = Shelf { name: "user", folder: Folder::of_user(home) };
    Library::new(vec![shelf], Some("project-3".to_owned()), None).with_cache(home.join("cache"))
}

fn search(library: &Library, approach: &str) -> usize {
    library.try_approach(&Approach { text: approach, ..Approach::default() }, Most::default(), Timestamp(0)).unwrap().len()
}

/// Makes the index look as if it had been written long after the records, so that nobody doubts it.
fn settle(home: &Path) -> u64 {
    let mut files = fs::read_dir(home.join("cache")).unwrap().map(|entry| entry.unwrap().path());
    let index = files.find(|path| path.extension().is_some_and(|ending| ending == "index")).unwrap();
    let file = fs::File::options().write(true).open(index).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(5)).unwrap();
    file.metadata().unwrap().len()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    black_box(work());
    start.elapsed()
}

/// What a process does that was started to ask once.
fn ask_once(arguments: &[String]) {
    let [home, what, text] = arguments else { return };
    let library = library(Path::new(home));
    match what.as_str() {
        "file" => println!("{}", library.about_file(text).unwrap().len()),
        _ => println!("{}", search(&library, text)),
    }
}

/// The median of what a process needs that was started to ask once.
fn cold(home: &Path, what: &str, texts: &[String]) -> Duration {
    let own = std::env::current_exe().unwrap();
    let once = |text: &String| {
        let program = Program::new(&own).arg("once").args([home.as_os_str(), what.as_ref(), text.as_ref()]).stdout(Sink::Null);
        timed(|| assert!(program.run(None).unwrap().status.is_success()))
    };
    median(texts.iter().map(once).collect())
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "once") {
        return ask_once(&arguments[1..]);
    }
    let smoke = std::env::var("PROCTOR_BENCH").is_ok_and(|size| size == "smoke");
    let (counts, searches, starts) = if smoke { ([500, 1_000], 20, 3) } else { ([10_000, 100_000], 300, 30) };
    for count in counts {
        let home = tempfile::tempdir().unwrap();
        let source = Folder::of_user(home.path()).file(FileKind::Fails);
        let records = records(count);
        fs::create_dir_all(source.parent().unwrap()).unwrap();
        durable::write(&source, text_of(&records).as_bytes(), Durability::Renamed).unwrap();
        report(home.path(), &source, &records, (searches, starts));
    }
}

fn report(home: &Path, source: &Path, records: &[Written], (searches, starts): (usize, usize)) {
    let approaches = approaches(records, searches);
    let files: Vec<String> = records.iter().step_by(records.len() / searches).map(|record| record.file.clone()).collect();
    let library = library(home);
    let made = timed(|| search(&library, &approaches[0]));
    let size = settle(home);
    let lines = fs::metadata(source).unwrap().len();
    println!("{} records of {} KiB; the index has {} KiB and is made in {made:.1?}", records.len(), lines / 1024, size / 1024);
    let plain = median(approaches.iter().take(starts).map(|approach| timed(|| scan(source, approach))).collect());
    let found = approaches.iter().filter(|approach| search(&library, approach) > 0).count();
    println!("{found} of {searches} approaches found something");
    let warm = median(approaches.iter().map(|approach| timed(|| search(&library, approach))).collect());
    let named = median(files.iter().map(|file| timed(|| library.about_file(file).unwrap().len())).collect());
    for (what, time) in [
        ("an approach, the index held", warm),
        ("an approach, from the start of a process", cold(home, "approach", &approaches[..starts])),
        ("a file, the index held", named),
        ("a file, from the start of a process", cold(home, "file", &files[..starts])),
    ] {
        println!("{what}: {time:.2?}; a plain scan: {plain:.2?}; ratio {:.2}", time.as_secs_f64() / plain.as_secs_f64());
    }
}
