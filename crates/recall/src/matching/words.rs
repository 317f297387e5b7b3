//! Lists of words, and how a word is brought to the form that it is compared in.

/// Words that say nothing about the matter, in the languages that records are mostly written in. Sorted.
#[rustfmt::skip]
const EMPTY: &[&str] = &[
    "a", "able", "about", "after", "again", "al", "all", "als", "also", "am", "an", "and", "any", "anyway", "are", "as", "at", "au",
    "auf", "aus", "aux", "avant", "avec", "back", "be", "because", "been", "before", "bei", "being", "both", "but", "by", "can",
    "cannot", "ce", "ces", "cette", "com", "como", "con", "could", "cuando", "da", "damit", "dann", "dans", "das", "dass", "de", "del",
    "dem", "den", "der", "des", "desde", "deux", "did", "die", "do", "does", "don", "done", "dont", "down", "du", "durch", "each",
    "ein", "eine", "einem", "einen", "einer", "eines", "el", "elle", "else", "en", "entre", "es", "est", "esta", "et", "etaient", "etc",
    "etre", "even", "ever", "every", "few", "for", "from", "fuer", "fur", "gegen", "get", "gets", "got", "had", "han", "has", "hasta",
    "hat", "have", "he", "her", "hinter", "his", "how", "i", "if", "il", "im", "in", "instead", "into", "is", "ist", "it", "its",
    "itself", "je", "just", "kein", "keine", "la", "las", "le", "les", "let", "lets", "leur", "like", "lo", "los", "make", "makes",
    "many", "may", "maybe", "me", "might", "mit", "more", "most", "much", "must", "my", "nach", "ne", "need", "needs", "nicht", "no",
    "non", "nos", "not", "now", "o", "oder", "of", "off", "ohne", "on", "once", "one", "only", "or", "other", "ou", "our", "out",
    "over", "own", "par", "para", "pas", "per", "pero", "plus", "por", "pour", "que", "qui", "rather", "right", "sans", "se", "seit",
    "selbst", "ser", "several", "she", "should", "si", "sich", "sie", "sin", "sind", "so", "sobre", "some", "something", "son", "sont",
    "sous", "su", "such", "sur", "sus", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those",
    "through", "to", "too", "tried", "try", "trying", "ueber", "um", "un", "una", "und", "une", "unos", "unter", "until", "up", "us",
    "use", "used", "uses", "using", "very", "via", "von", "vor", "vos", "was", "we", "well", "werden", "were", "what", "when", "where",
    "whether", "which", "while", "who", "why", "will", "wird", "with", "within", "without", "would", "y", "you", "your", "zu", "zum",
    "zur", "zwei",
];

/// Words that go with every matter: they help a match along and never make one. In the form that [`stem`] gives. Sorted.
#[rustfmt::skip]
const PALE: &[&str] = &[
    "add", "all", "allow", "alwa", "app", "archiv", "back", "begin", "behind", "big", "bring", "build", "call", "cas", "chang", "check",
    "clean", "complet", "creat", "customer", "day", "delet", "differ", "different", "direct", "ear", "eas", "end", "enter", "error",
    "expect", "fail", "failur", "fast", "field", "find", "first", "fix", "follow", "form", "full", "general", "giv", "good", "half",
    "hand", "handl", "help", "hour", "increas", "insid", "keep", "larg", "last", "lat", "later", "left", "list", "long", "look", "lost",
    "man", "minut", "miss", "month", "mov", "nam", "never", "new", "next", "night", "number", "old", "open", "order", "pag", "part",
    "peopl", "plain", "point", "print", "problem", "project", "put", "quick", "rais", "reach", "read", "reason", "releas", "remov",
    "replac", "run", "sam", "sav", "second", "see", "send", "set", "show", "simpl", "singl", "slow", "small", "start", "stop", "switch",
    "tak", "team", "test", "text", "thing", "tim", "turn", "two", "user", "valu", "vers", "wait", "way", "week", "whol", "work", "writ",
    "wrong", "year",
];

/// Short names that stand for longer ones. The left side is replaced by the right one. Sorted by the left side.
const ALIASES: &[(&str, &str)] = &[
    ("auth", "authentication"),
    ("cert", "certificate"),
    ("config", "configuration"),
    ("conn", "connection"),
    ("db", "database"),
    ("dep", "dependency"),
    ("deps", "dependency"),
    ("dev", "development"),
    ("dir", "folder"),
    ("directory", "folder"),
    ("dns01", "dns-01"),
    ("doc", "documentation"),
    ("docs", "documentation"),
    ("e2e", "end-to-end"),
    ("elastic", "elasticsearch"),
    ("env", "environment"),
    ("exe", "executable"),
    ("golang", "go"),
    ("gql", "graphql"),
    ("img", "image"),
    ("indices", "index"),
    ("infra", "infrastructure"),
    ("js", "javascript"),
    ("k8s", "kubernetes"),
    ("kube", "kubernetes"),
    ("lib", "library"),
    ("mem", "memory"),
    ("mongo", "mongodb"),
    ("msg", "message"),
    ("param", "parameter"),
    ("params", "parameter"),
    ("perf", "performance"),
    ("pg", "postgres"),
    ("pkg", "package"),
    ("postgresql", "postgres"),
    ("pr", "pull-request"),
    ("prod", "production"),
    ("py", "python"),
    ("rb", "ruby"),
    ("repo", "repository"),
    ("req", "request"),
    ("rs", "rust"),
    ("ssl", "tls"),
    ("sync", "synchronise"),
    ("synchronize", "synchronise"),
    ("tf", "terraform"),
    ("ts", "typescript"),
    ("tz", "timezone"),
    ("webassembly", "wasm"),
    ("ws", "websocket"),
];

/// Names of files that every project has: that both sides name one says little. Sorted.
#[rustfmt::skip]
const FILES_EVERYWHERE: &[&str] = &[
    "__init__.py", "build.gradle", "cargo.toml", "changelog.md", "conftest.py", "dockerfile", "go.mod", "index.html", "index.js",
    "index.ts", "index.tsx", "init.py", "lib.rs", "main.go", "main.py", "main.rs", "makefile", "mod.rs", "models.py", "package.json",
    "readme.md", "settings.py", "utils.py", "values.yaml", "views.py",
];

/// Whether a folded word says nothing about the matter.
pub(super) fn is_empty(word: &str) -> bool {
    EMPTY.binary_search(&word).is_ok()
}

/// Whether a stem goes with every matter.
pub(super) fn is_pale(stem: &str) -> bool {
    PALE.binary_search(&stem).is_ok()
}

/// Whether every project has a file of this folded name.
pub(super) fn is_everywhere(name: &str) -> bool {
    FILES_EVERYWHERE.binary_search(&name).is_ok()
}

/// The longer name that a folded word stands for, or the word.
pub(super) fn full_name(word: &str) -> &str {
    ALIASES.binary_search_by(|(short, _)| (*short).cmp(word)).map_or(word, |found| ALIASES[found].1)
}

/// A word that begins another counts as the same matter from this length on: `config` and `configuration`.
const SHORTEST_BEGINNING: usize = 5;

/// Whether a stem is long enough to stand for words that it begins. Pairs of characters are not.
pub(super) fn can_begin(stem: &str) -> bool {
    stem.chars().count() >= SHORTEST_BEGINNING
}

/// The part of a folded word that its inflections share.
///
/// It takes endings off that English, German, French and Spanish put on, and asks no dictionary: a stem is a key, not a
/// word. `handled` and `handles` meet in `handl`.
pub(super) fn stem(word: &str) -> &str {
    if word.len() < 4 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word;
    }
    let singular = without_plural(word);
    let root = without_ending(singular);
    let root = root.strip_suffix('y').filter(|short| short.len() >= 3).unwrap_or(root);
    match root.strip_suffix('e') {
        Some(short) if short.len() >= 3 => short,
        Some(_) | None => root,
    }
}

fn without_plural(word: &str) -> &str {
    if word.len() > 4 && word.ends_with("ies") {
        return &word[..word.len() - 3];
    }
    if word.ends_with("ss") || word.ends_with("us") || word.ends_with("is") {
        return word;
    }
    word.strip_suffix("sses").map_or_else(|| word.strip_suffix('s').unwrap_or(word), |_| &word[..word.len() - 2])
}

fn without_ending(word: &str) -> &str {
    for ending in ["ing", "ed", "ion", "ly"] {
        let Some(rest) = word.strip_suffix(ending) else { continue };
        if rest.len() >= 3 && rest.bytes().any(|byte| b"aeiouy".contains(&byte)) {
            return without_doubling(rest);
        }
    }
    word
}

/// `runn` of `running` is `run`; `install` and `pass` are as they are.
fn without_doubling(root: &str) -> &str {
    let bytes = root.as_bytes();
    match bytes {
        [.., before, last] if before == last && root.len() > 3 && !b"aeiolsz".contains(last) => &root[..root.len() - 1],
        _ => root,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_are_searched_by_halves_are_sorted() {
        for list in [EMPTY, PALE, FILES_EVERYWHERE] {
            let unsorted = list.windows(2).find(|pair| pair[0] >= pair[1]);
            assert_eq!(unsorted, None);
        }
        assert!(ALIASES.is_sorted_by(|one, other| one.0 < other.0));
    }

    #[test]
    fn inflections_of_a_word_have_one_stem() {
        for group in [
            &["handle", "handles", "handled", "handling"][..],
            &["cache", "caches", "cached", "caching"],
            &["migrate", "migrates", "migrated", "migration", "migrations"],
            &["run", "runs", "running"],
            &["query", "queries", "querying"],
            &["index", "indexes", "indexed"],
            &["switch", "switching", "switches"],
            &["embedding", "embeddings"],
            &["zertifikat", "zertifikate"],
            &["fecha", "fechas"],
        ] {
            let stems: std::collections::BTreeSet<&str> = group.iter().map(|word| stem(word)).collect();
            assert_eq!(stems.len(), 1, "{stems:?}");
        }
    }

    #[test]
    fn words_that_only_look_inflected_stay_whole() {
        for word in ["string", "status", "bus", "api", "npm", "k8s", "redis", "class", "process"] {
            assert_eq!(stem(word), word);
        }
    }
}
