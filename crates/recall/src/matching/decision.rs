//! Whether what two sides have in common is enough to interrupt somebody, and why.

use std::fmt;

use super::likeness::Likeness;

/// Where the lines are drawn. Those of words were found on the tuning part of `evals/memory`; those of meaning belong to an
/// embedding model and have to be found anew for each. Shares are of what words weigh: rare ones weigh more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bars {
    /// What an approach has to have in common with the route alone.
    pub route: Bar,
    /// What is enough where a route says little.
    pub short_route: Bar,
    /// What an approach has to have in common with the whole record.
    pub whole: Bar,
    /// The share that is enough if a file is the same.
    pub with_file: f32,
    /// The share that is enough if a code or an identifier is the same.
    pub with_code: f32,
    /// What an approach has to have in common with the route if a package is the same.
    pub with_dependency: Bar,
    /// The share that is enough for a record that stands beside one that is shown: the other polarity of the same matter.
    pub beside: f32,
    /// The cosine that is enough for such a record.
    pub beside_in_meaning: f32,
    /// From this cosine on the meaning is enough.
    pub meaning: f32,
    /// From this cosine on the meaning is enough if some words are shared.
    pub meaning_with_words: f32,
    /// The share that is enough for that.
    pub words_with_meaning: f32,
    /// Below this cosine shared words are not believed, unless one side restates the other.
    pub disbelief: f32,
}

/// A bar for words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bar {
    /// How many have to be shared, those that go with every matter not counted.
    pub words: usize,
    /// What has to be shared, of the lighter side.
    pub of_lighter: f32,
    /// What has to be shared, of both sides together. A few words of a short route are not enough beside a long approach
    /// about something else.
    pub of_both: f32,
}

impl Bar {
    fn is_passed_by(&self, likeness: &Likeness) -> bool {
        likeness.shared >= self.words && likeness.of_lighter >= self.of_lighter && likeness.of_both >= self.of_both
    }
}

impl Default for Bars {
    fn default() -> Self {
        Self {
            route: Bar { words: 3, of_lighter: 0.6, of_both: 0.35 },
            short_route: Bar { words: 2, of_lighter: 0.7, of_both: 0.5 },
            whole: Bar { words: 4, of_lighter: 0.4, of_both: 0.25 },
            with_file: 0.1,
            with_code: 0.15,
            with_dependency: Bar { words: 2, of_lighter: 0.4, of_both: 0.3 },
            beside: 0.15,
            beside_in_meaning: 0.65,
            meaning: 0.80,
            meaning_with_words: 0.74,
            words_with_meaning: 0.25,
            disbelief: 0.65,
        }
    }
}

impl Bars {
    /// The bars of all-MiniLM-L6-v2 with weights of 8 bits, found on the tuning part of `evals/memory`.
    pub fn of_minilm() -> Self {
        Self {
            beside_in_meaning: 0.2,
            meaning: 0.66,
            meaning_with_words: 0.60,
            words_with_meaning: 0.30,
            disbelief: -1.0,
            ..Self::default()
        }
    }

    /// A meaning below this cosine is not enough for anything.
    pub fn least_meaning(&self) -> f32 {
        self.meaning.min(self.meaning_with_words).min(self.beside_in_meaning)
    }
}

/// What a record and an approach have in overlap.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Overlap {
    /// Between the approach and the route.
    pub route: Likeness,
    /// Between the approach and the whole record, files apart.
    pub whole: Likeness,
    /// How many codes and identifiers they share.
    pub codes: usize,
    /// How many files they share, by path or by a telling name.
    pub files: usize,
    /// How many packages they share.
    pub dependencies: usize,
    /// How alike their meaning is, if both have a vector.
    pub cosine: Option<f32>,
}

/// A share that is all, but for rounding.
const ALL: f32 = 0.999;

impl Overlap {
    /// What is shared with the route or the whole record, of the lighter side, whichever is more.
    pub fn share(&self) -> f32 {
        self.route.of_lighter.max(self.whole.of_lighter)
    }
}

/// Why a record is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// One side says all that the other does.
    Restated,
    /// The same code or identifier, and words.
    Code,
    /// The same file, and words.
    File,
    /// The same words.
    Words,
    /// The same package, and words.
    Dependency,
    /// The same meaning, in other words.
    Meaning,
    /// It stands beside a record that is shown: what works where that one fails, or the other way round.
    Beside,
}

/// A record that is worth showing, with what a person can check: the words and files that it was found by.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The kind of the reason.
    pub reason: Reason,
    /// The words, codes and identifiers in common, as they stand in the approach, the weightiest first.
    pub words: Vec<String>,
    /// The files and folders in common, as they stand in the approach.
    pub files: Vec<String>,
    /// The packages in overlap.
    pub dependencies: Vec<String>,
    /// What they share, as a share of the lighter side, in percent.
    pub percent: u8,
}

impl fmt::Display for Decision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cause = match self.reason {
            Reason::Restated => "says the same",
            Reason::Code => "the same code or identifier",
            Reason::File => "the same file",
            Reason::Words => "the same words",
            Reason::Dependency => "the same package",
            Reason::Meaning => "the same meaning",
            Reason::Beside => "the other side of a record that is shown",
        };
        write!(formatter, "{cause} ({} %", self.percent)?;
        for (what, list) in [("words", &self.words), ("files", &self.files), ("packages", &self.dependencies)] {
            if !list.is_empty() {
                write!(formatter, "; {what}: {}", list.join(", "))?;
            }
        }
        formatter.write_str(")")
    }
}

/// Whether what is common is enough, and why; `None` if it is not.
pub fn decide(overlap: &Overlap, bars: &Bars) -> Option<Reason> {
    by_words(overlap, bars).or_else(|| by_meaning(overlap, bars))
}

/// Whether what is common is enough for a record that stands beside one that is shown.
pub(super) fn may_stand_beside(overlap: &Overlap, bars: &Bars) -> bool {
    overlap.share() >= bars.beside || overlap.cosine.is_some_and(|cosine| cosine >= bars.beside_in_meaning)
}

fn by_words(overlap: &Overlap, bars: &Bars) -> Option<Reason> {
    let Overlap { route, whole, .. } = overlap;
    // What restates the route stands, whatever a model makes of its meaning.
    if route.of_both >= ALL && route.shared > 0 || route.of_lighter >= ALL && route.shared >= 2 && route.pairs >= 3 {
        return Some(Reason::Restated);
    }
    if overlap.cosine.is_some_and(|cosine| cosine < bars.disbelief) {
        return None;
    }
    let share = overlap.share();
    let words_beside_codes = whole.shared.saturating_sub(overlap.codes);
    let is_told = words_beside_codes > 0 || overlap.codes > 1 || route.of_lighter >= bars.route.of_lighter;
    if overlap.codes > 0 && share >= bars.with_code && is_told {
        return Some(Reason::Code);
    }
    if overlap.files > 0 && whole.shared > 0 && share >= bars.with_file {
        return Some(Reason::File);
    }
    if bars.route.is_passed_by(route) || bars.short_route.is_passed_by(route) || bars.whole.is_passed_by(whole) {
        return Some(Reason::Words);
    }
    (overlap.dependencies > 0 && bars.with_dependency.is_passed_by(route)).then_some(Reason::Dependency)
}

fn by_meaning(overlap: &Overlap, bars: &Bars) -> Option<Reason> {
    let cosine = overlap.cosine?;
    let is_near = cosine >= bars.meaning_with_words && overlap.share() >= bars.words_with_meaning;
    (cosine >= bars.meaning || is_near).then_some(Reason::Meaning)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::likeness::tests::likeness as likeness_of_texts;

    /// Bars as the reference has them, and words that weigh the same.
    fn reference() -> Bars {
        let bar = Bar { words: 2, of_lighter: 0.5, of_both: 0.0 };
        Bars { route: bar, ..Bars::default() }
    }

    fn overlap(of_lighter: f32, cosine: Option<f32>) -> Overlap {
        let route = Likeness { of_lighter, of_both: of_lighter.min(0.9), shared: 3, pairs: 3 };
        Overlap { route, cosine, ..Overlap::default() }
    }

    #[test]
    fn with_the_bars_of_the_reference_it_decides_as_the_reference_does() {
        for (of_lighter, cosine, is_shown) in [
            (0.50, None, true),
            (0.50, Some(0.611), false),
            (0.50, Some(0.65), true),
            (0.20, Some(0.746), false),
            (0.25, Some(0.745), true),
            (0.00, Some(0.82), true),
            (0.00, Some(0.79), false),
            (0.60, Some(0.694), true),
        ] {
            assert_eq!(decide(&overlap(of_lighter, cosine), &reference()).is_some(), is_shown, "{of_lighter} {cosine:?}");
        }
    }

    #[test]
    fn a_restatement_is_not_vetoed_by_a_model() {
        assert_eq!(decide(&overlap(1.0, Some(0.60)), &reference()), Some(Reason::Restated));
        let same = Likeness { of_lighter: 1.0, of_both: 1.0, shared: 1, pairs: 1 };
        assert_eq!(decide(&Overlap { route: same, cosine: Some(0.1), ..Overlap::default() }, &Bars::default()), Some(Reason::Restated));
        // Two words of a long approach are a restatement of nothing.
        let two = Likeness { of_lighter: 1.0, of_both: 0.4, shared: 2, pairs: 2 };
        assert_eq!(decide(&Overlap { route: two, cosine: Some(0.60), ..Overlap::default() }, &reference()), None);
    }

    #[test]
    fn words_are_compared_as_the_reference_does_without_its_defects() {
        for (approach, route, of_lighter) in [
            ("switch to a plastic frame to save weight", "Switching to a plastic frame", 1.0),
            // It exceeds 1 there, and depends on the side.
            ("manufacture manufacturer manufacturers", "manufacturer", 1.0),
            ("manufacturer", "manufacture manufacturer manufacturers", 1.0),
            // Inflections of equal length do not match there.
            ("handled", "handles", 1.0),
            ("handle", "handles", 1.0),
        ] {
            let likeness = likeness_of_texts(approach, route);
            assert!((likeness.of_lighter - of_lighter).abs() < 1e-6, "{approach} / {route}: {likeness:?}");
        }
        // Short names are invisible there, and this is a full match.
        let tools = likeness_of_texts("call the api via go", "call the cli via npm");
        assert_eq!((decide(&Overlap { route: tools, whole: tools, ..Overlap::default() }, &reference()), tools.shared), (None, 0));
        // One word of two is nothing.
        let session = likeness_of_texts("session activity capture", "session cookies");
        assert_eq!((decide(&Overlap { route: session, whole: session, ..Overlap::default() }, &reference()), session.shared), (None, 1));
    }

    #[test]
    fn a_file_or_a_code_needs_a_word_beside_it() {
        let likeness = Likeness { of_lighter: 0.2, of_both: 0.1, shared: 1, pairs: 1 };
        let file = Overlap { files: 1, whole: likeness, ..Overlap::default() };
        let code = Overlap { codes: 1, whole: Likeness { shared: 2, ..likeness }, ..Overlap::default() };

        assert_eq!(decide(&file, &Bars::default()), Some(Reason::File));
        assert_eq!(decide(&Overlap { whole: Likeness::default(), ..file }, &Bars::default()), None);
        assert_eq!(decide(&code, &Bars::default()), Some(Reason::Code));
        assert_eq!(decide(&Overlap { whole: likeness, ..code }, &Bars::default()), None);
        assert_eq!(decide(&Overlap { cosine: Some(0.3), ..code }, &Bars::default()), None);
    }

    #[test]
    fn a_decision_reads_as_a_sentence() {
        let decision = Decision {
            reason: Reason::File,
            words: vec!["pool".to_owned(), "sqlx".to_owned()],
            files: vec!["src/db/pool.rs".to_owned()],
            dependencies: Vec::new(),
            percent: 42,
        };

        assert_eq!(decision.to_string(), "the same file (42 %; words: pool, sqlx; files: src/db/pool.rs)");
    }
}
