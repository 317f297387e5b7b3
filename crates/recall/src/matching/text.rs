//! From a text to the terms that it is compared by.
//!
//! A term is a key with its [`Kind`]. Paths, codes of errors and identifiers are recognised before words are, and count
//! more; a word counts by its stem. Words are found as Unicode says, in any script: runs of Han and Hangul, which have no
//! spaces, count by pairs of characters.

use std::borrow::Cow;
use std::collections::BTreeMap;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;

use super::words;

/// What a term is. The order is that of the first byte of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    /// A code of an error, a status, or a name in capitals: `E0277`, `exit code 137`, `NODE_OPTIONS`.
    Code,
    /// The folder of a file.
    Folder,
    /// A name of a file.
    File,
    /// A name from a program: `pool_timeout`, `useEffect`, `--no-cache`.
    Identifier,
    /// A word that goes with every matter.
    Pale,
    /// The name of a package that a record depends on.
    Package,
    /// A path, or its end of two parts or more.
    Path,
    /// A word, or a short technical name.
    Word,
    /// The project of a record. It is kept with the terms and is never searched for.
    Project,
    /// A file that a record names, as a whole: for who asks about that file, and never compared.
    Named,
}

impl Kind {
    /// The byte that keys of this kind begin with.
    pub(super) fn mark(self) -> char {
        match self {
            Self::Code => 'c',
            Self::Folder => 'd',
            Self::File => 'f',
            Self::Identifier => 'i',
            Self::Pale => 'k',
            Self::Package => 'n',
            Self::Path => 'p',
            Self::Word => 'w',
            Self::Project => 'x',
            Self::Named => 'z',
        }
    }

    /// The kind of a key.
    pub(super) fn of(key: &str) -> Self {
        match key.as_bytes().first() {
            Some(b'c') => Self::Code,
            Some(b'd') => Self::Folder,
            Some(b'f') => Self::File,
            Some(b'i') => Self::Identifier,
            Some(b'k') => Self::Pale,
            Some(b'n') => Self::Package,
            Some(b'p') => Self::Path,
            Some(b'x') => Self::Project,
            Some(b'z') => Self::Named,
            Some(_) | None => Self::Word,
        }
    }

    /// How much a term of this kind counts beside a word.
    pub(super) fn weight(self) -> f32 {
        match self {
            Self::Code => 2.0,
            Self::Identifier => 1.5,
            Self::Word => 1.0,
            Self::Pale => 0.35,
            // Files and packages are signals of their own, not words.
            Self::Path | Self::File | Self::Folder | Self::Package | Self::Project | Self::Named => 0.0,
        }
    }
}

/// How much of a text is read, in bytes. Somebody may hand in a whole log; what it is about stands before this.
const READ: usize = 16 * 1024;

/// The terms of a text: each key once, with the first form in which it stood there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Terms(pub(super) BTreeMap<String, String>);

impl Terms {
    /// Those of `text`.
    pub(super) fn of(text: &str) -> Self {
        let mut terms = Self::default();
        terms.read(text);
        terms
    }

    /// Adds those of `text`.
    pub(super) fn read(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(READ)];
        let composed: Cow<'_, str> = if text.is_ascii() { text.into() } else { text.nfkc().collect::<String>().into() };
        let mut before = String::new();
        for chunk in composed.split_whitespace() {
            let chunk = chunk.trim_matches(|character: char| !is_part_of_name(character));
            if !chunk.is_empty() {
                self.read_chunk(chunk, &before);
                before = fold(chunk);
            }
        }
    }

    /// Adds a file or, where `path` ends in a slash, a folder.
    pub(super) fn read_path(&mut self, path: &str) {
        let folded = fold(path.trim());
        let folded = folded.trim_start_matches("./").trim_start_matches('/');
        let is_folder = folded.ends_with('/');
        let parts: Vec<&str> = folded.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        for start in 0..parts.len().saturating_sub(1) {
            self.add(Kind::Path, &parts[start..].join("/"), path);
        }
        let Some((name, folders)) = parts.split_last() else { return };
        if is_folder {
            self.add(Kind::Folder, &parts.join("/"), path);
            return;
        }
        self.add(Kind::File, name, name);
        if !folders.is_empty() {
            self.add(Kind::Folder, &folders.join("/"), path);
        }
    }

    pub(super) fn add(&mut self, kind: Kind, key: &str, shown: &str) {
        self.0.entry(format!("{}{key}", kind.mark())).or_insert_with(|| shown.to_owned());
    }

    fn read_chunk(&mut self, chunk: &str, before: &str) {
        if is_path(chunk) {
            self.read_path(chunk);
            // The words in the name of a file may be what the other side says in prose.
            let name = chunk.trim_end_matches('/').rsplit('/').next().unwrap_or(chunk);
            self.read_words(name.rsplit_once('.').map_or(name, |(stem, _)| stem));
            return;
        }
        for piece in chunk.split(|character: char| !is_inside_name(character)).filter(|piece| !piece.is_empty()) {
            let piece = piece.trim_matches(['.', '\'', '’']);
            if is_code(piece) || follows_code_word(piece, before) {
                self.add(Kind::Code, &fold(piece), piece);
            }
            let flag = piece.trim_start_matches('-');
            if piece.len() > flag.len() + 1 && flag.len() > 2 || is_identifier(flag) {
                self.add(Kind::Identifier, &fold(flag), piece);
            }
            self.read_words(flag);
        }
    }

    fn read_words(&mut self, text: &str) {
        if text.is_ascii() {
            // Most of what is read. What is left to split at is nothing that Unicode would say more about.
            for part in text.split(|character: char| !character.is_ascii_alphanumeric()).filter(|part| !part.is_empty()) {
                humps(part).into_iter().for_each(|hump| self.read_word(hump));
            }
            return;
        }
        for word in text.unicode_words() {
            for part in word.split(['_', '.', ':', '\'', '’']) {
                for hump in humps(part) {
                    self.read_word(hump);
                }
            }
        }
        self.read_runs(text);
    }

    fn read_word(&mut self, word: &str) {
        let folded = fold(word);
        let is_letter = folded.chars().count() == 1 && !matches!(word, "C" | "R" | "D");
        if folded.is_empty() || is_letter || folded.bytes().all(|byte| byte.is_ascii_digit()) || folded.chars().all(is_unspaced) {
            return;
        }
        if words::is_empty(&folded) {
            return;
        }
        let stem = words::stem(words::full_name(&folded));
        let kind = if words::is_pale(stem) { Kind::Pale } else { Kind::Word };
        self.add(kind, stem, word);
    }

    /// Pairs of characters from runs of a script that has no spaces.
    fn read_runs(&mut self, text: &str) {
        let characters: Vec<char> = text.chars().collect();
        for run in characters.split(|character| !is_paired(*character)).filter(|run| !run.is_empty()) {
            if let [single] = run {
                self.add(Kind::Word, &single.to_string(), &single.to_string());
            }
            for pair in run.windows(2) {
                let pair: String = pair.iter().collect();
                self.add(Kind::Word, &pair, &pair);
            }
        }
    }
}

/// A text in the form in which two of the same meaning are equal: compatibility composed, without case, and without the
/// accents of Latin, Greek and Cyrillic letters, which people leave away. Voiced marks of kana are kept.
pub(super) fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let is_accent = |character: char| ('\u{300}'..='\u{36f}').contains(&character) && is_combining_mark(character);
    // Upper case first, so that letters with two lower forms, as ß and ς have them, become one.
    let cased = text.nfkd().filter(|character| !is_accent(*character)).flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    cased.nfkc().collect()
}

/// `useDeferredValue` is `use`, `Deferred`, `Value`; `HTTPServer` is `HTTP`, `Server`.
fn humps(word: &str) -> Vec<&str> {
    if !word.chars().skip(1).any(char::is_uppercase) {
        return vec![word];
    }
    let characters: Vec<(usize, char)> = word.char_indices().collect();
    let mut cuts = vec![0];
    for window in characters.windows(3) {
        let [(_, first), (at, second), (next, third)] = window else { continue };
        let begins_word = first.is_lowercase() && second.is_uppercase() && *at > 1;
        let ends_capitals = first.is_uppercase() && second.is_uppercase() && third.is_lowercase() && *next > 2;
        if begins_word || ends_capitals {
            cuts.push(*at);
        }
    }
    // Names such as `JavaScript`, `OAuth` and `iOS` are one word to everybody.
    if word.chars().count() <= 12 && cuts.len() == 2 && word.starts_with(char::is_uppercase) || cuts.len() == 1 {
        return vec![word];
    }
    cuts.push(word.len());
    cuts.dedup();
    cuts.windows(2).filter_map(|pair| word.get(pair[0]..pair[1])).collect()
}

fn is_part_of_name(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '/' | '-' | '.' | '~' | '+' | '#') || is_combining_mark(character)
}

fn is_inside_name(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-' | '.' | '\'' | '’') || is_combining_mark(character)
}

/// Whether a chunk reads as a path, and not as two words with a slash between them.
fn is_path(chunk: &str) -> bool {
    if chunk.contains("://") || chunk.contains(['=', '(', '{', ',', '<', '>', '|', ';', '"', '\'']) || chunk.contains("::") {
        return false;
    }
    let name = chunk.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let Some(_) = chunk.find('/') else { return is_file_name(name) };
    let parts = chunk.split('/').filter(|part| !part.is_empty()).count();
    let is_rooted = chunk.starts_with('/') || chunk.starts_with("./") || chunk.starts_with("../") || chunk.starts_with("~/");
    parts >= 3 || parts >= 1 && (is_rooted || chunk.ends_with('/')) || is_file_name(name)
}

fn is_file_name(name: &str) -> bool {
    let Some((stem, extension)) = name.rsplit_once('.') else {
        return matches!(name, "Dockerfile" | "Makefile" | "Justfile" | "Gemfile" | "Procfile" | "Jenkinsfile");
    };
    let has_letters = extension.bytes().any(|byte| byte.is_ascii_alphabetic());
    let is_extension = has_letters && extension.len() <= 10 && EXTENSIONS.binary_search(&extension.to_ascii_lowercase().as_str()).is_ok();
    is_extension && !matches!(name, "Node.js" | "node.js" | "Next.js" | "next.js" | "Vue.js" | "vue.js") && stem.len() < 80
}

/// Endings of files that are worth a record. Sorted.
const EXTENSIONS: &[&str] = &[
    "bat",
    "c",
    "cc",
    "cfg",
    "cjs",
    "cmake",
    "conf",
    "cpp",
    "cs",
    "css",
    "csv",
    "dart",
    "db",
    "ex",
    "exs",
    "go",
    "gradle",
    "graphql",
    "h",
    "hpp",
    "html",
    "ini",
    "ipynb",
    "java",
    "js",
    "json",
    "jsx",
    "kt",
    "kts",
    "less",
    "lock",
    "log",
    "lua",
    "md",
    "mjs",
    "mk",
    "mod",
    "php",
    "pl",
    "plist",
    "pro",
    "properties",
    "proto",
    "ps1",
    "py",
    "rb",
    "rs",
    "sass",
    "scala",
    "scss",
    "service",
    "sh",
    "sql",
    "sqlite",
    "sum",
    "svelte",
    "swift",
    "tf",
    "tfvars",
    "toml",
    "ts",
    "tsx",
    "txt",
    "vue",
    "xml",
    "yaml",
    "yml",
    "zig",
];

/// Whether a piece is a code by its own looks: `E0277`, `TS2345`, `ORA-00942`, `40P01`, `ECONNRESET`, `SSL_CTX_new`, `NODE_OPTIONS`.
fn is_code(piece: &str) -> bool {
    if !piece.is_ascii() || piece.len() < 4 {
        return false;
    }
    let letters = piece.bytes().filter(u8::is_ascii_alphabetic).count();
    let digits = piece.bytes().filter(u8::is_ascii_digit).count();
    let upper = piece.bytes().filter(u8::is_ascii_uppercase).count();
    let is_numbered = letters > 0 && letters == upper && digits >= 2 && letters + digits + usize::from(piece.contains('-')) == piece.len();
    let is_errno = piece.starts_with('E') && piece.len() >= 5 && upper == piece.len() && ERRNO_ENDS.iter().any(|end| piece.ends_with(end));
    let is_constant = piece.contains('_') && upper >= 4 && upper * 2 > letters;
    let is_hexadecimal = piece.len() >= 8 && digits >= 6 && piece.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_numbered || is_errno || is_constant || is_hexadecimal
}

/// How names of errors of the operating system end, other than those with a digit or a line below.
const ERRNO_ENDS: &[&str] = &[
    "INUSE", "RESET", "REFUSED", "FILE", "CCES", "PERM", "NOENT", "NOSPC", "PIPE", "XIST", "GAIN", "BUSY", "OUT", "INVAL", "LOOP", "ROFS",
];

/// A number is a code if it follows a word that says so: `exit code 137`, `error 1366`, `HTTP 413`.
fn follows_code_word(piece: &str, before: &str) -> bool {
    let is_number = (2..=6).contains(&piece.len()) && piece.bytes().all(|byte| byte.is_ascii_digit());
    is_number
        && matches!(
            before,
            "code" | "error" | "errno" | "exit" | "status" | "http" | "signal" | "fehler" | "erreur" | "sqlstate" | "answers"
        )
}

fn is_identifier(piece: &str) -> bool {
    let is_snake = piece.trim_matches('_').contains('_');
    let characters: Vec<char> = piece.chars().collect();
    let has_hump =
        piece.starts_with(char::is_lowercase) && characters.windows(2).any(|pair| pair[0].is_lowercase() && pair[1].is_uppercase());
    let dotted = piece.split('.').filter(|part| part.len() > 1 && part.bytes().any(|byte| byte.is_ascii_alphabetic())).count();
    piece.len() >= 5 && (is_snake || has_hump || dotted >= 2 && dotted == piece.split('.').count())
}

/// Scripts that are written without spaces.
fn is_unspaced(character: char) -> bool {
    is_paired(character) || matches!(character, '\u{3040}'..='\u{309f}')
}

/// Scripts that count by pairs of characters: Han and Hangul. Hiragana is mostly grammar; katakana are words.
fn is_paired(character: char) -> bool {
    matches!(character, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2fa1f}' | '\u{ac00}'..='\u{d7af}')
        && !matches!(character, '的' | '了' | '把' | '和' | '与' | '是' | '被')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<String> {
        Terms::of(text).0.into_keys().collect()
    }

    #[test]
    fn accents_case_and_width_do_not_matter() {
        for (one, other) in [
            ("SUPPRIMER LA CLE ETRANGERE", "supprimer la clé étrangère"),
            ("Straße", "STRASSE"),
            ("ＤＯＣＫＥＲ", "docker"),
            ("ΟΔΟΣ", "οδός"),
            ("cafe\u{301}", "café"),
            ("ﾃﾞﾌﾟﾛｲ", "デプロイ"),
        ] {
            assert_eq!(keys(one), keys(other), "{one}");
            assert!(!keys(one).is_empty(), "{one}");
        }
        assert_ne!(fold("が"), fold("か"));
    }

    #[test]
    fn short_technical_names_count() {
        assert_eq!(keys("call the api via go"), ["kcall", "wapi", "wgo"]);
        assert_eq!(keys("call the cli via npm"), ["kcall", "wcli", "wnpm"]);
        assert_eq!(keys("C on k8s"), ["wc", "wkubernet"]);
    }

    #[test]
    fn codes_are_told_from_words() {
        for (text, code) in [
            ("stops with E0277 here", "ce0277"),
            ("TS2345: argument", "cts2345"),
            ("(ORA-00942)", "cora-00942"),
            ("55P04, because", "c55p04"),
            ("listen EADDRINUSE: address", "ceaddrinuse"),
            ("ended with exit code 137", "c137"),
            ("HTTP 413 from nginx", "c413"),
            ("error:0308010C:digital", "c0308010c"),
            ("set NODE_OPTIONS=--x", "cnode_options"),
        ] {
            assert!(keys(text).contains(&code.to_owned()), "{text}: {:?}", keys(text));
        }
        for text in ["137 files", "in 2024", "EVERYTHING", "HTTP", "README"] {
            assert!(!keys(text).iter().any(|key| key.starts_with('c')), "{text}: {:?}", keys(text));
        }
    }

    #[test]
    fn paths_are_told_from_alternatives() {
        assert_eq!(keys("in src/db/pool.rs:"), ["dsrc/db", "fpool.rs", "pdb/pool.rs", "psrc/db/pool.rs", "wpool"]);
        assert_eq!(keys("mount /dev/shm"), ["ddev", "fshm", "pdev/shm", "wmount", "wshm"]);
        assert!(keys("skip/limit and client/server").iter().all(|key| key.starts_with('w')));
        assert!(keys("https://example.com/a/b.html").iter().all(|key| !key.starts_with('p')));
    }

    #[test]
    fn identifiers_count_whole_and_by_their_words() {
        assert_eq!(keys("pool_timeout"), ["ipool_timeout", "wpool", "wtimeout"]);
        assert_eq!(keys("useDeferredValue"), ["iusedeferredvalue", "kvalu", "wdefer"]);
        assert_eq!(keys("--legacy-peer-deps"), ["ilegacy-peer-deps", "wdependenc", "wlegac", "wpeer"]);
        assert_eq!(keys("JavaScript OAuth iOS"), ["wios", "wjavascript", "woauth"]);
    }

    #[test]
    fn scripts_without_spaces_count_by_pairs() {
        assert_eq!(keys("全文検索を分割する"), ["w全文", "w分割", "w文検", "w検索"]);
        assert_eq!(keys("キャッシュを削除"), ["wキャッシュ", "w削除"]);
        assert!(!keys("миграция базы").is_empty());
        assert!(!keys("데이터베이스 연결").is_empty());
    }

    #[test]
    fn a_text_without_end_is_read_to_a_point() {
        let log = "é E0277 ".repeat(1_000_000);

        assert_eq!(keys(&log), ["ce0277", "we0277"]);
        assert_eq!(keys(&format!("{}{}", "é".repeat(READ), " E0277")).len(), 1);
    }

    #[test]
    fn a_text_of_nothing_but_signs_has_no_terms() {
        for text in ["", " \t\n", "...", "!!! ???", "/", "-- --", "the of and"] {
            assert_eq!(keys(text), [""; 0], "{text}");
        }
    }
}
