//! What redaction promises, for any secrets, any stream and any cut into chunks.

use proctor_engine::redact::{REDACTED, Redactor, Secrets, redact_text};
use proptest::prelude::*;

fn in_chunks(secrets: &Secrets, stream: &[u8], sizes: &[usize]) -> Vec<u8> {
    let mut redactor = Redactor::new(secrets);
    let mut out = Vec::new();
    let (mut rest, mut sizes) = (stream, sizes.iter().cycle());
    while !rest.is_empty() {
        let size = sizes.next().map_or(rest.len(), |size| (*size).clamp(1, rest.len()));
        redactor.push(&rest[..size], &mut |part| out.extend_from_slice(part));
        rest = &rest[size..];
    }
    redactor.finish(&mut |part| out.extend_from_slice(part));
    out
}

fn secrets(values: &[&str]) -> Secrets {
    Secrets::new(&values.iter().map(|value| value.as_bytes().to_vec()).collect::<Vec<_>>())
}

/// What a text becomes, whole, byte by byte, and in small chunks.
#[track_caller]
fn check(secrets: &Secrets, text: &str, expected: &str) {
    assert_eq!(redact_text(secrets, text), expected);
    for size in [1, 2, 3, 7, 16] {
        assert_eq!(String::from_utf8_lossy(&in_chunks(secrets, text.as_bytes(), &[size])), expected, "in chunks of {size}");
    }
}

const WORD: &str = "abcdefghijklmnopqrstuvwxyz0123456789";

#[test]
fn a_named_value_is_taken_out_wherever_it_is() {
    let secrets = secrets(&["correct horse", " trimmed-value\n", "short", "correct horse battery"]);

    check(&secrets, "correct horse", REDACTED);
    check(&secrets, "a correct horse!correct horse", "a [redacted]![redacted]");
    check(&secrets, "the correct horse battery and the correct horse batter", "the [redacted] and the [redacted] batter");
    check(&secrets, "trimmed-value, short", "[redacted], short");
    check(&secrets, "correct hors correct horse", "correct hors [redacted]");
}

#[test]
fn a_value_is_taken_out_escaped_and_encoded() {
    let secrets = secrets(&["pa\"ss\\wörd\n1"]);

    check(&secrets, "{\"a\":\"pa\\\"ss\\\\wörd\\n1\"}", "{\"a\":\"[redacted]\"}");
    check(&secrets, "{\"a\":\"{\\\"b\\\":\\\"pa\\\\\\\"ss\\\\\\\\wörd\\\\n1\\\"}\"}", "{\"a\":\"{\\\"b\\\":\\\"[redacted]\\\"}\"}");
    check(&secrets, "https://me:pa%22ss%5Cw%C3%B6rd%0A1@host", "https://me:[redacted]@host");
    // `printf 'me:pa"ss\\wörd\n1' | base64`
    check(&secrets, "Basic bWU6cGEic3Ncd8O2cmQKMQ==", "Basic bWU6[redacted]Q==");
}

#[test]
fn tokens_are_known_by_their_shape() {
    let secrets = Secrets::default();
    let key = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEow+/IB=\n-----END RSA PRIVATE KEY-----";

    for token in [
        format!("sk-ant-api03-{WORD}-_AA"),
        format!("sk-proj-{WORD}"),
        format!("ghp_{WORD}"),
        format!("gho_{WORD}"),
        format!("ghs_{WORD}"),
        format!("github_pat_11AA_{WORD}"),
        format!("xoxb-1234-{WORD}"),
        "AKIAIOSFODNN7EXAMPLE".to_owned(),
        format!("AIza{WORD}"),
        format!("glpat-{WORD}"),
        format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{WORD}"),
        key.to_owned(),
    ] {
        check(&secrets, &token, REDACTED);
        check(&secrets, &format!("a=\"{token}\", b"), "a=\"[redacted]\", b");
        let json = serde_json::to_string(&format!("first\n{token}\nlast")).unwrap();
        check(&secrets, &json, "\"first\\n[redacted]\\nlast\"");
    }
    check(&secrets, &format!("Authorization: Bearer {WORD}/+=\r\n"), "Authorization: Bearer [redacted]\r\n");
    check(&secrets, &format!("sk-{}", "a".repeat(100_000)), REDACTED);
}

#[test]
fn what_only_looks_like_a_token_stays() {
    for text in [
        "a task-list-with-a-very-long-name-indeed and disk-usage-of-the-whole-machine",
        "sk-short, ghp_short, eyJ, AKIA and xoxb-",
        "the bearer of this letter, Bearer token",
        "a line `-----BEGIN PRIVATE KEY-----` begins a key, -----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "eyJhbGciOiJIUzI1NiJ9 is only a header",
        "-----------------------------------------------",
    ] {
        check(&Secrets::default(), text, text);
    }
}

#[test]
fn a_key_that_is_cut_off_takes_no_json_with_it() {
    let text = r#"{"a":"-----BEGIN PRIVATE KEY-----\nMIIEow \"quoted\"","b":"-----BEGIN PRIVATE KEY-----\\nMII","c":1}"#;
    let expected = r#"{"a":"[redacted]\"quoted\"","b":"[redacted]","c":1}"#;

    check(&Secrets::default(), text, expected);
}

#[test]
fn a_value_that_begins_like_an_escape_leaves_json_valid() {
    let secrets = secrets(&["nothing-secret"]);

    check(&secrets, r#"{"a":"one\nothing-secret"}"#, r#"{"a":"one\\[redacted]"}"#);
    check(&secrets, r#"{"a":"one\\nothing-secret"}"#, r#"{"a":"one\\[redacted]"}"#);
}

#[test]
fn a_value_that_is_cut_off_at_the_end_is_taken_out_too() {
    let secrets = secrets(&["correct horse battery"]);

    check(&secrets, "it is correct horse bat", "it is [redacted]");
    check(&secrets, "it is correct", "it is correct");
}

#[test]
fn ordinary_output_is_not_held_back() {
    let secrets = secrets(&["correct horse battery"]);
    let mut redactor = Redactor::new(&secrets);
    let mut out = Vec::new();

    redactor.push(b"is it the corr", &mut |part| out.extend_from_slice(part));
    assert_eq!(out, b"is it the ");
    redactor.push(b"idor? yes\n", &mut |part| out.extend_from_slice(part));

    assert_eq!(out, b"is it the corridor? yes\n");
}

#[test]
fn secrets_are_not_in_what_is_printed_of_them() {
    let secrets = secrets(&["correct horse"]);
    let mut redactor = Redactor::new(&secrets);
    redactor.push(b"correct", &mut |_| {});

    assert!(!format!("{secrets:?} {redactor:?}").contains("correct"));
}

#[test]
fn what_is_part_of_the_replacement_can_not_be_a_secret() {
    check(&secrets(&["redacted", "[redacted]"]), "it was [redacted]", "it was [redacted]");
}

/// Streams that are full of what matters: secrets, halves of them, their forms, tokens, escapes.
fn streams() -> impl Strategy<Value = (Vec<String>, Vec<u8>, Vec<usize>)> {
    // None ends with a backslash: that which is put before a replacement would make it whole where it was not.
    let letters = "[ab\"\\\\nk. -]{7,13}[ab\"nk.-]";
    proptest::collection::vec(letters.prop_map(String::from), 0..5).prop_flat_map(|values| {
        let mut pieces: Vec<String> = values.iter().flat_map(|value| [value.clone(), serde_json::to_string(value).unwrap()]).collect();
        pieces.extend(
            ["a", "ab", "\\", "\\n", "\"", "sk-", "eyJ", ".eyJ", "eyJaaaa.eyJb", "-----BEGIN ", "PRIVATE KEY-----", "\n"].map(String::from),
        );
        pieces.extend([
            "-----END PRIVATE KEY-----".to_owned(),
            format!("ghp_{WORD}"),
            format!("sk-ant-{WORD}"),
            "Bearer ".to_owned(),
            WORD.to_owned(),
        ]);
        let piece = (proptest::sample::select(pieces), 0_usize..40).prop_map(|(piece, cut)| {
            let end = piece.len().saturating_sub(cut % 8);
            piece.as_bytes()[..end].to_vec()
        });
        let stream = proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat());
        (Just(values), stream, proptest::collection::vec(1_usize..40, 1..20))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_chunks_give_what_the_whole_gives((values, stream, sizes) in streams()) {
        let secrets = Secrets::new(&values.iter().map(|value| value.as_bytes().to_vec()).collect::<Vec<_>>());

        let (whole, cut) = (in_chunks(&secrets, &stream, &[]), in_chunks(&secrets, &stream, &sizes));

        prop_assert_eq!(String::from_utf8_lossy(&cut), String::from_utf8_lossy(&whole));
    }

    #[test]
    fn no_output_has_a_secret((values, stream, sizes) in streams()) {
        let secrets = Secrets::new(&values.iter().map(|value| value.as_bytes().to_vec()).collect::<Vec<_>>());

        let out = String::from_utf8_lossy(&in_chunks(&secrets, &stream, &sizes)).into_owned();

        for value in values.iter().map(|value| value.trim()).filter(|value| value.len() >= 8) {
            for part in out.split(REDACTED) {
                prop_assert!(!part.contains(value), "{:?} in {:?}", value, part);
            }
        }
    }

    #[test]
    fn a_line_of_json_stays_one(text in "[ -~\n\u{e9}]{0,40}", value in "[a-z\"\\\\ \u{e9}]{8,20}", tail in "[ -~\n]{0,40}") {
        let secrets = Secrets::new(&[value.as_bytes().to_vec()]);
        let line = serde_json::json!({"type": "text", "text": format!("{text}{value}{tail}"), "other": [tail, value]}).to_string();

        let clean = redact_text(&secrets, &line);

        let read: Result<serde_json::Value, _> = serde_json::from_str(&clean);
        prop_assert!(read.is_ok(), "{}", clean);
        prop_assert!(value.trim().len() < 8 || !read.unwrap().to_string().contains(&serde_json::to_string(&value).unwrap()));
    }
}
