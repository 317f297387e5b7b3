//! How long `proctor memory try` takes from the command line, beside a plain search for the same words in the same file.
//!
//! `cargo bench -p proctor --bench memory`; with `PROCTOR_BENCH=smoke` a small size that only shows that it works. What the
//! figures mean and what they were: `docs/performance.md`.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints its figures and stops at the first surprise")]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use proctor_testkit::World;

const FILE: &str = "proctor/memory/fails.md";

fn main() {
    let smoke = std::env::var("PROCTOR_BENCH").is_ok_and(|size| size == "smoke");
    let (counts, pairs) = if smoke { ([100, 500], 1) } else { ([10_000, 100_000], 21) };
    for count in counts {
        report(count, pairs);
    }
}

/// A word whose rank is this: few are in many records, and most in few.
fn word(seed: usize) -> String {
    const SYLLABLES: [&str; 8] = ["bal", "cor", "dim", "fen", "gra", "hul", "jol", "kav"];
    let mut rank = (seed.wrapping_mul(2_654_435_761) >> 7) % 30_011;
    rank = rank * rank / 30_011 + 8;
    let mut word = String::new();
    while rank > 0 {
        word += SYLLABLES[rank % 8];
        rank /= 8;
    }
    word
}

fn words(record: usize, count: usize) -> String {
    (0..count).map(|index| word(record * 31 + index * 17 + 1)).collect::<Vec<_>>().join(" ")
}

fn text(count: usize) -> String {
    let line = |record: usize| {
        let (route, seen) = (words(record, 9), words(record + count, 11));
        format!("- route: {route} | observation: {seen} <!-- proctor id=mem_{record:010} files=src/{}.rs -->\n", word(record))
    };
    (0..count).map(line).collect()
}

fn timed(work: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    work();
    begin.elapsed().as_secs_f64() * 1e3
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Makes the index look as if it had been written long after the records, so that nobody doubts it.
fn settle(world: &World) {
    let mut files = fs::read_dir(world.home().join(".cache/proctor/memory")).unwrap().map(|entry| entry.unwrap().path());
    let index = files.find(|path| path.extension().is_some_and(|ending| ending == "index")).unwrap();
    let written = fs::metadata(world.repository().join(FILE)).unwrap().modified().unwrap();
    fs::File::options().write(true).open(index).unwrap().set_modified(written + Duration::from_secs(5)).unwrap();
}

/// One search against one `grep` for any of the words, in turn.
fn report(count: usize, pairs: usize) {
    let world = World::new(env!("CARGO_BIN_EXE_proctor")).with_file(FILE, &text(count));
    let ask = |approach: &str| drop(world.proctor(&["memory", "try", approach]).expect_code(0));
    let made = timed(|| ask("anything"));
    settle(&world);
    let grep = |approach: &str| {
        let mut arguments = vec!["-c", "-F"];
        arguments.extend(approach.split(' ').flat_map(|word| ["-e", word]));
        arguments.push(FILE);
        drop(world.run_in(world.repository(), Path::new("grep"), &arguments).expect_code(0));
    };
    let approaches: Vec<String> = (0..pairs).map(|number| words(number * (count / pairs), 7)).collect();
    let (ours, baseline): (Vec<f64>, Vec<f64>) =
        approaches.iter().map(|approach| (timed(|| ask(approach)), timed(|| grep(approach)))).unzip();
    let (ours, baseline) = (median(ours), median(baseline));
    println!("try: {ours:.1} ms among {count} records; a grep for the same words {baseline:.1} ms; ratio {:.2}", ours / baseline);
    println!("try: {made:.0} ms where the index has to be made first");
}
