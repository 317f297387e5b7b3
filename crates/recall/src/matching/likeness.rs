//! What two sides have in common: one word of the one with one word of the other, and the same seen from either.

use std::cmp::Ordering;

use super::text::Kind;
use super::words;

/// How much a word counts that only begins the other.
const BEGINNING: f32 = 0.85;

/// Whether two stems mean the same matter: they are equal, or the shorter is not too short and begins the longer.
pub(super) fn begins(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    long.starts_with(short) && words::can_begin(short)
}

/// The terms of one side with their weights, in the order of their keys.
#[derive(Debug, Clone, Default)]
pub(super) struct Side<'a>(Vec<(&'a str, f32)>);

impl<'a> Side<'a> {
    /// Terms that weigh what their kind does, times how rare they are. Keys that stand for files are left out.
    pub(super) fn weighed(keys: impl Iterator<Item = (&'a str, f32)>) -> Self {
        let weighed = keys.map(|(key, rarity)| (key, Kind::of(key).weight() * rarity));
        let mut side: Vec<(&str, f32)> = weighed.filter(|(_, weight)| *weight > 0.0).collect();
        side.sort_unstable_by_key(|(key, _)| *key);
        Self(side)
    }

    pub(super) fn weight(&self) -> f32 {
        self.0.iter().map(|(_, weight)| weight).sum()
    }
}

/// A term of one side with the term of the other that it goes with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pair<'a> {
    /// Its key on the first side.
    pub(super) one: &'a str,
    /// Its key on the second.
    pub(super) other: &'a str,
    /// What the pair counts.
    pub(super) weight: f32,
}

/// How much of two sides goes together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Likeness {
    /// What they share, as a share of the lighter side: 1 if one says all that the other does.
    pub of_lighter: f32,
    /// What they share, as a share of both sides: 1 if they say the same.
    pub of_both: f32,
    /// How many words, codes and identifiers they share. Words that go with every matter are not counted.
    pub shared: usize,
    /// How many terms they share, those words counted too.
    pub pairs: usize,
}

impl Likeness {
    /// Compares two sides.
    pub(super) fn between(one: &Side<'_>, other: &Side<'_>) -> Self {
        Self::of_pairs(&pairs(one, other), one.weight(), other.weight())
    }

    pub(super) fn of_pairs(pairs: &[Pair<'_>], one: f32, other: f32) -> Self {
        let common: f32 = pairs.iter().map(|pair| pair.weight).sum();
        let share = |whole: f32| if whole > 0.0 { (common / whole).min(1.0) } else { 0.0 };
        let shared = pairs.iter().filter(|pair| Kind::of(pair.one) != Kind::Pale).count();
        Self { of_lighter: share(one.min(other)), of_both: share((one + other) / 2.0), shared, pairs: pairs.len() }
    }
}

/// Which terms go together: equal keys first, then as many as can be of those where one begins the other. No term is in
/// two pairs, and the two sides can be exchanged without changing how many pairs there are or what they weigh.
pub(super) fn pairs<'a>(one: &Side<'a>, other: &Side<'a>) -> Vec<Pair<'a>> {
    let (mut found, mut lefts, mut rights) = (Vec::new(), Vec::new(), Vec::new());
    let (mut ones, mut others) = (one.0.iter().copied().peekable(), other.0.iter().copied().peekable());
    // Both are in the order of their keys.
    while let (Some((one, weight)), Some((other, opposite))) = (ones.peek().copied(), others.peek().copied()) {
        match one.cmp(other) {
            Ordering::Equal => found.push(Pair { one, other, weight: weight.min(opposite) }),
            Ordering::Less => lefts.push((one, weight)),
            Ordering::Greater => rights.push((other, opposite)),
        }
        ones.next_if(|(key, _)| *key <= other);
        others.next_if(|(key, _)| *key <= one);
    }
    lefts.extend(ones);
    rights.extend(others);
    found.extend(beginnings(&lefts, &rights));
    found
}

/// Pairs of words where one begins the other, the heaviest first. Ties are broken by the words alone, not by the side they
/// are on.
fn beginnings<'a>(lefts: &[(&'a str, f32)], rights: &[(&'a str, f32)]) -> Vec<Pair<'a>> {
    let mut candidates = Vec::new();
    for (one, weight) in lefts {
        for (other, opposite) in rights {
            let are_words = Kind::of(one) == Kind::Word && Kind::of(other) == Kind::Word;
            if are_words && begins(&one[1..], &other[1..]) {
                candidates.push(Pair { one, other, weight: weight.min(*opposite) * BEGINNING });
            }
        }
    }
    let names = |pair: &Pair<'a>| (pair.one.min(pair.other), pair.one.max(pair.other));
    candidates.sort_by(|first, second| second.weight.total_cmp(&first.weight).then_with(|| names(first).cmp(&names(second))));
    let mut kept: Vec<Pair<'a>> = Vec::new();
    for candidate in candidates {
        if !kept.iter().any(|pair| pair.one == candidate.one || pair.other == candidate.other) {
            kept.push(candidate);
        }
    }
    kept
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::matching::text::Terms;

    /// Compares two texts whose words are all as rare.
    pub(in crate::matching) fn likeness(one: &str, other: &str) -> Likeness {
        let (one, other) = (Terms::of(one), Terms::of(other));
        Likeness::between(&side_of(&one), &side_of(&other))
    }

    fn side_of(terms: &Terms) -> Side<'_> {
        Side::weighed(terms.0.keys().map(|key| (key.as_str(), 1.0)))
    }

    #[test]
    fn a_word_goes_with_one_word_only() {
        let likeness = likeness("manufacture manufacturer manufacturers", "manufacturer");

        assert_eq!((likeness.of_lighter, likeness.shared), (1.0, 1));
        assert!(likeness.of_both < 0.75, "{likeness:?}");
    }

    #[test]
    fn both_sides_see_the_same_and_never_more_than_all() {
        let texts = [
            "manufacture manufacturer manufacturers manufacturing",
            "manufacturer of configured configurations",
            "config configuration configurations reconfigure",
            "connect connection connections connector to src/db/pool.rs",
            "connecting pool_timeout E0277 connectors",
            "全文検索を空白で分割する configuration",
            "分割 全文検索 connection",
        ];
        for one in texts {
            for other in texts {
                let likeness = likeness(one, other);
                assert_eq!(likeness, self::likeness(other, one), "{one} / {other}");
                assert!(likeness.of_lighter <= 1.0 && likeness.of_both <= likeness.of_lighter, "{likeness:?}");
                assert!(one != other || likeness.of_both > 0.999, "{one}: {likeness:?}");
            }
        }
    }

    #[test]
    fn a_beginning_counts_if_it_is_long_enough() {
        assert_eq!(likeness("config", "configuration").shared, 1);
        assert_eq!(likeness("port", "portable").shared, 0);
    }

    proptest::proptest! {
        #[test]
        fn any_two_texts_are_alike_from_either_side(one in "[a-eA-E0-3_/. é検索ア-]{0,60}", other in "[a-eA-E0-3_/. é検索ア-]{0,60}") {
            let likeness = likeness(&one, &other);

            proptest::prop_assert_eq!(likeness, self::likeness(&other, &one));
            proptest::prop_assert!((0.0..=1.0).contains(&likeness.of_both) && likeness.of_both <= likeness.of_lighter + 1e-6);
        }

        #[test]
        fn any_text_is_all_that_it_says_itself(text in "\\PC{0,80}") {
            let likeness = likeness(&text, &text);

            proptest::prop_assert!(likeness.pairs == 0 || likeness.of_both > 0.999, "{:?}", likeness);
        }
    }

    #[test]
    fn nothing_is_like_nothing() {
        assert_eq!(likeness("", "switch to a plastic frame"), Likeness::default());
        assert_eq!(likeness("", ""), Likeness::default());
    }
}
