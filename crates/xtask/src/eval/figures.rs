//! Figures of a way of finding, from what it found for each row.

use std::collections::BTreeSet;

use super::rows::Row;

/// How many records are looked at for recall.
const LOOKED_AT: usize = 5;

/// Sums over rows.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Figures {
    /// Rows with a relevant record.
    with: usize,
    /// Rows without one.
    without: usize,
    /// The sum, over rows with relevant records, of the share of those that are among the first five.
    recall: f64,
    /// Rows with relevant records of which one is among the first five.
    served: usize,
    /// Records that were shown.
    shown: usize,
    /// Those of them that are relevant.
    right: usize,
    /// Rows without a relevant record that got one all the same.
    interrupted: usize,
}

impl Figures {
    /// Adds a row and the ids that were found for it, the best first.
    pub(super) fn add(&mut self, row: &Row, found: &[&str]) {
        let is_right = |id: &&&str| row.relevant.contains(**id);
        self.shown += found.len();
        self.right += found.iter().filter(is_right).count();
        if row.relevant.is_empty() {
            self.without += 1;
            self.interrupted += usize::from(!found.is_empty());
            return;
        }
        let first: BTreeSet<&str> = found.iter().take(LOOKED_AT).copied().collect();
        let among = first.iter().filter(|id| row.relevant.contains(**id)).count();
        self.with += 1;
        self.served += usize::from(among > 0);
        self.recall += among as f64 / row.relevant.len().min(LOOKED_AT) as f64;
    }

    pub(super) fn rows(&self) -> usize {
        self.with + self.without
    }

    /// The average share of a row's relevant records that are among the first five.
    pub(super) fn recall(&self) -> f64 {
        self.recall / self.with.max(1) as f64
    }

    /// The share of rows with relevant records that got one of them among the first five.
    pub(super) fn served(&self) -> f64 {
        self.served as f64 / self.with.max(1) as f64
    }

    /// The share of shown records that are relevant.
    pub(super) fn precision(&self) -> f64 {
        self.right as f64 / self.shown.max(1) as f64
    }

    /// The share of rows without a relevant record that got any.
    pub(super) fn interruptions(&self) -> f64 {
        self.interrupted as f64 / self.without.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(relevant: &[&str]) -> Row {
        Row {
            id: "q".to_owned(),
            kind: String::new(),
            language: String::new(),
            project: String::new(),
            approach: String::new(),
            files: Vec::new(),
            relevant: relevant.iter().map(|id| (*id).to_owned()).collect(),
        }
    }

    #[test]
    fn figures_count_what_is_found_missed_and_shown_in_vain() {
        let mut figures = Figures::default();

        figures.add(&row(&["a", "b"]), &["x", "a"]);
        figures.add(&row(&["c"]), &[]);
        figures.add(&row(&["d"]), &["1", "2", "3", "4", "5", "d"]);
        figures.add(&row(&[]), &["x"]);
        figures.add(&row(&[]), &[]);

        assert_eq!(figures.rows(), 5);
        assert!((figures.recall() - 0.5 / 3.0).abs() < 1e-9, "{figures:?}");
        assert!((figures.served() - 1.0 / 3.0).abs() < 1e-9, "{figures:?}");
        assert!((figures.precision() - 2.0 / 9.0).abs() < 1e-9, "{figures:?}");
        assert!((figures.interruptions() - 0.5).abs() < 1e-9, "{figures:?}");
    }
}
