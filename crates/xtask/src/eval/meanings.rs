//! What the model of meaning makes of the rows and records of `evals/memory`.

use std::collections::BTreeMap;

use proctor_recall::embedding::{Embedder, Meant, MiniLm, Vector, cosine};

use super::rows::{Pooled, Row};

/// The vectors of the pool, and those of the rows by their ids.
pub(super) struct Meanings {
    /// Of each record's route alone: the rules that ours is measured against compare with that.
    routes: Vec<Vector>,
    /// Of each record as ours sees it.
    wholes: Vec<Vector>,
    rows: BTreeMap<String, Vector>,
}

/// How alike a row and each record are.
pub(super) struct Cosines {
    pub(super) route: Vec<f32>,
    pub(super) whole: Vec<f32>,
}

impl Meanings {
    /// Asks the model about everything; `None` if this was built without.
    pub(super) fn make(pool: &[Pooled], rows: &[Row]) -> anyhow::Result<Option<Self>> {
        let Some(model) = MiniLm::bundled() else { return Ok(None) };
        let routes = model.embed(&pool.iter().map(|record| record.route.as_str()).collect::<Vec<_>>())?;
        let wholes = pool.iter().map(|record| Meant::of(&record.route, &record.trap, &record.observation).vector(&model));
        let wholes = wholes.collect::<Result<Vec<Vector>, _>>()?;
        let approaches = model.embed(&rows.iter().map(|row| row.approach.as_str()).collect::<Vec<_>>())?;
        let rows = rows.iter().map(|row| row.id.clone()).zip(approaches).collect();
        Ok(Some(Self { routes, wholes, rows }))
    }

    pub(super) fn cosines(&self, row: &Row) -> Option<Cosines> {
        let asked = self.rows.get(&row.id)?;
        let of = |vectors: &[Vector]| vectors.iter().map(|vector| cosine(vector, asked)).collect();
        Some(Cosines { route: of(&self.routes), whole: of(&self.wholes) })
    }
}
