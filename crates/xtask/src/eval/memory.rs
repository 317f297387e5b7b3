//! `cargo xtask eval memory`: how well records are found, by our rule and by those that it is measured against.

use std::collections::BTreeSet;
use std::path::Path;

use proctor_recall::Polarity;
use proctor_recall::matching::{Approach, Bars, Findable, Fingerprint, Index, Meaning, Place};
use serde_json::json;

use super::baseline::{self, Generation};
use super::figures::Figures;
use super::meanings::Meanings;
use super::rows::{self, Part, Pooled, Row};

/// How many records of each polarity are shown to who asks.
const SHOWN: usize = 6;

/// How the figures are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A table for people.
    Table,
    /// A table, and every row that went wrong in the part that may be tuned by.
    Losses,
    /// One object.
    Json,
}

/// A way of finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Lexical,
    /// By words and by meaning; without a model there is no such way.
    Hybrid,
    Reference(Generation),
}

impl Way {
    const ALL: [Self; 5] = [
        Self::Lexical,
        Self::Hybrid,
        Self::Reference(Generation::First),
        Self::Reference(Generation::Second),
        Self::Reference(Generation::Third),
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Lexical => "lexical",
            Self::Hybrid => "hybrid",
            Self::Reference(Generation::First) => "G1",
            Self::Reference(Generation::Second) => "G2",
            Self::Reference(Generation::Third) => "G3",
        }
    }
}

/// Finds for every row in every way, and says how well it went.
pub(crate) fn report(root: &Path, form: Form) -> anyhow::Result<String> {
    let pool = rows::pool(root)?;
    let rows = rows::rows(root, &pool)?;
    let bench = Bench::new(&pool, Meanings::make(&pool, &rows)?);
    Ok(match form {
        Form::Table => table(&bench, &rows),
        Form::Losses => table(&bench, &rows) + &losses(&bench, &rows),
        Form::Json => format!("{:#}\n", object(&bench, &rows)),
    })
}

/// The pool, ready to be searched in every way.
struct Bench<'a> {
    pool: &'a [Pooled],
    index: Index,
    subjects: Vec<BTreeSet<String>>,
    meanings: Option<Meanings>,
}

impl<'a> Bench<'a> {
    fn new(pool: &'a [Pooled], meanings: Option<Meanings>) -> Self {
        let borrowed: Vec<[Vec<&str>; 2]> = pool.iter().map(|record| [texts(&record.files), texts(&record.dependencies)]).collect();
        let records = pool.iter().zip(&borrowed).map(|(record, [files, dependencies])| {
            let polarity = if record.works { Polarity::Works } else { Polarity::Fails };
            let (route, trap, observation) = (&record.route, &record.trap, &record.observation);
            let findable = Findable { polarity, route, trap, observation, files, dependencies, project: Some(&record.project) };
            (Place::default(), findable)
        });
        let index = Index::build(Fingerprint::default(), records);
        Self { pool, index, subjects: pool.iter().map(|record| baseline::subject(&record.route)).collect(), meanings }
    }

    /// The ids of the records that are shown for a row, the best first.
    fn found(&self, row: &Row, way: Way) -> Vec<&'a str> {
        match way {
            Way::Lexical => self.found_by_ours(row, &Bars::default(), None),
            Way::Hybrid => self.found_by_meaning(row),
            Way::Reference(generation) => self.found_by_reference(row, generation),
        }
    }

    fn found_by_meaning(&self, row: &Row) -> Vec<&'a str> {
        let bars = Bars::of_minilm();
        let Some(cosines) = self.meanings.as_ref().and_then(|meanings| meanings.cosines(row)) else {
            return self.found_by_ours(row, &Bars::default(), None);
        };
        let cosine = |number: u32| cosines.whole.get(number as usize).copied();
        let near: Vec<u32> = (0..self.pool.len() as u32).filter(|number| cosine(*number) >= Some(bars.least_meaning())).collect();
        self.found_by_ours(row, &bars, Some(&Meaning { near: &near, cosine: &cosine }))
    }

    fn found_by_ours(&self, row: &Row, bars: &Bars, meaning: Option<&Meaning<'_>>) -> Vec<&'a str> {
        let approach = Approach { text: &row.approach, files: &texts(&row.files), dependencies: &[], project: Some(&row.project) };
        let hits = self.index.search(&approach, bars, meaning, SHOWN);
        hits.iter().filter_map(|hit| self.pool.get(hit.number as usize)).map(|record| record.id.as_str()).collect()
    }

    /// The reference compares with the route alone, puts the same project first and then the greater score.
    fn found_by_reference(&self, row: &Row, generation: Generation) -> Vec<&'a str> {
        let approach = baseline::subject(&row.approach);
        let cosines = self.meanings.as_ref().and_then(|meanings| meanings.cosines(row));
        let scored = self.pool.iter().zip(&self.subjects).enumerate().filter_map(|(number, (record, route))| {
            let cosine = cosines.as_ref().and_then(|cosines| cosines.route.get(number)).copied();
            let lexical = baseline::lexical(&approach, route, generation);
            baseline::is_hit(lexical, cosine, generation).then(|| (record, cosine.map_or(lexical, |cosine| lexical.max(cosine))))
        });
        let mut hits: Vec<(&Pooled, f32)> = scored.collect();
        let is_elsewhere = |record: &Pooled| record.project != row.project;
        hits.sort_by(|(one, first), (other, second)| is_elsewhere(one).cmp(&is_elsewhere(other)).then(second.total_cmp(first)));
        let mut left = [SHOWN; 2];
        hits.retain(|(record, _)| {
            let left = &mut left[usize::from(record.works)];
            let is_shown = *left > 0;
            *left = left.saturating_sub(1);
            is_shown
        });
        hits.into_iter().map(|(record, _)| record.id.as_str()).collect()
    }

    fn figures<'r>(&self, rows: impl Iterator<Item = &'r Row>, way: Way) -> Figures {
        let mut figures = Figures::default();
        for row in rows {
            figures.add(row, &self.found(row, way));
        }
        figures
    }
}

fn texts(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}

const PARTS: [(Part, &str); 2] = [(Part::Tuning, "tuning"), (Part::HeldOut, "held out")];

fn table(bench: &Bench<'_>, rows: &[Row]) -> String {
    let mut text = format!("{} records, {} rows\n\n", bench.pool.len(), rows.len());
    text += "part      way      rows  recall@5  served  precision  false interruptions\n";
    for (part, part_name) in PARTS {
        for way in Way::ALL {
            let figures = bench.figures(rows.iter().filter(|row| row.part() == part), way);
            let percents = [figures.recall(), figures.served(), figures.precision(), figures.interruptions()].map(|share| 100.0 * share);
            let [recall, served, precision, interruptions] = percents;
            text += &format!(
                "{part_name:<9} {:<8} {:>4}  {recall:>6.1} % {served:>5.1} %  {precision:>7.1} %  {interruptions:>17.1} %\n",
                way.name(),
                figures.rows()
            );
        }
    }
    if bench.meanings.is_none() {
        text += "\nThis was built without the model of meaning: hybrid is lexical, and G1 to G3 go without it. `.ci/model` fetches it.\n";
    }
    text + &by_kind(bench, rows)
}

/// Our figures by kind of row, over both parts.
fn by_kind(bench: &Bench<'_>, rows: &[Row]) -> String {
    let kinds: BTreeSet<&str> = rows.iter().map(|row| row.kind.as_str()).collect();
    let mut text = "\nhybrid, by kind (both parts)   rows  recall@5  false interruptions\n".to_owned();
    for kind in kinds {
        let figures = bench.figures(rows.iter().filter(|row| row.kind == kind), Way::Hybrid);
        let (recall, interruptions) = (100.0 * figures.recall(), 100.0 * figures.interruptions());
        text += &format!("{kind:<30} {:>4}  {recall:>6.1} %  {interruptions:>17.1} %\n", figures.rows());
    }
    text
}

/// What went wrong in the part that may be tuned by. The held-out part is not looked at row by row.
fn losses(bench: &Bench<'_>, rows: &[Row]) -> String {
    let mut text = "\nlosses of hybrid in the tuning part\n".to_owned();
    for row in rows.iter().filter(|row| row.part() == Part::Tuning) {
        let found = bench.found(row, Way::Hybrid);
        let missed: Vec<&str> = row.relevant.iter().map(String::as_str).filter(|id| !found.contains(id)).collect();
        let wrong: Vec<&str> = found.iter().copied().filter(|id| !row.relevant.contains(*id)).collect();
        if !missed.is_empty() || !wrong.is_empty() {
            text += &format!("{} {}: missed {missed:?}, wrong {wrong:?}\n    {}\n", row.id, row.kind, row.approach);
        }
    }
    text
}

fn object(bench: &Bench<'_>, rows: &[Row]) -> serde_json::Value {
    let mut entries = Vec::new();
    for (part, part_name) in PARTS {
        for way in Way::ALL {
            let figures = bench.figures(rows.iter().filter(|row| row.part() == part), way);
            entries.push(json!({
                "part": part_name, "way": way.name(), "rows": figures.rows(), "recall_at_5": figures.recall(),
                "served": figures.served(), "precision": figures.precision(), "false_interruptions": figures.interruptions(),
            }));
        }
    }
    json!({"version": 1, "records": bench.pool.len(), "model": bench.meanings.is_some(), "figures": entries})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_repository() -> (Vec<Pooled>, Vec<Row>) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let pool = rows::pool(root).unwrap();
        let rows = rows::rows(root, &pool).unwrap();
        (pool, rows)
    }

    #[test]
    fn rows_are_many_of_many_languages_and_a_third_asks_for_nothing() {
        let (_, rows) = of_repository();
        let languages: BTreeSet<&str> = rows.iter().map(|row| row.language.as_str()).collect();
        let without = rows.iter().filter(|row| row.relevant.is_empty()).count();

        assert!(rows.len() >= 300, "{}", rows.len());
        assert!(languages.is_superset(&BTreeSet::from(["de", "en", "es", "fr", "ja"])), "{languages:?}");
        assert!((rows.len() / 4..rows.len() / 2).contains(&without), "{without}");
    }

    #[test]
    fn on_held_out_rows_ours_finds_more_and_interrupts_less_than_the_reference() {
        let (pool, rows) = of_repository();
        let bench = Bench::new(&pool, None);
        let figures = |way| bench.figures(rows.iter().filter(|row| row.part() == Part::HeldOut), way);

        let ours = figures(Way::Lexical);
        let reference = figures(Way::Reference(Generation::Third));

        assert!(ours.recall() > 0.70 && ours.recall() > reference.recall(), "{ours:?} {reference:?}");
        assert!(ours.interruptions() <= 0.05 && ours.interruptions() < reference.interruptions(), "{ours:?} {reference:?}");
        assert!(ours.precision() > reference.precision(), "{ours:?} {reference:?}");
    }

    #[test]
    fn losses_name_rows_of_the_tuning_part_alone() {
        let (pool, rows) = of_repository();
        let text = losses(&Bench::new(&pool, None), &rows);
        let held_out = rows.iter().filter(|row| row.part() == Part::HeldOut);

        assert!(text.lines().count() > 2, "{text}");
        for row in held_out {
            assert!(!text.contains(&format!("{} ", row.id)), "{}", row.id);
        }
    }
}
