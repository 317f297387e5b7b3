//! The rules that ours is measured against: three generations of the matching of another memory for agents, written from
//! their description. They are here to be compared with, and are not shipped.

use std::collections::BTreeSet;

/// A generation of the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    /// Half of the words of the shorter side, or a near meaning.
    First,
    /// And at least two words, where the record has two.
    Second,
    /// And what words say is not believed against the meaning; a middling meaning needs some words.
    Third,
}

/// The words that this rule leaves out. Their exact list is not known here; these are the groups that it is said to have:
/// function words, words of questions, colourless verbs, verbs of preference and possession, and words of trying.
const LEFT_OUT: &[&str] = &[
    "about", "after", "again", "also", "because", "been", "before", "being", "between", "both", "cannot", "could", "does", "doing", "done",
    "down", "each", "from", "have", "having", "into", "itself", "just", "like", "make", "makes", "making", "maybe", "might", "more",
    "most", "must", "need", "needs", "once", "only", "other", "over", "same", "should", "some", "such", "than", "that", "their", "them",
    "then", "there", "these", "they", "this", "those", "through", "tried", "under", "until", "upon", "used", "uses", "using", "very",
    "want", "wants", "were", "what", "when", "where", "which", "while", "whom", "will", "with", "without", "would", "your", "instead",
    "give", "gives", "goes", "keep", "keeps", "prefer", "take", "takes",
];

/// The words of a text: lower case, only a to z and 0 to 9, more than three characters, not all digits.
pub(super) fn subject(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    let words = lower.split(|character: char| !character.is_ascii_lowercase() && !character.is_ascii_digit());
    let counts = |word: &&str| word.len() > 3 && !LEFT_OUT.contains(word) && !word.bytes().all(|byte| byte.is_ascii_digit());
    words.filter(counts).map(str::to_owned).collect()
}

/// Equal, or the shorter has five characters and begins the longer.
fn akin(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    one == other || short.len() >= 5 && long.starts_with(short)
}

/// Words of the one side with an akin word on the other, over the number of words of the smaller side. It may exceed 1, and
/// depends on which side comes first: both are so in what this stands for.
pub(super) fn overlap(one: &BTreeSet<String>, other: &BTreeSet<String>) -> f32 {
    let smaller = one.len().min(other.len());
    if smaller == 0 { 0.0 } else { shared(one, other) as f32 / smaller as f32 }
}

fn shared(one: &BTreeSet<String>, other: &BTreeSet<String>) -> usize {
    one.iter().filter(|word| other.iter().any(|opposite| akin(word, opposite))).count()
}

/// What the rule makes of the words of an approach and a route.
pub(super) fn lexical(approach: &BTreeSet<String>, route: &BTreeSet<String>, generation: Generation) -> f32 {
    let is_first = generation == Generation::First;
    if !is_first && route.len() >= 2 && shared(approach, route) < 2 { 0.0 } else { overlap(approach, route) }
}

/// Whether a record is shown.
pub(super) fn is_hit(lexical: f32, cosine: Option<f32>, generation: Generation) -> bool {
    match generation {
        Generation::First | Generation::Second => lexical >= 0.5 || cosine.is_some_and(|cosine| cosine >= 0.74),
        Generation::Third => {
            let by_words = lexical >= 0.5 && cosine.is_none_or(|cosine| cosine >= 0.65);
            let by_meaning = cosine.is_some_and(|cosine| cosine >= 0.80 || cosine >= 0.74 && lexical >= 0.25);
            by_words || by_meaning
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(one: &str, other: &str) -> (f32, f32) {
        let (one, other) = (subject(one), subject(other));
        (overlap(&one, &other), overlap(&other, &one))
    }

    #[test]
    fn overlap_is_as_in_its_reference_with_its_defects() {
        assert_eq!(both("switch to a plastic frame to save weight", "Switching to a plastic frame").0, 1.0);
        assert_eq!(both("session activity capture", "session cookies").0, 0.5);
        assert_eq!(both("manufacture manufacturer manufacturers", "manufacturer"), (3.0, 1.0));
        assert_eq!(both("call the api via go", "call the cli via npm").0, 1.0);
        assert_eq!(both("handled", "handles").0, 0.0);
        assert_eq!(both("handle", "handles").0, 1.0);
        assert_eq!(both("キャッシュを削除する", "キャッシュを削除する").0, 0.0);
    }

    #[test]
    fn from_the_second_generation_on_one_shared_word_of_two_is_nothing() {
        let (approach, route) = (subject("session activity capture"), subject("session cookies"));

        assert_eq!(lexical(&approach, &route, Generation::First), 0.5);
        assert_eq!(lexical(&approach, &route, Generation::Second), 0.0);
        assert_eq!(lexical(&approach, &route, Generation::Third), 0.0);
    }

    #[test]
    fn the_third_generation_decides_as_in_its_reference() {
        for (lexical, cosine, hit) in [
            (0.50, None, true),
            (0.50, Some(0.611), false),
            (0.50, Some(0.65), true),
            (0.20, Some(0.746), false),
            (0.25, Some(0.745), true),
            (0.00, Some(0.82), true),
            (0.00, Some(0.79), false),
            (0.60, Some(0.694), true),
            (1.00, Some(0.60), false),
        ] {
            assert_eq!(is_hit(lexical, cosine, Generation::Third), hit, "{lexical} {cosine:?}");
        }
        assert!(is_hit(0.20, Some(0.746), Generation::First));
    }
}
