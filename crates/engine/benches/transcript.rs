//! How fast a transcript of Claude Code is read and added up, beside what the same bytes cost when they are only read, and
//! when their JSON is checked and nothing kept; all measured in the same run.
//!
//! `cargo bench -p proctor-engine --bench transcript`; with `PROCTOR_BENCH=smoke` a small size that only shows that it works.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints its figures and stops at the first surprise")]

use std::fs::File;
use std::hint::black_box;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use proctor_domain::session::SessionEnd;
use proctor_engine::agent::{Account, EngineKind, Opening, engine};
use serde::de::IgnoredAny;
use serde_json::json;

const CHUNK: usize = 64 * 1024;

fn main() {
    let smoke = std::env::var("PROCTOR_BENCH").is_ok_and(|size| size == "smoke");
    let (megabytes, tries) = if smoke { (2, 1) } else { (200, 5) };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("transcript.jsonl");
    let (bytes, turns) = write_transcript(&path, megabytes * 1_000_000);

    let plain = quickest(tries, || read_only(&path));
    let checked = quickest(tries, || by_line(&path, |line| assert!(serde_json::from_slice::<IgnoredAny>(line).is_ok())));
    let measured = quickest(tries, || read_and_add_up(&path, turns));

    println!("a transcript of {bytes} bytes and {turns} turns");
    show("read and added up", bytes, measured, checked);
    show("JSON checked and nothing kept", bytes, checked, checked);
    show("bytes only read", bytes, plain, checked);
    println!("most memory of the process: {} KiB", peak_kibibytes());
}

/// What an agent leaves that reads files and runs commands: each turn is a few words, a call, and the call's result, which
/// stands in its line twice. Returns its size and its turns.
fn write_transcript(path: &Path, size: usize) -> (usize, u32) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    let mut bytes = 0;
    let mut put = |line: String| {
        bytes += line.len() + 1;
        writeln!(file, "{line}").unwrap();
        bytes
    };
    put(head("system", r#""subtype":"init","session_id":"4f9e","model":"claude-opus-5-5","tools":["Bash","Read"]"#));
    let mut turns = 0;
    loop {
        turns += 1;
        put(assistant(turns, &json!({"type": "text", "text": "I will look at the file before I change anything in it."})));
        put(assistant(turns, &json!({"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "src/lib.rs"}})));
        if put(tool_result(turns)) >= size {
            break;
        }
    }
    put(r#"{"stop_reason":"end_turn","is_error":false,"subtype":"success","result":"Done.","type":"result"}"#.to_owned());
    file.flush().unwrap();
    (bytes, turns)
}

fn head(kind: &str, rest: &str) -> String {
    format!(r#"{{"type":"{kind}",{rest}}}"#)
}

fn assistant(turn: u32, block: &serde_json::Value) -> String {
    let usage = r#""usage":{"input_tokens":1000,"cache_read_input_tokens":0,"output_tokens":1,"service_tier":"standard"}"#;
    head(
        "assistant",
        &format!(r#""message":{{"id":"msg_{turn}","model":"claude-opus-5-5","content":[{block}],{usage}}},"parent_tool_use_id":null"#),
    )
}

/// Results of 1 to 64 KiB of source text, as long as those that agents see.
fn tool_result(turn: u32) -> String {
    let lines = 20_usize << (turn % 7);
    let text = "    let value = table.get(\"größe\").copied();\t// a line of code\n".repeat(lines);
    let block = json!({"tool_use_id": "toolu_1", "type": "tool_result", "content": text, "is_error": false});
    let again = json!({"stdout": text, "stderr": "", "interrupted": false});
    head("user", &format!(r#""message":{{"role":"user","content":[{block}]}},"parent_tool_use_id":null,"tool_use_result":{again}"#))
}

fn read_only(path: &Path) {
    let mut file = File::open(path).unwrap();
    let mut chunk = vec![0; CHUNK];
    while file.read(&mut chunk).unwrap() > 0 {
        black_box(&chunk);
    }
}

fn by_line(path: &Path, mut each: impl FnMut(&[u8])) {
    let mut file = BufReader::with_capacity(CHUNK, File::open(path).unwrap());
    let mut line = Vec::new();
    while file.read_until(b'\n', &mut line).unwrap() > 0 {
        each(&line[..line.len() - 1]);
        line.clear();
    }
}

fn read_and_add_up(path: &Path, turns: u32) {
    let mut reader = engine(EngineKind::Claude).reader(&Opening::default());
    let mut account = Account::new(EngineKind::Claude.engine_name());
    let mut events = Vec::new();
    by_line(path, |line| {
        reader.read(line, &mut events);
        for event in events.drain(..) {
            account.add(event);
        }
    });
    let (end, report) = account.close(Some(0), false);
    assert_eq!((end, report.turns, report.unknown_lines), (SessionEnd::Completed, turns, 0));
}

/// The quickest of a few tries: what the work costs when nothing disturbs it.
fn quickest(tries: usize, mut work: impl FnMut()) -> Duration {
    let mut timed = || {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..tries).map(|_| timed()).min().unwrap_or_default()
}

fn show(what: &str, bytes: usize, measured: Duration, baseline: Duration) {
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let rate = bytes as f64 / 1e6 / measured.as_secs_f64();
    let ratio = measured.as_secs_f64() / baseline.as_secs_f64();
    println!("{what:<32} {measured:>12.3?}   {rate:>8.0} MB/s   ratio {ratio:.2}");
}

fn peak_kibibytes() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("unknown");
    peak.trim().trim_end_matches(" kB").to_owned()
}
