//! Cutting a text into the pieces that the model knows: lower case without accents, split at spaces, punctuation and Han
//! characters, and then the longest piece of the vocabulary first.

use std::collections::HashMap;

use regex::Regex;
use serde_json::Value;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// More pieces than this of a text are not looked at. It is the length that the model's own tokenizer is set to.
const MOST: usize = 128;
/// A longer word is unknown as a whole.
const LONGEST_WORD: usize = 100;
/// Signs that count as punctuation beside those that Unicode calls so, then Han characters, each a word, then words.
const WORDS: &str = r"[\p{P}$+<=>^`|~]|[\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{20000}-\x{2CEAF}\x{F900}-\x{FAFF}\x{2F800}-\x{2FA1F}]|[^\s\p{P}$+<=>^`|~\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{20000}-\x{2CEAF}\x{F900}-\x{FAFF}\x{2F800}-\x{2FA1F}]+";

/// A vocabulary and what is needed to use it.
pub(super) struct Pieces {
    vocabulary: HashMap<String, i64>,
    words: Regex,
    begin: i64,
    end: i64,
    unknown: i64,
}

impl Pieces {
    /// Reads a `tokenizer.json`; `None` if it is of another kind.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let Value::Object(entries) = value.get("model")?.get("vocab")? else { return None };
        let vocabulary: HashMap<String, i64> =
            entries.iter().filter_map(|(piece, number)| Some((piece.clone(), number.as_i64()?))).collect();
        let of = |piece: &str| vocabulary.get(piece).copied();
        let (begin, end, unknown) = (of("[CLS]")?, of("[SEP]")?, of("[UNK]")?);
        Some(Self { words: Regex::new(WORDS).ok()?, vocabulary, begin, end, unknown })
    }

    /// The numbers of a text's pieces, between the two that say where it begins and ends.
    pub(super) fn numbers(&self, text: &str) -> Vec<i64> {
        let mut numbers = vec![self.begin];
        let kept = text.chars().filter(|character| !character.is_control() || character.is_whitespace());
        let plain: String = kept.collect::<String>().nfd().filter(|character| !is_combining_mark(*character)).collect();
        for word in self.words.find_iter(&plain.to_lowercase()) {
            if numbers.len() >= MOST {
                break;
            }
            self.cut(word.as_str(), &mut numbers);
        }
        numbers.truncate(MOST - 1);
        numbers.push(self.end);
        numbers
    }

    fn cut(&self, word: &str, numbers: &mut Vec<i64>) {
        let before = numbers.len();
        let ends: Vec<usize> = word.char_indices().map(|(start, character)| start + character.len_utf8()).collect();
        let mut rest = if ends.len() > LONGEST_WORD { None } else { Some(0) };
        while let Some(start) = rest.filter(|start| *start < word.len()) {
            let longest = ends.iter().rev().take_while(|end| **end > start).find_map(|end| {
                let piece = &word[start..*end];
                let number = if start == 0 { self.vocabulary.get(piece) } else { self.vocabulary.get(&format!("##{piece}")) };
                number.map(|number| (*end, *number))
            });
            rest = longest.map(|(end, number)| {
                numbers.push(number);
                end
            });
        }
        if rest.is_none() {
            numbers.truncate(before);
            numbers.push(self.unknown);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces() -> Pieces {
        let vocabulary = r###"{"model": {"vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "pla": 3, "##stic": 4, "frame": 5, "-": 6, "消": 7, "uber": 8, "##s": 9, "除": 10}}}"###;
        Pieces::read(vocabulary.as_bytes()).unwrap()
    }

    #[test]
    fn a_text_is_cut_into_the_longest_pieces_that_are_known() {
        for (text, numbers) in [
            ("Plastic frames", &[1, 3, 4, 5, 9, 2][..]),
            ("frame-frame", &[1, 5, 6, 5, 2]),
            ("Über  frame\n", &[1, 8, 5, 2]),
            ("消除", &[1, 7, 10, 2]),
            ("plaster frame", &[1, 0, 5, 2]),
            ("fra\u{0}me", &[1, 5, 2]),
            ("", &[1, 2]),
        ] {
            assert_eq!(pieces().numbers(text), numbers, "{text}");
        }
    }

    #[test]
    fn a_long_text_is_cut_short_and_still_has_its_end() {
        let numbers = pieces().numbers(&"frame ".repeat(1_000));

        assert_eq!((numbers.len(), numbers.last()), (MOST, Some(&2)));
        assert_eq!(pieces().numbers(&"s".repeat(101)), [1, 0, 2]);
    }

    #[test]
    fn another_kind_of_file_is_refused() {
        assert!(Pieces::read(b"{}").is_none());
        assert!(Pieces::read(br#"{"model": {"vocab": {"a": 1}}}"#).is_none());
        assert!(Pieces::read(b"not JSON").is_none());
    }
}
