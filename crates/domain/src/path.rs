//! Paths inside a repository, as git stores them: bytes, relative to the work tree's top.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A path relative to the top of the work tree, `/`-separated, any bytes but NUL.
///
/// In JSON, cards and trailers it is written by [`fmt::Display`]: as it is where it is plain UTF-8,
/// else in git's quoted form (C escapes inside double quotes), which [`RepoPath::parse`] reads back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct RepoPath(Vec<u8>);

impl RepoPath {
    /// The path with these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// The bytes as git knows them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Reads the form that [`fmt::Display`] writes. Text that is no valid quoted form is taken as it stands.
    pub fn parse(text: &str) -> Self {
        unquote(text).map_or_else(|| Self(text.as_bytes().to_vec()), Self)
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::str::from_utf8(&self.0) {
            Ok(text) if !text.starts_with('"') && !text.chars().any(char::is_control) => formatter.write_str(text),
            _ => formatter.write_str(&quote(&self.0)),
        }
    }
}

impl From<RepoPath> for String {
    fn from(path: RepoPath) -> Self {
        path.to_string()
    }
}

impl From<String> for RepoPath {
    fn from(text: String) -> Self {
        Self::parse(&text)
    }
}

/// Git's C-style quoting (`quote.c`): letters for the usual controls, three octal digits for other bytes.
fn quote(bytes: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for &byte in bytes {
        match byte {
            b'"' => quoted.push_str("\\\""),
            b'\\' => quoted.push_str("\\\\"),
            7 => quoted.push_str("\\a"),
            8 => quoted.push_str("\\b"),
            b'\t' => quoted.push_str("\\t"),
            b'\n' => quoted.push_str("\\n"),
            11 => quoted.push_str("\\v"),
            12 => quoted.push_str("\\f"),
            b'\r' => quoted.push_str("\\r"),
            b' '..=b'~' => quoted.push(char::from(byte)),
            _ => quoted.push_str(&format!("\\{byte:03o}")),
        }
    }
    quoted.push('"');
    quoted
}

fn unquote(text: &str) -> Option<Vec<u8>> {
    let mut rest = text.strip_prefix('"')?.strip_suffix('"')?.bytes();
    let mut bytes = Vec::new();
    while let Some(byte) = rest.next() {
        if byte == b'"' {
            return None;
        }
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b'a' => 7,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 11,
            b'f' => 12,
            b'r' => b'\r',
            b'"' => b'"',
            b'\\' => b'\\',
            first @ b'0'..=b'3' => {
                let digits = [first, rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 8).ok()?
            }
            _ => return None,
        });
    }
    Some(bytes)
}

/// The first `most` paths as a part of a sentence, and how many more there are.
pub fn listed(paths: &[RepoPath], most: usize) -> String {
    let shown: Vec<String> = paths.iter().take(most).map(ToString::to_string).collect();
    let more = paths.len().saturating_sub(shown.len());
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_paths_are_written_as_they_are() {
        assert_eq!(RepoPath::new("docs/a b é.md").to_string(), "docs/a b é.md");
    }

    #[test]
    fn every_path_reads_back_as_itself() {
        for bytes in [&b"plain"[..], b"new\nline", b"\xff\xfe", b"\"quoted\"", b":(top)x", b"-n", b"tab\tbell\x07 back\\slash \x7f", b"\""]
        {
            let path = RepoPath::new(bytes);

            assert_eq!(RepoPath::parse(&path.to_string()), path, "{path}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_written_as_git_quotes_them() {
        assert_eq!(RepoPath::new(&b"a\xff\n"[..]).to_string(), r#""a\377\n""#);
    }
}
