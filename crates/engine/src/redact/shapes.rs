//! The shapes of well-known tokens.
//!
//! Whether a token is there is decided by its beginning alone, within a fixed number of bytes; what
//! else belongs to it is then passed over as it comes. So a token may be longer than any buffer.

/// One kind of token.
#[derive(Debug)]
pub(super) struct Shape {
    /// How it begins.
    pub(super) begins: &'static str,
    /// How much of that is no secret, and stays.
    pub(super) kept: usize,
    /// Whether it only counts at the start of a word: `sk-` is also in `task-list`, and `eyJ` in any image.
    pub(super) needs_boundary: bool,
    body: Body,
    /// What belongs to it beyond its beginning.
    pub(super) swallow: Swallow,
}

#[derive(Debug)]
enum Body {
    /// At least so many characters of a kind.
    Run(usize, fn(u8) -> bool),
    /// The rest of a header in Base64, a dot, and another object.
    WebToken,
    /// The rest of the line that begins a key.
    Key,
}

/// What is at a place where a token may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    Token,
    Nothing,
    /// The text is too short to tell.
    Open,
}

const fn run(begins: &'static str, at_least: usize, belongs: fn(u8) -> bool) -> Shape {
    Shape { begins, kept: 0, needs_boundary: false, body: Body::Run(at_least, belongs), swallow: Swallow::Run(belongs) }
}

const fn at_word(shape: Shape) -> Shape {
    Shape { needs_boundary: true, ..shape }
}

const fn behind(begins: &'static str) -> Shape {
    Shape { kept: begins.len(), ..at_word(run(begins, 20, is_bearer)) }
}

/// Every shape; of two with the same beginning the longer one first.
pub(super) static SHAPES: [Shape; 21] = [
    run("sk-ant-", 16, is_word),
    at_word(run("sk-", 20, is_word)),
    run("ghp_", 30, is_alphanumeric),
    run("gho_", 30, is_alphanumeric),
    run("ghu_", 30, is_alphanumeric),
    run("ghs_", 30, is_alphanumeric),
    run("ghr_", 30, is_alphanumeric),
    run("github_pat_", 22, is_word),
    run("glpat-", 20, is_word),
    run("xoxa-", 10, is_word),
    run("xoxb-", 10, is_word),
    run("xoxe-", 10, is_word),
    run("xoxp-", 10, is_word),
    run("xoxr-", 10, is_word),
    run("xoxs-", 10, is_word),
    run("AKIA", 16, is_upper_case),
    run("AIza", 35, is_word),
    behind("Bearer "),
    behind("bearer "),
    Shape { begins: "eyJ", kept: 0, needs_boundary: true, body: Body::WebToken, swallow: Swallow::Run(is_web_token) },
    Shape { begins: KEY_BEGINS, kept: 0, needs_boundary: false, body: Body::Key, swallow: Swallow::KEY },
];

const KEY_BEGINS: &str = "-----BEGIN ";
/// Longer than any name of a kind of key.
const KEY_NAME: usize = 48;
/// The header of a web token: an object with a few short members.
const WEB_TOKEN_HEADER: usize = 1024;

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_upper_case(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn is_web_token(byte: u8) -> bool {
    is_word(byte) || byte == b'.'
}

fn is_bearer(byte: u8) -> bool {
    is_web_token(byte) || matches!(byte, b'+' | b'/' | b'=' | b'~')
}

impl Shape {
    /// What `here`, which begins as this shape does, is.
    pub(super) fn fit(&self, here: &[u8]) -> Fit {
        let body = &here[self.begins.len()..];
        match self.body {
            Body::Run(at_least, belongs) => fit_run(body, at_least, belongs),
            Body::WebToken => fit_web_token(body),
            Body::Key => fit_key(body),
        }
    }
}

fn fit_run(body: &[u8], at_least: usize, belongs: fn(u8) -> bool) -> Fit {
    match body.iter().take(at_least).position(|byte| !belongs(*byte)) {
        Some(_) => Fit::Nothing,
        None if body.len() < at_least => Fit::Open,
        None => Fit::Token,
    }
}

fn fit_web_token(body: &[u8]) -> Fit {
    const NEXT: &[u8] = b".eyJ";
    match body.iter().take(WEB_TOKEN_HEADER).position(|byte| !is_word(*byte)) {
        Some(end) => fit_start(&body[end..], NEXT),
        None if body.len() < WEB_TOKEN_HEADER => Fit::Open,
        None => Fit::Nothing,
    }
}

fn fit_key(body: &[u8]) -> Fit {
    let is_name = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b' ';
    let Some(end) = body.iter().take(KEY_NAME).position(|byte| !is_name(byte)) else {
        return if body.len() < KEY_NAME { Fit::Open } else { Fit::Nothing };
    };
    let name = &body[..end];
    if !(name.ends_with(b"PRIVATE KEY") || name.ends_with(b"PRIVATE KEY BLOCK")) {
        return Fit::Nothing;
    }
    // A line break follows, as it is or escaped. In prose about keys it does not.
    const DASHES: &[u8] = b"-----";
    match fit_start(&body[end..], DASHES) {
        Fit::Token => match body.get(end + DASHES.len()) {
            Some(b'\n' | b'\r' | b'\\') => Fit::Token,
            Some(_) => Fit::Nothing,
            None => Fit::Open,
        },
        unmet @ (Fit::Open | Fit::Nothing) => unmet,
    }
}

fn fit_start(text: &[u8], expected: &[u8]) -> Fit {
    if text.starts_with(expected) {
        Fit::Token
    } else if expected.starts_with(text) {
        Fit::Open
    } else {
        Fit::Nothing
    }
}

/// What is passed over after the beginning of a token, and how far that has come.
#[derive(Debug, Clone, Copy)]
pub(super) enum Swallow {
    /// Everything of this kind.
    Run(fn(u8) -> bool),
    /// A key, to the end of its last line. Quotes are never in one, so a string of JSON that was cut off ends it too.
    Key {
        /// How much of [`KEY_ENDS`], and then of its last dashes, was met.
        progress: usize,
        /// Backslashes that are part of it if a line break follows.
        backslashes: usize,
        left: usize,
    },
}

const KEY_ENDS: &[u8] = b"-----END ";
const LAST_DASHES: usize = 5;
/// Much longer than a key. Whatever looks like the beginning of one takes no more with it.
const LONGEST_KEY: usize = 64 * 1024;

/// What was passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Swallowed {
    pub(super) length: usize,
    pub(super) is_over: bool,
    /// Backslashes among it that, if it is over, escape what follows and so are no part of it.
    pub(super) backslashes: usize,
}

impl Swallow {
    pub(super) const KEY: Self = Self::Key { progress: 0, backslashes: 0, left: LONGEST_KEY };

    /// Passes over what belongs to the token.
    pub(super) fn pass(&mut self, text: &[u8]) -> Swallowed {
        match self {
            Self::Run(belongs) => match text.iter().position(|byte| !belongs(*byte)) {
                Some(length) => Swallowed { length, is_over: true, backslashes: 0 },
                None => Swallowed { length: text.len(), is_over: false, backslashes: 0 },
            },
            Self::Key { progress, backslashes, left } => {
                for (index, byte) in text.iter().enumerate() {
                    let stops = matches!(byte, b'"' | b'\'' | b'`') || !byte.is_ascii() || (*left == 0 && *backslashes == 0);
                    let escapes_other = *backslashes > 0 && !matches!(byte, b'n' | b'r' | b't' | b'\\');
                    if stops || escapes_other {
                        return Swallowed { length: index, is_over: true, backslashes: *backslashes };
                    }
                    *left = left.saturating_sub(1);
                    *backslashes = if *byte == b'\\' { *backslashes + 1 } else { 0 };
                    *progress = key_progress(*progress, *byte);
                    if *progress == KEY_ENDS.len() + LAST_DASHES {
                        return Swallowed { length: index + 1, is_over: true, backslashes: 0 };
                    }
                }
                Swallowed { length: text.len(), is_over: false, backslashes: *backslashes }
            }
        }
    }
}

fn key_progress(progress: usize, byte: u8) -> usize {
    if progress >= KEY_ENDS.len() {
        // The kind of key is between the two.
        return if byte == b'-' { progress + 1 } else { KEY_ENDS.len() };
    }
    match (byte, progress) {
        (byte, _) if byte == KEY_ENDS[progress] => progress + 1,
        (b'-', 5) => 5,
        (b'-', _) => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_decided_by_its_beginning() {
        let fit = |text: &str| SHAPES.iter().find(|shape| text.starts_with(shape.begins)).unwrap().fit(text.as_bytes());

        for (text, expected) in [
            ("ghp_0123456789", Fit::Open),
            ("ghp_01234 56789", Fit::Nothing),
            ("ghp_0123456789012345678901234567890123456789", Fit::Token),
            ("eyJhbGciOiJIUzI1NiJ9", Fit::Open),
            ("eyJhbGciOiJIUzI1NiJ9.ey", Fit::Open),
            ("eyJhbGciOiJIUzI1NiJ9.eyJ", Fit::Token),
            ("eyJhbGciOiJIUzI1NiJ9\"", Fit::Nothing),
            ("-----BEGIN RSA PRIVATE KEY-----", Fit::Open),
            ("-----BEGIN RSA PRIVATE KEY-----\\n", Fit::Token),
            ("-----BEGIN RSA PRIVATE KEY----- is how", Fit::Nothing),
            ("-----BEGIN CERTIFICATE-----\n", Fit::Nothing),
        ] {
            assert_eq!(fit(text), expected, "{text}");
        }
    }

    #[test]
    fn of_two_shapes_with_the_same_beginning_the_longer_comes_first() {
        for (index, shape) in SHAPES.iter().enumerate() {
            assert!(SHAPES[..index].iter().all(|earlier| !shape.begins.starts_with(earlier.begins)), "{}", shape.begins);
        }
    }
}
