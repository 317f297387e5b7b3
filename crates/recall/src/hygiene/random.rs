//! Words that look drawn at random, and what stands behind the name of a secret.

use std::sync::LazyLock;

use proctor_engine::redact::REDACTED;
use regex::{Captures, Regex};

/// Shorter ones are too often names.
const SHORTEST: usize = 24;
/// A random word of letters and digits has more bits a character; text and names have less.
const LEAST_BITS: f64 = 3.7;
/// How many of its neighbours differ in kind: about two in three in a random word, one in three in `CamelCase`.
const LEAST_CHANGES: f64 = 0.4;
/// Checksums in the notation of web pages and lock files: random, and public.
const CHECKSUMS: [&str; 4] = ["sha1-", "sha256-", "sha384-", "sha512-"];

static WORD: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[A-Za-z0-9+/_=-]{24,}").ok());
static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r#"(?i)((?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)["']?\s*[:=]\s*["']?)"#,
        r#"([^\s"'|,;&<>]{8,})"#
    ))
    .ok()
});
/// What stands behind the name of a password is one, however short.
static PASSWORD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(r#"(?i)((?:password|passwd|passphrase|(?:^|[^a-z])(?:pass|pwd))["']?\s*([:=])\s*["']?)"#, r#"([^\s"'|,;&<>]{3,})"#))
        .ok()
});
/// What is said of a password, and is none.
const ABOUT: [&str; 9] = ["true", "false", "none", "null", "nil", "yes", "empty", "required", "missing"];
static IN_ADDRESS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"([A-Za-z][A-Za-z0-9+.-]*://[^\s/:@]*:)([^\s/@]+)@").ok());

/// The text with `[redacted]` for each, and how many there were.
pub(super) fn mask(text: &str) -> (String, usize) {
    let mut count = 0;
    let mut count_one = |kept: &str| {
        count += 1;
        format!("{kept}{REDACTED}")
    };
    let text = replace(&IN_ADDRESS, text, |found| match found[2] == *REDACTED {
        true => found[0].to_owned(),
        false => count_one(&found[1]) + "@",
    });
    let text = replace(&NAMED, &text, |found| if is_value(&found[2]) { count_one(&found[1]) } else { found[0].to_owned() });
    let text =
        replace(&PASSWORD, &text, |found| if is_password(&found[2], &found[3]) { count_one(&found[1]) } else { found[0].to_owned() });
    let text = replace(&WORD, &text, |found| if is_random(&found[0]) { count_one("") } else { found[0].to_owned() });
    (text, count)
}

fn replace(pattern: &LazyLock<Option<Regex>>, text: &str, with: impl FnMut(&Captures<'_>) -> String) -> String {
    match pattern.as_ref() {
        Some(pattern) => pattern.replace_all(text, with).into_owned(),
        None => text.to_owned(),
    }
}

/// Whether what follows a secret's name is a value, and not a word about it or the name of a variable.
fn is_value(text: &str) -> bool {
    let has_letter = text.bytes().any(|byte| byte.is_ascii_alphabetic());
    has_letter && !refers(text) && text.bytes().any(|byte| byte.is_ascii_digit())
}

/// Whether what follows a password's name is one. Behind a colon prose goes on, so there it has to look like one.
fn is_password(sign: &str, text: &str) -> bool {
    // `args.password`, `/run/secrets/db`
    let is_name = text.contains('.') && text.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'.' | b'_'));
    let is_path = text.starts_with(['/', '.', '~']);
    let is_about = ABOUT.iter().any(|word| text.trim_end_matches('.').eq_ignore_ascii_case(word));
    let is_none = refers(text) || is_name || is_path || is_about || text.contains(['[', '=']);
    let has_symbol = text.contains(['!', '#', '^', '*', '$', '%']);
    let has_letter = text.bytes().any(|byte| byte.is_ascii_alphabetic());
    !is_none && (sign == "=" || text.len() >= 4 && (is_value(text) || has_letter && has_symbol))
}

/// Whether a text says where a value is, and not the value.
fn refers(text: &str) -> bool {
    text.starts_with(['$', '%', '{', '(', '[']) || text.starts_with(REDACTED) || text.contains(['(', ')'])
}

fn is_random(word: &str) -> bool {
    if word.len() < SHORTEST || CHECKSUMS.iter().any(|name| word.starts_with(name)) {
        return false;
    }
    let kinds: Vec<u8> = word.bytes().map(kind).collect();
    let has = |wanted: u8| kinds.contains(&wanted);
    let changes = kinds.windows(2).filter(|pair| pair[0] != pair[1]).count();
    has(LOWER)
        && has(UPPER)
        && kinds.iter().filter(|kind| **kind == DIGIT).count() >= 2
        && ratio(changes, kinds.len() - 1) >= LEAST_CHANGES
        && bits(word) >= LEAST_BITS
}

const LOWER: u8 = 0;
const UPPER: u8 = 1;
const DIGIT: u8 = 2;
const OTHER: u8 = 3;

fn kind(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => LOWER,
        b'A'..=b'Z' => UPPER,
        b'0'..=b'9' => DIGIT,
        _ => OTHER,
    }
}

/// Shannon's entropy, in bits a character.
fn bits(word: &str) -> f64 {
    let mut counts = [0_usize; 256];
    for byte in word.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let shares = counts.iter().filter(|count| **count > 0).map(|count| ratio(*count, word.len()));
    -shares.map(|share| share * share.log2()).sum::<f64>()
}

fn ratio(part: usize, whole: usize) -> f64 {
    // Both are lengths of one word; the largest that is exact is far longer than any.
    f64::from(u32::try_from(part).unwrap_or(u32::MAX)) / f64::from(u32::try_from(whole.max(1)).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_look_random_are_masked() {
        for word in ["Zk3vQ9xT1mB7rN5cW8yH2jL6", "p0Rq8sV2yX4zA6bC1dE3fG5hJ7kM9nQ=", "a8F-kd93Jx_0aPz7QmW2eR5tY"] {
            assert_eq!(mask(&format!("the key {word} works")), ("the key [redacted] works".to_owned(), 1), "{word}");
        }
    }

    #[test]
    fn names_paths_and_checksums_stay() {
        for text in [
            "4b825dc642cb6eb9a060e54bf8d69288fbee4904 and e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "123e4567-e89b-12d3-a456-426614174000",
            "getElementsByClassNameAndAttribute2023Legacy",
            "crates/recall/src/hygiene/random.rs/And/Another_Module",
            "sha512-Zk3vQ9xT1mB7rN5cW8yH2jL6p0Rq8sV2yX4zA6bC1dE3fG5hJ7kM9nQ==",
            "a token: unauthorized, password: $PASSWORD, api_key=os.environ(1)",
            "Donaudampfschifffahrtsgesellschaft",
        ] {
            assert_eq!(mask(text), (text.to_owned(), 0));
        }
    }

    #[test]
    fn what_follows_the_name_of_a_secret_or_is_in_an_address_is_masked() {
        for (text, expected) in [
            ("password=hunter2hunter", "password=[redacted]"),
            ("\"api_key\": \"abc123def456\"", "\"api_key\": \"[redacted]\""),
            ("postgres://app:s3cret@db/x", "postgres://app:[redacted]@db/x"),
        ] {
            assert_eq!(mask(text), (expected.to_owned(), 1));
        }
    }

    #[test]
    fn a_short_password_is_masked_and_words_about_one_stay() {
        for (text, expected) in [
            ("password=hunter2 fails", "password=[redacted] fails"),
            ("DB_PASS=geheim", "DB_PASS=[redacted]"),
            ("pass: s3cr", "pass: [redacted]"),
            ("pwd='ab1'", "pwd='[redacted]'"),
            ("--password=123456", "--password=[redacted]"),
            ("passphrase: correct!horse", "passphrase: [redacted]"),
        ] {
            assert_eq!(mask(text), (expected.to_owned(), 1), "{text}");
        }
        for text in [
            "tests pass: 12 of 13, bypass=cache1",
            "password: required, password=None, password == other",
            "PWD=/home/ann/shop pwd=$HOME password=args.password",
            "password=os.environ[\"X\"] pass: unauthorized",
        ] {
            assert_eq!(mask(text), (text.to_owned(), 0));
        }
    }
}
