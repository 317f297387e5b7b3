//! What a text means, as a vector: two texts that mean the same have a cosine near 1.
//!
//! An [`Embedder`] makes vectors: [`MiniLm`] in this process. [`Vectors`] keeps them in a file, under the model and the text.
//! Where there is no vector, records are found by their words.

mod minilm;
mod pieces;
mod vectors;

use std::fmt;
use std::io;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

pub use minilm::MiniLm;
pub use vectors::{TextId, Vectors};

/// What makes vectors of texts.
pub trait Embedder: Send + Sync {
    /// Vectors of different models can't be compared, so they are kept apart by this.
    fn id(&self) -> ModelId;

    /// A vector of length 1 for each text, in their order.
    ///
    /// # Errors
    /// It can't be asked, or gave no use.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>, EmbedError>;
}

impl<E: Embedder + ?Sized> Embedder for &E {
    fn id(&self) -> ModelId {
        (**self).id()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>, EmbedError> {
        (**self).embed(texts)
    }
}

/// The text that stands for the meaning of a record: its route with what was seen. An approach speaks of the one or of the other,
/// and on the tuning rows the two as one text did better than the route alone, and than the nearer of the two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meant(String);

impl Meant {
    /// That of a record with these texts.
    pub fn of(route: &str, trap: &str, observation: &str) -> Self {
        Self(format!("{route}. {trap}{observation}"))
    }

    /// Names it.
    pub fn id(&self) -> TextId {
        TextId::of(&self.0)
    }

    /// Where the record points.
    ///
    /// # Errors
    /// The model can't be asked.
    pub fn vector(&self, embedder: &dyn Embedder) -> Result<Vector, EmbedError> {
        embedder.embed(&[&self.0])?.pop().ok_or(EmbedError::NoVector)
    }
}

/// A direction: of length 1.
pub type Vector = Vec<f32>;

/// Why there is no vector.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// A file of the model can't be read.
    #[error("the model's file {} can't be read", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file of the model has other contents than it should.
    #[error("{} is not the model's file: its SHA-256 is another", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
    },
    /// A file of the model has the right contents and can't be understood.
    #[error("the model in {} can't be loaded", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
    },
    /// The model gave no vector.
    #[error("the model gave no vector for a text")]
    NoVector,
}

/// Names a model for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelId([u8; 32]);

impl ModelId {
    /// The id of what these parts name together.
    pub fn of(parts: &[&str]) -> Self {
        Self(Sha256::digest(parts.join("\0")).into())
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for ModelId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// The same direction with length 1; `None` if it has none.
pub fn unit(mut values: Vec<f32>) -> Option<Vector> {
    let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
    if !length.is_finite() || length <= f32::EPSILON {
        return None;
    }
    values.iter_mut().for_each(|value| *value /= length);
    Some(values)
}

/// How alike two directions are, from -1 to 1; nothing like each other if they are not of the same model.
pub fn cosine(one: &[f32], other: &[f32]) -> f32 {
    if one.len() != other.len() {
        return 0.0;
    }
    // Eight sums side by side: additions of floats keep their order, so one sum alone would wait for each.
    let mut sums = [0.0_f32; 8];
    let (ones, others) = (one.chunks_exact(8), other.chunks_exact(8));
    let rest: f32 = ones.remainder().iter().zip(others.remainder()).map(|(one, other)| one * other).sum();
    for (ones, others) in ones.zip(others) {
        sums.iter_mut().zip(ones.iter().zip(others)).for_each(|(sum, (one, other))| *sum += one * other);
    }
    sums.iter().sum::<f32>() + rest
}
