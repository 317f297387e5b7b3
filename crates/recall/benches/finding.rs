//! How long it takes to find records among many, beside a plain scan of the same records in a file.
//!
//! `cargo bench -p proctor-recall --bench finding`; with `PROCTOR_BENCH=smoke` a small size that only shows that it works.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints its figures and stops at the first surprise")]

use std::convert::Infallible;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use proctor_process::durable::{self, Durability};
use proctor_process::{Program, Sink};
use proctor_recall::Polarity;
use proctor_recall::matching::{Approach, Bars, Findable, Fingerprint, Index, Origin, Place, open};

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
    is_works: bool,
    route: String,
    second: String,
    file: String,
    project: String,
}

fn records(count: usize) -> Vec<Written> {
    let mut dice = Dice(7);
    let make = |_| Written {
        is_works: dice.roll(3) == 0,
        route: dice.words(9),
        second: format!("{} E{:04} {}", dice.words(6), dice.roll(900), dice.words(5)),
        file: format!("src/{}/{}.rs", dice.roll(50), dice.word()),
        project: format!("project-{}", dice.roll(20)),
    };
    (0..count).map(make).collect()
}

/// The records as they stand in a file that people edit, one a line.
fn text_of(records: &[Written]) -> String {
    let line = |record: &Written| {
        let second = if record.is_works { "trap" } else { "observation" };
        format!("- route: {} | {second}: {} <!-- files={} project={} -->\n", record.route, record.second, record.file, record.project)
    };
    records.iter().map(line).collect()
}

/// Reads the records back from their lines, as far as an index needs them.
fn index_of(text: &str, fingerprint: Fingerprint) -> Index {
    let mut offset = 0;
    let mut places = Vec::new();
    for line in text.split_inclusive('\n') {
        places.push((Place { source: 0, line: 0, offset, length: line.len() as u32 }, line));
        offset += line.len() as u64;
    }
    let parsed: Vec<Parsed<'_>> = places.into_iter().map(|(place, line)| parse(place, line)).collect();
    let findables = parsed.iter().map(|record| {
        let Parsed { place, is_works, route, second, files, project } = record;
        let (polarity, trap, observation) = if *is_works { (Polarity::Works, *second, "") } else { (Polarity::Fails, "", *second) };
        (*place, Findable { polarity, route, trap, observation, files, dependencies: &[], project: Some(project) })
    });
    Index::build(fingerprint, findables)
}

/// A record as it stands in its line.
struct Parsed<'a> {
    place: Place,
    is_works: bool,
    route: &'a str,
    second: &'a str,
    files: [&'a str; 1],
    project: &'a str,
}

fn parse(place: Place, line: &str) -> Parsed<'_> {
    let (body, trailer) = line.split_once(" <!-- ").unwrap();
    let (route, second) = body.split_once(" | ").unwrap();
    let (name, second) = second.split_once(": ").unwrap();
    let (file, project) = trailer.split_once(" project=").unwrap();
    Parsed {
        place,
        is_works: name == "trap",
        route: route.strip_prefix("- route: ").unwrap(),
        second,
        files: [file.strip_prefix("files=").unwrap()],
        project: project.strip_suffix(" -->\n").unwrap(),
    }
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

fn open_index(source: &Path, file: &Path) -> (Index, Origin) {
    let make = |fingerprint| Ok::<_, Infallible>(index_of(&fs::read_to_string(source).unwrap(), fingerprint));
    open(file, &[source], make).unwrap()
}

fn search(index: &Index, approach: &str) -> usize {
    index.search(&Approach { text: approach, project: Some("project-3"), ..Approach::default() }, &Bars::default(), None, 6).len()
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

/// What a process does that was started to search once.
fn search_once(arguments: &[String]) {
    let [source, file, approach] = arguments else { return };
    let (index, origin) = open_index(Path::new(source), Path::new(file));
    assert!(matches!(origin, Origin::Kept));
    println!("{}", search(&index, approach));
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "once") {
        return search_once(&arguments[1..]);
    }
    let smoke = std::env::var("PROCTOR_BENCH").is_ok_and(|size| size == "smoke");
    let (count, searches, starts) = if smoke { (1_000, 20, 3) } else { (100_000, 300, 30) };
    let folder = tempfile::tempdir().unwrap();
    let (source, file) = (folder.path().join("fails.md"), folder.path().join("index"));
    let records = records(count);
    durable::write(&source, text_of(&records).as_bytes(), Durability::Renamed).unwrap();
    let approaches = approaches(&records, searches);
    report(&source, &file, &approaches, (count, starts));
}

fn report(source: &Path, file: &Path, approaches: &[String], (count, starts): (usize, usize)) {
    let build = timed(|| open_index(source, file));
    let size = fs::metadata(file).unwrap().len();
    println!("{count} records of {} KiB; the index has {} KiB", fs::metadata(source).unwrap().len() / 1024, size / 1024);
    println!("made in {build:.1?}");
    // The file is written in the same second as its source here, and would be doubted.
    let settled = fs::metadata(source).unwrap().modified().unwrap() + Duration::from_secs(5);
    fs::File::options().write(true).open(file).unwrap().set_modified(settled).unwrap();
    let plain = median(approaches.iter().take(starts).map(|approach| timed(|| scan(source, approach))).collect());
    let (index, _) = open_index(source, file);
    let found = approaches.iter().filter(|approach| search(&index, approach) > 0).count();
    let warm = median(approaches.iter().map(|approach| timed(|| search(&index, approach))).collect());
    let own = std::env::current_exe().unwrap();
    let once = |approach: &String| {
        let arguments = [source.as_os_str(), file.as_os_str(), approach.as_ref()];
        let program = Program::new(&own).arg("once").args(arguments).stdout(Sink::Null);
        timed(|| assert!(program.run(None).unwrap().status.is_success()))
    };
    let cold = median(approaches.iter().take(starts).map(once).collect());
    println!("{found} of {} approaches found something", approaches.len());
    for (what, time) in [("warm", warm), ("cold, with the start of a process", cold)] {
        println!("{what}: {time:.2?}; a plain scan: {plain:.2?}; ratio {:.2}", time.as_secs_f64() / plain.as_secs_f64());
    }
}
