//! The rows and records of `evals/memory`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// A record of the pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pooled {
    pub(super) id: String,
    pub(super) works: bool,
    pub(super) project: String,
    pub(super) route: String,
    pub(super) trap: String,
    pub(super) observation: String,
    pub(super) files: Vec<String>,
    /// Names without versions.
    pub(super) dependencies: Vec<String>,
}

/// Something that somebody is about to try, with the records that speak about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) language: String,
    pub(super) project: String,
    pub(super) approach: String,
    pub(super) files: Vec<String>,
    pub(super) relevant: BTreeSet<String>,
}

/// Which part a row belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Bars and lists of words may be chosen by it.
    Tuning,
    /// Nothing is chosen by it.
    HeldOut,
}

impl Row {
    /// A third of the rows is held out: those for whose id the first byte of the SHA-256 can be divided by three.
    pub(super) fn part(&self) -> Part {
        if Sha256::digest(self.id.as_bytes())[0].is_multiple_of(3) { Part::HeldOut } else { Part::Tuning }
    }
}

/// Reads the records of the pool.
pub(super) fn pool(root: &Path) -> anyhow::Result<Vec<Pooled>> {
    lines(&root.join("evals/memory/records.jsonl"), pooled)
}

/// Reads the rows, and sees to it that every record that they name is in the pool.
pub(super) fn rows(root: &Path, pool: &[Pooled]) -> anyhow::Result<Vec<Row>> {
    let rows = lines(&root.join("evals/memory/rows.jsonl"), row)?;
    let known: BTreeSet<&str> = pool.iter().map(|record| record.id.as_str()).collect();
    ensure!(known.len() == pool.len(), "two records of the pool have the same id");
    let ids: BTreeSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    ensure!(ids.len() == rows.len(), "two rows have the same id");
    for row in &rows {
        let unknown = row.relevant.iter().find(|id| !known.contains(id.as_str()));
        ensure!(unknown.is_none(), "row {} names the record {unknown:?}, which is not in the pool", row.id);
    }
    Ok(rows)
}

fn lines<T>(path: &Path, read: impl Fn(&Value) -> anyhow::Result<T>) -> anyhow::Result<Vec<T>> {
    let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let numbered = text.lines().enumerate();
    let read = |(index, line): (usize, &str)| {
        let value = serde_json::from_str(line).context("read JSON");
        value.and_then(|value| read(&value)).with_context(|| format!("{}:{}", path.display(), index + 1))
    };
    numbered.map(read).collect()
}

fn pooled(value: &Value) -> anyhow::Result<Pooled> {
    let works = match text(value, "polarity")?.as_str() {
        "works" => true,
        "fails" => false,
        other => bail!("the polarity is `works` or `fails`, not `{other}`"),
    };
    let optional = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let (trap, observation) = (optional("trap"), optional("observation"));
    ensure!(works != trap.is_empty() && works == observation.is_empty(), "what works has a trap, what fails an observation");
    let without_version = |name: String| match name.rsplit_once('@') {
        Some((name, _)) if !name.is_empty() => name.to_owned(),
        Some(_) | None => name,
    };
    let dependencies = texts(value, "dependencies")?.into_iter().map(without_version).collect();
    let (id, project, route, files) = (text(value, "id")?, text(value, "project")?, text(value, "route")?, texts(value, "files")?);
    Ok(Pooled { id, works, project, route, trap, observation, files, dependencies })
}

fn row(value: &Value) -> anyhow::Result<Row> {
    Ok(Row {
        id: text(value, "id")?,
        kind: text(value, "kind")?,
        language: text(value, "language")?,
        project: text(value, "project")?,
        approach: text(value, "approach")?,
        files: texts(value, "files")?,
        relevant: texts(value, "relevant")?.into_iter().collect(),
    })
}

fn text(value: &Value, key: &str) -> anyhow::Result<String> {
    let text = value[key].as_str().filter(|text| !text.trim().is_empty());
    text.map(str::to_owned).with_context(|| format!("`{key}` is missing or empty"))
}

fn texts(value: &Value, key: &str) -> anyhow::Result<Vec<String>> {
    let list = value[key].as_array().with_context(|| format!("`{key}` is no list"))?;
    list.iter().map(|item| item.as_str().map(str::to_owned).with_context(|| format!("`{key}` holds something else than texts"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_is_held_out_by_the_id_alone() {
        let row = |number: usize| Row {
            id: format!("q{number:03}"),
            kind: String::new(),
            language: String::new(),
            project: String::new(),
            approach: String::new(),
            files: Vec::new(),
            relevant: BTreeSet::new(),
        };
        let held_out = (1..=300).filter(|number| row(*number).part() == Part::HeldOut).count();

        assert!((80..=120).contains(&held_out), "{held_out}");
        assert_eq!(row(1).part(), Row { approach: "something else".to_owned(), ..row(1) }.part());
    }

    #[test]
    fn a_record_that_lacks_its_other_half_is_refused() {
        let record = serde_json::json!({"id": "a", "polarity": "works", "project": "p", "route": "r", "files": [], "dependencies": []});

        assert!(pooled(&record).unwrap_err().to_string().contains("trap"));
    }

    #[test]
    fn the_version_is_taken_off_a_dependency() {
        let record = serde_json::json!({"id": "a", "polarity": "fails", "project": "p", "route": "r", "observation": "o",
            "files": [], "dependencies": ["react@18", "@scope/kit", "@scope/kit@2"]});

        assert_eq!(pooled(&record).unwrap().dependencies, ["react", "@scope/kit", "@scope/kit"]);
    }
}
