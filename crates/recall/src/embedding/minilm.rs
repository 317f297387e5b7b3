//! The small model of meaning that runs in this process: all-MiniLM-L6-v2, with weights of 8 bits.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rten::{Model, Value};
use sha2::{Digest, Sha256};

use super::pieces::Pieces;
use super::{EmbedError, Embedder, ModelId, Vector, unit};

/// The files of the model and the SHA-256 of each. The build script knows the same.
const FILES: [(&str, &str); 2] = [
    ("model.onnx", "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"),
    ("tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
];

/// The model. It is read when it is asked for the first time: whoever doesn't ask doesn't wait.
pub struct MiniLm {
    /// Where its files are, if they are not in this program.
    folder: Option<PathBuf>,
    loaded: OnceLock<Loaded>,
}

struct Loaded {
    model: Model,
    pieces: Pieces,
}

impl MiniLm {
    /// What its vectors are kept under.
    pub fn id() -> ModelId {
        ModelId::of(&[FILES[0].1, FILES[1].1])
    }

    /// The model that is part of this program; `None` if it was built without.
    pub fn bundled() -> Option<&'static Self> {
        static BUNDLED: MiniLm = MiniLm { folder: None, loaded: OnceLock::new() };
        cfg!(bundled_model).then_some(&BUNDLED)
    }

    /// The model whose files are in a folder. They are checked when they are read.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { folder: Some(folder), loaded: OnceLock::new() }
    }

    /// Reads the model, unless that was done.
    ///
    /// # Errors
    /// A file is missing, or is not what it should be.
    pub fn check(&self) -> Result<(), EmbedError> {
        self.loaded().map(|_| ())
    }

    fn loaded(&self) -> Result<&Loaded, EmbedError> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let loaded = match &self.folder {
            Some(folder) => Loaded::read(folder)?,
            None => Loaded::bundled()?,
        };
        Ok(self.loaded.get_or_init(|| loaded))
    }
}

impl Loaded {
    fn bundled() -> Result<Self, EmbedError> {
        let unreadable = || EmbedError::Unreadable { path: PathBuf::from("this program") };
        #[cfg(bundled_model)]
        {
            static MODEL: &[u8] = include_bytes!(concat!(env!("PROCTOR_MODEL_FOLDER"), "/model.onnx"));
            static TOKENIZER: &[u8] = include_bytes!(concat!(env!("PROCTOR_MODEL_FOLDER"), "/tokenizer.json"));
            let model = Model::load_static_slice(MODEL).map_err(|_| unreadable())?;
            Ok(Self { model, pieces: Pieces::read(TOKENIZER).ok_or_else(unreadable)? })
        }
        #[cfg(not(bundled_model))]
        Err(unreadable())
    }

    fn read(folder: &Path) -> Result<Self, EmbedError> {
        let [model, tokenizer] = FILES.map(|(name, sum)| checked(&folder.join(name), sum));
        let model = Model::load(model?).map_err(|_| EmbedError::Unreadable { path: folder.join(FILES[0].0) })?;
        let pieces = Pieces::read(&tokenizer?).ok_or_else(|| EmbedError::Unreadable { path: folder.join(FILES[1].0) })?;
        Ok(Self { model, pieces })
    }

    fn vector(&self, text: &str) -> Option<Vector> {
        let numbers: Vec<i32> = self.pieces.numbers(text).into_iter().filter_map(|number| i32::try_from(number).ok()).collect();
        let length = numbers.len();
        let mut inputs = Vec::new();
        for (name, values) in [("input_ids", numbers), ("attention_mask", vec![1; length]), ("token_type_ids", vec![0; length])] {
            if let Some(node) = self.model.find_node(name) {
                inputs.push((node, Value::from_shape([1, length], values).ok()?.into()));
            }
        }
        let output = *self.model.output_ids().first()?;
        let [states] = self.model.run_n(inputs, [output], None).ok()?;
        let ([_, rows, width], states) = states.into_shape_vec::<f32, 3>().ok()?;
        let mut sum = vec![0.0; width];
        for state in states.chunks_exact(width).take(rows) {
            sum.iter_mut().zip(state).for_each(|(sum, value)| *sum += value);
        }
        unit(sum)
    }
}

impl Embedder for MiniLm {
    fn id(&self) -> ModelId {
        Self::id()
    }

    /// One text after the other: they are of different lengths, and padding would cost more than it saves.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>, EmbedError> {
        let loaded = self.loaded()?;
        texts.iter().map(|text| loaded.vector(text).ok_or(EmbedError::NoVector)).collect()
    }
}

fn checked(path: &Path, wanted: &str) -> Result<Vec<u8>, EmbedError> {
    let path = || path.to_path_buf();
    let bytes = fs::read(path()).map_err(|source| EmbedError::Missing { path: path(), source })?;
    let found: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    if found == wanted { Ok(bytes) } else { Err(EmbedError::Corrupt { path: path() }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedding::cosine;

    #[test]
    fn a_model_whose_file_is_missing_or_corrupt_is_named_and_gives_no_vector() {
        let folder = tempfile::tempdir().unwrap();
        let model = MiniLm::in_folder(folder.path().to_owned());
        assert!(matches!(model.embed(&["text"]), Err(EmbedError::Missing { path, .. }) if path.ends_with("model.onnx")));

        let file = folder.path().join("model.onnx");
        proctor_process::durable::write(&file, b"half", proctor_process::durable::Durability::Renamed).unwrap();

        assert!(matches!(model.check(), Err(EmbedError::Corrupt { path }) if path == file));
    }

    #[test]
    fn the_model_knows_what_means_the_same() {
        let Some(model) = MiniLm::bundled() else { return };
        let texts = ["the tests share one database", "all test cases use the same database", "glue the frame twice"];

        let vectors = model.embed(&texts).unwrap();

        assert_eq!(vectors[0].len(), 384);
        assert!((cosine(&vectors[0], &vectors[0]) - 1.0).abs() < 1e-5);
        assert!(cosine(&vectors[0], &vectors[1]) > 0.7, "{}", cosine(&vectors[0], &vectors[1]));
        assert!(cosine(&vectors[0], &vectors[2]) < 0.3, "{}", cosine(&vectors[0], &vectors[2]));
    }
}
