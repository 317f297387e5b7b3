//! Entries that say that there is nothing to say.

const WORDS: [&str; 7] = ["none", "nothing", "n/a", "na", "nil", "no", "nothing ruled out"];
const SUFFIXES: [&str; 5] = ["this session", "so far", "yet", "today", "to report"];

/// Whether the text says only that nothing failed: `None so far.`, `n/a`.
pub fn is_placeholder(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut rest = edge(&lower);
    loop {
        if rest.is_empty() || WORDS.contains(&rest) {
            return true;
        }
        match SUFFIXES.iter().find_map(|suffix| rest.strip_suffix(suffix)) {
            Some(shorter) => rest = edge(shorter),
            None => return false,
        }
    }
}

fn edge(text: &str) -> &str {
    text.trim_matches(|letter: char| {
        letter.is_whitespace() || letter.is_ascii_punctuation() && letter != '/' || matches!(letter, '–' | '—' | '…')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_nothing_is_known() {
        for text in
            ["None", "none so far.", "N/A", "- nothing ruled out -", "nil", "No.", "(nothing this session)", "nothing yet today", "", "…"]
        {
            assert!(is_placeholder(text), "{text}");
        }
        for text in ["none of the caches helped", "no retries: the queue blocks", "nothing ruled out the race"] {
            assert!(!is_placeholder(text), "{text}");
        }
    }
}
