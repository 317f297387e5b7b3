//! Searching an index: BM25F brings records up, a comparison of each decides.

use std::collections::{BTreeMap, BTreeSet};

use super::bytes::{Entry, NO_PROJECT};
use super::{Field, Hit, Index, Meaning};
use crate::Polarity;
use crate::matching::decision::{Bars, Decision, Overlap, Reason, decide, may_stand_beside};
use crate::matching::likeness::{Likeness, Pair, Side, pairs};
use crate::matching::text::{Kind, Terms, fold};
use crate::matching::{Approach, words};

/// How many records are compared with an approach. What fits stands far above the middle of what BM25F brings up.
const COMPARED: usize = 128;
/// How many words of the index one word of an approach may begin.
const MOST_BEGUN: usize = 24;
/// The constants of BM25: how soon a term is said often enough, and how much long fields are held back.
const SATURATION: f32 = 1.2;
const LENGTH: f32 = 0.5;

/// A term of the approach as the index knows it.
struct Wanted {
    number: usize,
    weight: f32,
}

impl Index {
    /// The records that are worth showing to who is about to try this, the best first: those of the same project before
    /// others, at most `most` of each polarity.
    pub fn search(&self, approach: &Approach<'_>, bars: &Bars, meaning: Option<&Meaning<'_>>, most: usize) -> Vec<Hit> {
        let terms = terms_of(approach);
        let asked = self.asked(approach, &terms);
        let compared =
            self.bring_up(&terms, meaning).into_iter().map(|(number, relevance)| self.compare(&asked, number, relevance, meaning));
        let (mut hits, mut others) = (Vec::new(), Vec::new());
        for compared in compared {
            match decide(&compared.overlap, bars) {
                Some(reason) => hits.push(self.hit(&asked, compared, reason)),
                None if may_stand_beside(&compared.overlap, bars) => others.push(compared),
                None => {}
            }
        }
        let shown: Vec<Standing> = hits.iter().map(|hit| self.standing(hit.number)).collect();
        let beside = others.into_iter().filter(|other| self.stands_beside(other.number, &shown));
        hits.extend(beside.map(|other| self.hit(&asked, other, Reason::Beside)));
        hits.sort_by(|one, other| {
            one.is_elsewhere.cmp(&other.is_elsewhere).then(other.score.total_cmp(&one.score)).then(one.number.cmp(&other.number))
        });
        let mut left = BTreeMap::from([(Polarity::Works, most), (Polarity::Fails, most)]);
        hits.retain(|hit| left.get_mut(&hit.polarity).is_some_and(take_one));
        hits
    }

    /// What each record that is brought up has in common with an approach, whether it is worth showing or not. Bars are found
    /// by it.
    pub fn overlaps(&self, approach: &Approach<'_>, meaning: Option<&Meaning<'_>>) -> Vec<(u32, Overlap)> {
        let terms = terms_of(approach);
        let asked = self.asked(approach, &terms);
        let brought_up = self.bring_up(&terms, meaning).into_iter();
        brought_up.map(|(number, relevance)| (number, self.compare(&asked, number, relevance, meaning).overlap)).collect()
    }

    /// The records that name one of these files or folders, by the names of [`crate::naming`], in the order of building.
    pub(crate) fn naming<'names>(&self, names: impl Iterator<Item = &'names str>) -> Vec<u32> {
        let terms = names.filter_map(|name| self.number(&format!("{}{name}", Kind::Named.mark())));
        let records = terms.flat_map(|term| self.sections.postings(&self.bytes, term as usize).map(|(record, _)| record));
        records.collect::<BTreeSet<u32>>().into_iter().collect()
    }

    fn asked<'a>(&self, approach: &Approach<'_>, terms: &'a Terms) -> Asked<'a> {
        let project = approach.project.and_then(|project| self.number(&format!("{}{project}", Kind::Project.mark())));
        let side = Side::weighed(terms.0.keys().map(|key| (key.as_str(), self.rarity_of(key))));
        Asked { terms, side, project, is_of_project: approach.project.is_some() }
    }

    /// The records that a term, or a model, brings up, with what BM25F gives them as a share of what it could give.
    fn bring_up(&self, terms: &Terms, meaning: Option<&Meaning<'_>>) -> Vec<(u32, f32)> {
        let mut wanted = self.wanted(terms);
        let whole: f32 = wanted.iter().map(|wanted| wanted.weight).sum();
        // The rarest first: what is in one of 32 records need not bring any up once rarer terms did. It is compared all the same.
        wanted.sort_by_key(|wanted| self.sections.postings(&self.bytes, wanted.number).count);
        let many = (self.len() / 32).max(1_000);
        let mut scores = vec![0.0_f32; self.len()];
        let mut touched: Vec<u32> = Vec::new();
        for Wanted { number, weight } in wanted {
            let postings = self.sections.postings(&self.bytes, number);
            if postings.count > many && touched.len() >= COMPARED {
                break;
            }
            for (record, mask) in postings {
                let Some(score) = scores.get_mut(record as usize) else { continue };
                if *score == 0.0 {
                    touched.push(record);
                }
                *score += weight * self.frequency(record, mask);
            }
        }
        let by_score = |one: &u32, other: &u32| scores[*other as usize].total_cmp(&scores[*one as usize]).then(one.cmp(other));
        if touched.len() > COMPARED {
            touched.select_nth_unstable_by(COMPARED, by_score);
            touched.truncate(COMPARED);
        }
        let near = meaning.map_or(&[][..], |meaning| meaning.near).iter().filter(|record| (**record as usize) < self.len());
        let known: BTreeSet<u32> = touched.iter().chain(near).copied().collect();
        known.into_iter().map(|record| (record, scores[record as usize] / whole.max(f32::MIN_POSITIVE))).collect()
    }

    /// How often a term is in a record, by the weights of its fields, with long fields held back.
    fn frequency(&self, record: u32, mask: u8) -> f32 {
        let lengths = self.sections.record(&self.bytes, record as usize).lengths;
        let mut frequency = 0.0;
        for (index, field) in Field::ALL.into_iter().enumerate().filter(|(_, field)| field.is_in(mask)) {
            let held_back = match (lengths.get(index), self.sections.averages.get(index)) {
                (Some(length), Some(average)) => 1.0 - LENGTH + LENGTH * f32::from(*length) / average.max(1.0),
                _ => 1.0,
            };
            frequency += field.boost() / held_back;
        }
        frequency / (SATURATION + frequency)
    }

    /// The terms of the index that an approach asks for: its own, and words that begin or are begun by one of its own.
    fn wanted(&self, terms: &Terms) -> Vec<Wanted> {
        let mut wanted: BTreeMap<usize, f32> = BTreeMap::new();
        let mut want = |number: usize, weight: f32| {
            let entry = wanted.entry(number).or_default();
            *entry = entry.max(weight);
        };
        for key in terms.0.keys() {
            if let Some(number) = self.number(key) {
                want(number as usize, pull(key) * self.rarity(number as usize));
            }
            if Kind::of(key) == Kind::Word {
                for number in self.begun_by(key).into_iter().chain(self.beginnings_of(key)) {
                    want(number, 0.6 * pull(key) * self.rarity(number));
                }
            }
        }
        wanted.into_iter().map(|(number, weight)| Wanted { number, weight }).collect()
    }

    fn compare<'a>(&'a self, asked: &Asked<'a>, number: u32, relevance: f32, meaning: Option<&Meaning<'_>>) -> Compared<'a> {
        let found = self.terms_of(number);
        let in_fields = |wanted: u8| found.iter().filter(move |term| term.mask & wanted != 0).map(|term| (term.key, term.rarity));
        let route = Side::weighed(in_fields(Field::Route as u8));
        let whole = Side::weighed(in_fields(Field::Route as u8 | Field::Trap as u8 | Field::Observation as u8));
        let pairs = pairs(&asked.side, &whole);
        let signals = Signals::of(asked.terms, &found);
        let is_code = |pair: &&Pair<'_>| matches!(Kind::of(pair.one), Kind::Code | Kind::Identifier);
        let overlap = Overlap {
            route: Likeness::between(&asked.side, &route),
            whole: Likeness::of_pairs(&pairs, asked.side.weight(), whole.weight()),
            codes: pairs.iter().filter(is_code).count(),
            files: signals.files.len(),
            dependencies: signals.dependencies.len(),
            cosine: meaning.and_then(|meaning| (meaning.cosine)(number)),
        };
        Compared { number, relevance, overlap, pairs, signals }
    }

    fn hit(&self, asked: &Asked<'_>, compared: Compared<'_>, reason: Reason) -> Hit {
        let Compared { number, relevance, overlap, .. } = compared;
        let Entry { place, project, polarity, .. } = self.sections.record(&self.bytes, number as usize);
        let signals = if overlap.codes > 0 { 0.3 } else { 0.0 } + if overlap.files > 0 { 0.3 } else { 0.0 };
        let score = overlap.route.of_both + overlap.whole.of_lighter + relevance + signals + overlap.cosine.unwrap_or_default();
        let is_elsewhere = asked.is_of_project && project != NO_PROJECT && Some(project) != asked.project;
        Hit { number, place, polarity, is_elsewhere, score, decision: explain(asked, reason, compared) }
    }

    /// What a record is about beyond words: its project, and its files, codes and identifiers.
    fn standing(&self, number: u32) -> Standing {
        let Entry { project, polarity, .. } = self.sections.record(&self.bytes, number as usize);
        let is_mark = |term: &usize| is_telling(self.sections.term(&self.bytes, *term));
        let terms = self.sections.forward(&self.bytes, number as usize).map(|(term, _)| term as usize);
        Standing { project, polarity, marks: terms.filter(is_mark).collect() }
    }

    /// Whether a record is the other side of one that is shown: of the same project and the other polarity, and about the
    /// same file, code or identifier.
    fn stands_beside(&self, number: u32, shown: &[Standing]) -> bool {
        let own = self.standing(number);
        shown.iter().any(|other| own.project == other.project && own.polarity != other.polarity && !own.marks.is_disjoint(&other.marks))
    }

    fn terms_of(&self, record: u32) -> Vec<Found<'_>> {
        let found = |(term, mask)| {
            let key = self.sections.term(&self.bytes, term as usize);
            Found { key, mask, rarity: self.rarity(term as usize) }
        };
        self.sections.forward(&self.bytes, record as usize).map(found).collect()
    }

    /// The number of a term, if the index has it.
    fn number(&self, key: &str) -> Option<u32> {
        let number = self.first_from(key);
        (number < self.sections.terms && self.sections.term(&self.bytes, number) == key).then_some(number as u32)
    }

    /// The first term that is not before this key.
    fn first_from(&self, key: &str) -> usize {
        let (mut low, mut high) = (0, self.sections.terms);
        while low < high {
            let middle = low.midpoint(high);
            if self.sections.term(&self.bytes, middle) < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Longer words that begin with this one.
    fn begun_by(&self, key: &str) -> Vec<usize> {
        if !words::can_begin(&key[1..]) {
            return Vec::new();
        }
        let from = self.first_from(key);
        let begun = (from..self.sections.terms).take_while(|number| self.sections.term(&self.bytes, *number).starts_with(key));
        begun.take(MOST_BEGUN).collect()
    }

    /// Shorter words that this one begins with.
    fn beginnings_of(&self, key: &str) -> Vec<usize> {
        let ends = key.char_indices().map(|(end, _)| end).skip(1);
        let shorter = ends.map(|end| &key[..end]).filter(|short| short.len() > 1 && words::can_begin(&short[1..]));
        shorter.filter_map(|short| self.number(short)).map(|number| number as usize).collect()
    }

    fn rarity_of(&self, key: &str) -> f32 {
        self.number(key).map_or_else(|| self.rarity_among(0), |number| self.rarity(number as usize))
    }

    fn rarity(&self, term: usize) -> f32 {
        self.rarity_among(self.sections.postings(&self.bytes, term).count)
    }

    /// How much a term tells that is in so many records.
    fn rarity_among(&self, count: usize) -> f32 {
        let (all, count) = (self.len() as f32, count.max(1) as f32);
        (1.0 + (all - count + 0.5).max(0.0) / (count + 0.5)).ln().max(0.05)
    }
}

/// What a record is about beyond words.
struct Standing {
    project: u32,
    polarity: Polarity,
    /// Numbers of telling terms.
    marks: BTreeSet<usize>,
}

/// A term of a record.
struct Found<'a> {
    key: &'a str,
    /// The fields that it is in.
    mask: u8,
    rarity: f32,
}

/// An approach, ready to be compared with many records.
struct Asked<'a> {
    terms: &'a Terms,
    side: Side<'a>,
    /// The number of its project among the terms, if a record of that project exists.
    project: Option<u32>,
    is_of_project: bool,
}

/// A record, compared with an approach.
struct Compared<'a> {
    number: u32,
    /// What BM25F gives it.
    relevance: f32,
    overlap: Overlap,
    pairs: Vec<Pair<'a>>,
    signals: Signals,
}

/// What approach and record have in common beside words.
struct Signals {
    files: Vec<String>,
    dependencies: Vec<String>,
}

impl Signals {
    fn of(terms: &Terms, found: &[Found<'_>]) -> Self {
        let (mut files, mut names, mut dependencies) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for Found { key, .. } in found {
            let name = &key[1..];
            match Kind::of(key) {
                Kind::Path => files.extend(terms.0.get(*key).cloned()),
                Kind::File if !words::is_everywhere(name) => names.extend(terms.0.get(*key).cloned()),
                Kind::Package => dependencies.extend(named_package(terms, key).then(|| name.to_owned())),
                Kind::File | Kind::Folder | Kind::Code | Kind::Identifier | Kind::Pale | Kind::Word | Kind::Project | Kind::Named => {}
            }
        }
        let names_path = |name: &str| files.iter().any(|path: &String| path.ends_with(&format!("/{name}")));
        let names = names.into_iter().filter(|name: &String| !names_path(name)).collect::<Vec<_>>();
        Self { files: files.into_iter().chain(names).collect(), dependencies: dependencies.into_iter().collect() }
    }
}

/// Whether a term alone tells what a record is about.
fn is_telling(key: &str) -> bool {
    match Kind::of(key) {
        Kind::Path | Kind::Code | Kind::Identifier => true,
        Kind::File => !words::is_everywhere(&key[1..]),
        Kind::Folder | Kind::Package | Kind::Pale | Kind::Word | Kind::Project | Kind::Named => false,
    }
}

/// Whether the approach names this package, as one of its dependencies or as a word.
fn named_package(terms: &Terms, key: &str) -> bool {
    terms.0.contains_key(key) || terms.0.contains_key(&format!("{}{}", Kind::Word.mark(), words::stem(words::full_name(&key[1..]))))
}

fn terms_of(approach: &Approach<'_>) -> Terms {
    let mut terms = Terms::of(approach.text);
    for file in approach.files {
        terms.read_path(file);
    }
    for name in approach.dependencies {
        terms.add(Kind::Package, &fold(name), name);
    }
    terms
}

/// How strongly a term brings records up.
fn pull(key: &str) -> f32 {
    match Kind::of(key) {
        Kind::Path => 2.0,
        Kind::File if words::is_everywhere(&key[1..]) => 0.3,
        Kind::File | Kind::Package => 1.0,
        Kind::Folder => 0.3,
        Kind::Project | Kind::Named => 0.0,
        kind @ (Kind::Code | Kind::Identifier | Kind::Pale | Kind::Word) => kind.weight(),
    }
}

fn explain(asked: &Asked<'_>, reason: Reason, compared: Compared<'_>) -> Decision {
    let Compared { overlap, mut pairs, signals, .. } = compared;
    pairs.sort_by(|one, other| other.weight.total_cmp(&one.weight).then(one.one.cmp(other.one)));
    let mut shown: Vec<String> = Vec::new();
    for pair in pairs {
        let word = asked.terms.0.get(pair.one).cloned().unwrap_or_default();
        if !shown.contains(&word) {
            shown.push(word);
        }
    }
    let share = overlap.route.of_lighter.max(overlap.whole.of_lighter);
    let percent = (share * 100.0).round().clamp(0.0, 100.0) as u8;
    Decision { reason, words: shown, files: signals.files, dependencies: signals.dependencies, percent }
}

fn take_one(left: &mut usize) -> bool {
    let has_one = *left > 0;
    *left = left.saturating_sub(1);
    has_one
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::{Damaged, Findable, Fingerprint, Place};

    const NOWHERE: Place = Place { source: 0, line: 0, offset: 0, length: 0 };

    fn fails<'a>(route: &'a str, observation: &'a str) -> Findable<'a> {
        let polarity = Polarity::Fails;
        Findable { polarity, route, trap: "", observation, files: &[], dependencies: &[], project: Some("shop") }
    }

    fn works<'a>(route: &'a str, trap: &'a str) -> Findable<'a> {
        Findable { polarity: Polarity::Works, trap, observation: "", ..fails(route, "") }
    }

    fn pool() -> Vec<Findable<'static>> {
        let files = &["src/db/pool.rs"];
        vec![
            fails("Switching to a plastic frame", "it bent"),
            fails("put pgbouncer in transaction mode in front of sqlx", "prepared statement does not exist"),
            Findable { files, ..fails("raise max_connections of the pool", "the database refused, error 53300") },
            Findable { files, ..works("size the pool by the number of cores", "each worker has a pool of its own") },
            Findable { project: Some("ledger"), ..fails("a plastic frame, switched to", "it bent") },
            Findable { project: None, ..fails("和暦の日付を正規表現で解析する", "元を読めない") },
            Findable { dependencies: &["react"], ..fails("render the order table with the index as key", "inputs keep their value") },
        ]
    }

    fn index(records: &[Findable<'static>]) -> Index {
        Index::build(Fingerprint([7; 32]), records.iter().map(|record| (NOWHERE, *record)))
    }

    fn search(text: &str, files: &[&str]) -> Vec<Hit> {
        let approach = Approach { text, files, dependencies: &[], project: Some("shop") };
        index(&pool()).search(&approach, &Bars::default(), None, 6)
    }

    fn numbers(hits: &[Hit]) -> Vec<u32> {
        hits.iter().map(|hit| hit.number).collect()
    }

    #[test]
    fn the_same_project_is_first_and_another_is_marked() {
        let hits = search("switch to a plastic frame to save weight", &[]);

        assert_eq!(hits.iter().map(|hit| (hit.number, hit.is_elsewhere)).collect::<Vec<_>>(), [(0, false), (4, true)]);
        assert_eq!(hits[0].decision.words, ["frame", "plastic", "switch"]);
    }

    #[test]
    fn a_record_of_no_project_is_never_elsewhere() {
        let hits = search("和暦を正規表現で解析する", &[]);

        assert_eq!(hits.iter().map(|hit| (hit.number, hit.is_elsewhere)).collect::<Vec<_>>(), [(5, false)]);
    }

    #[test]
    fn what_a_record_says_is_found_word_for_word() {
        for (number, record) in pool().iter().enumerate() {
            let hits = search(record.route, &[]);
            assert!(hits.iter().any(|hit| hit.number as usize == number), "{}: {hits:?}", record.route);
        }
    }

    #[test]
    fn a_file_in_common_needs_one_word_and_is_named() {
        let hits = search("give the pool another size", &["./src/db/pool.rs"]);

        assert_eq!(numbers(&hits), [3, 2]);
        assert_eq!((hits[0].decision.reason, hits[0].decision.files.as_slice()), (Reason::File, &["./src/db/pool.rs".to_owned()][..]));
        assert_eq!(search("translate the labels", &["src/db/pool.rs"]), []);
    }

    #[test]
    fn the_code_of_an_error_is_enough_with_a_word() {
        let hits = search("restart the database on error 53300", &[]);

        assert_eq!(hits[0].number, 2);
        assert_eq!(hits[0].decision.reason, Reason::Code);
    }

    #[test]
    fn what_works_stands_beside_what_fails() {
        let hits = search("raise max_connections of the pool for each core", &[]);

        assert_eq!(
            hits.iter().map(|hit| (hit.number, hit.decision.reason)).collect::<Vec<_>>(),
            [(2, Reason::Restated), (3, Reason::Beside)]
        );
    }

    #[test]
    fn what_is_about_something_else_is_not_shown() {
        for text in [
            "",
            "  ",
            "the of and",
            "call the api via go",
            "order the tables for the meeting room",
            "a plastic bag in the picture frame shop",
        ] {
            assert_eq!(search(text, &[]), [], "{text}");
        }
        assert_eq!(
            index(&[]).search(&Approach { text: "switch to a plastic frame", ..Approach::default() }, &Bars::default(), None, 6),
            []
        );
    }

    #[test]
    fn each_polarity_has_a_limit_of_its_own() {
        let records: Vec<Findable<'static>> = (0..9)
            .map(|_| fails("glue the plastic frame twice", "it bent"))
            .chain([works("glue the plastic frame twice", "it drips")])
            .collect();

        let hits =
            index(&records).search(&Approach { text: "glue the plastic frame twice", ..Approach::default() }, &Bars::default(), None, 3);

        assert_eq!(numbers(&hits).len(), 4);
        assert_eq!(hits.iter().filter(|hit| hit.polarity == Polarity::Works).count(), 1);
    }

    #[test]
    fn a_model_vetoes_words_and_brings_up_what_has_none_in_common() {
        let approach = Approach {
            text: "switch to a plastic frame, and pgbouncer in transaction mode for sqlx",
            project: Some("shop"),
            ..Approach::default()
        };
        let cosine = |number: u32| match number {
            0 | 1 => Some(0.2),
            3 => Some(0.9),
            _ => None,
        };

        let hits = index(&pool()).search(&approach, &Bars::default(), Some(&Meaning { near: &[3, 99], cosine: &cosine }), 6);

        // Those about the frame restate their route, and stand. The one about pgbouncer leaves a word out, and is vetoed.
        let shown: Vec<(u32, Reason)> = hits.iter().map(|hit| (hit.number, hit.decision.reason)).collect();
        assert_eq!(shown, [(0, Reason::Restated), (3, Reason::Meaning), (4, Reason::Restated)]);
        assert!(numbers(&index(&pool()).search(&approach, &Bars::default(), None, 6)).contains(&1));
    }

    #[test]
    fn an_index_that_was_cut_or_changed_anywhere_is_refused() {
        let bytes = index(&pool()[..2]).as_bytes().to_vec();

        assert_eq!(Index::from_bytes(bytes.clone()).unwrap().fingerprint(), Fingerprint([7; 32]));
        for length in 0..bytes.len() {
            assert!(Index::from_bytes(bytes[..length].to_vec()).is_err(), "cut to {length}");
        }
        for position in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[position] ^= 0x10;
            assert!(Index::from_bytes(changed).is_err(), "changed at {position}");
        }
        assert_eq!(Index::from_bytes(Vec::new()).unwrap_err(), Damaged::Form);
    }

    #[test]
    fn an_index_that_was_kept_finds_what_it_found_before() {
        let approach = Approach { text: "switch to a plastic frame", ..Approach::default() };
        let fresh = index(&pool());
        let kept = Index::from_bytes(fresh.as_bytes().to_vec()).unwrap();

        assert_eq!(kept.search(&approach, &Bars::default(), None, 6), fresh.search(&approach, &Bars::default(), None, 6));
        assert_eq!((kept.len(), kept.is_empty()), (7, false));
    }

    #[test]
    fn two_telling_words_of_a_short_route_are_enough_among_few_records() {
        let records =
            [fails("build the service on Alpine with native OpenSSL", "linking fails"), works("glue the plastic frame twice", "it drips")];
        let approach = Approach { text: "build on alpine with OpenSSL from apk", ..Approach::default() };

        assert_eq!(numbers(&index(&records).search(&approach, &Bars::default(), None, 6)), [0]);
    }

    #[test]
    fn records_are_found_as_they_are_kept() {
        let id = proctor_domain::RecordId::from_bits(1);
        let record = crate::Record {
            trap: Some("default-features must be off".to_owned()),
            files: vec!["Cargo.toml".to_owned()],
            dependencies: vec![crate::Dependency::parse("reqwest@0.12")],
            project: Some("atlas".to_owned()),
            ..crate::Record::new(id, Polarity::Works, "switch reqwest to rustls for musl")
        };

        let index = Index::of_records(Fingerprint::default(), [(NOWHERE, &record)]);
        let approach = Approach { text: "use rustls for the musl build", dependencies: &["reqwest"], ..Approach::default() };
        let hits = index.search(&approach, &Bars::default(), None, 6);

        assert_eq!(hits.iter().map(|hit| hit.decision.dependencies.clone()).collect::<Vec<_>>(), [["reqwest"]]);
        assert_eq!(hits[0].decision.to_string(), "the same words (85 %; words: musl, rustls; packages: reqwest)");
    }
}
