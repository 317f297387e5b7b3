//! How fast secrets are taken out of what a session prints, beside copying the same bytes.
//!
//! `cargo bench -p proctor-engine --bench redact`; with `PROCTOR_BENCH=smoke` a small size that only shows that it works.
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use proctor_engine::redact::{Redactor, Secrets};

/// What is read from a pipe at once.
const CHUNK: usize = 64 * 1024;

fn main() {
    let smoke = std::env::var("PROCTOR_BENCH").is_ok_and(|size| size == "smoke");
    let size = if smoke { 1 << 20 } else { 64 << 20 };
    let values =
        |count: usize| (0..count).map(|number| format!("value-{number}-of-a-secret/{}", number * 7919).into_bytes()).collect::<Vec<_>>();
    for (what, text) in [
        ("transcript", transcript()),
        ("source text", source()),
        ("base64", base64()),
        ("beginnings of tokens", " eyJhbGciOi -----BEGIN sk-a".to_owned()),
    ] {
        let stream: Vec<u8> = text.bytes().cycle().take(size).collect();
        let baseline = quickest(|| copy(&stream));
        for count in [0, 4, 40] {
            let secrets = Secrets::new(&values(count));
            let measured = quickest(|| redact(&secrets, &stream));
            println!(
                "{:<36} {:>8.0} MB/s   copy {:>8.0} MB/s",
                format!("{what}, {count} secrets"),
                rate(stream.len(), measured),
                rate(stream.len(), baseline)
            );
        }
    }
}

fn rate(bytes: usize, time: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a figure to read")]
    let bytes = bytes as f64;
    bytes / time.as_secs_f64() / 1e6
}

fn quickest(mut work: impl FnMut() -> usize) -> Duration {
    let timed = |_| {
        let start = Instant::now();
        black_box(work());
        start.elapsed()
    };
    (0..3).map(timed).min().unwrap_or_default()
}

fn redact(secrets: &Secrets, stream: &[u8]) -> usize {
    let mut redactor = Redactor::new(secrets);
    let mut out = Vec::with_capacity(2 * CHUNK);
    let mut length = 0;
    for chunk in stream.chunks(CHUNK) {
        out.clear();
        redactor.push(chunk, &mut |part| out.extend_from_slice(part));
        length += black_box(&out).len();
    }
    redactor.finish(&mut |part| length += part.len());
    length
}

fn copy(stream: &[u8]) -> usize {
    let mut out = Vec::with_capacity(2 * CHUNK);
    stream.chunks(CHUNK).fold(0, |length, chunk| {
        out.clear();
        out.extend_from_slice(chunk);
        length + black_box(&out).len()
    })
}

fn transcript() -> String {
    let source = source().replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let message =
        r#"{"type":"assistant","message":{"id":"msg_01XFDUDYJgAACzvnptvVoYEL","role":"assistant","content":[{"type":"text","text":""#;
    let usage = r#""}],"usage":{"input_tokens":4,"cache_read_input_tokens":18342,"output_tokens":311}},"session_id":"2f0c6a1e-8f9b-4c57-9d1c-3f1b7e0a5c11"}"#;
    format!("{message}{source}{usage}\n")
}

fn source() -> String {
    include_str!("redact.rs").to_owned()
}

/// Digits of a generator, as an image in a transcript is.
fn base64() -> String {
    let alphabet: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['+', '/']).collect();
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 58).unwrap_or(0)
    };
    (0..1 << 20).map(|_| alphabet[next()]).collect()
}
