//! Vectors in a file, under the model and the text that they are of.
//!
//! The file begins with what it is of; then follow entries of one length: the text's hash, the vector, and a sum of both. New ones are
//! appended in one write. What a writer that was killed left half is not an entry, nor is one whose sum is another: they are
//! passed over, and the file is made anew with the next vectors.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use proctor_process::durable::{self, Durability};
use sha2::{Digest, Sha256};

use super::{ModelId, Vector};

/// The first bytes of a file; the number is that of its form.
const MAGIC: &[u8; 8] = b"prvec\0\0\x01";
/// The magic, the model and the number of values in a vector.
const HEAD: usize = 8 + 32 + 4;
const KEY: usize = 16;
const SUM: usize = 4;

/// Names a text: the beginning of its SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextId(pub(crate) [u8; KEY]);

impl TextId {
    /// The id of a text.
    pub fn of(text: &str) -> Self {
        let mut id = [0; KEY];
        id.copy_from_slice(&Sha256::digest(text.as_bytes())[..KEY]);
        Self(id)
    }
}

/// The vectors of one model, as they are in a file.
#[derive(Debug)]
pub struct Vectors {
    /// None if they are held in memory alone.
    file: Option<PathBuf>,
    model: ModelId,
    width: usize,
    positions: HashMap<TextId, usize>,
    values: Vec<f32>,
    /// The file has something in it that is no entry.
    is_damaged: bool,
}

impl Vectors {
    /// What a folder keeps of a model's vectors. A file that can't be read is as good as none; without a folder nothing is kept.
    pub fn open(folder: Option<&Path>, model: ModelId) -> Self {
        let file = folder.map(|folder| folder.join(format!("{}.vectors", &model.to_string()[..32])));
        let bytes = file.as_ref().and_then(|file| fs::read(file).ok()).unwrap_or_default();
        let mut vectors = Self { file, model, width: 0, positions: HashMap::new(), values: Vec::new(), is_damaged: false };
        vectors.is_damaged = !bytes.is_empty() && !vectors.take_all(&bytes);
        vectors
    }

    /// Takes what is whole; says whether that was all.
    fn take_all(&mut self, bytes: &[u8]) -> bool {
        let Some((head, entries)) = bytes.split_at_checked(HEAD) else { return false };
        if &head[..8] != MAGIC || head[8..40] != *self.model.bytes() {
            return false;
        }
        let width = u32::from_le_bytes([head[40], head[41], head[42], head[43]]) as usize;
        if width == 0 || width > 65_536 {
            return false;
        }
        self.width = width;
        let size = KEY + 4 * width + SUM;
        self.values.reserve(entries.len() / size * width);
        let entries = entries.chunks_exact(size);
        let mut is_whole = entries.remainder().is_empty();
        for entry in entries {
            let (said, sum) = entry.split_at(size - SUM);
            if sum == sum_of(said) {
                let values = said[KEY..].chunks_exact(4).map(|value| f32::from_le_bytes([value[0], value[1], value[2], value[3]]));
                let mut id = [0; KEY];
                id.copy_from_slice(&said[..KEY]);
                self.positions.insert(TextId(id), self.values.len());
                self.values.extend(values);
            } else {
                is_whole = false;
            }
        }
        is_whole
    }

    /// The vector of a text, if it was made.
    pub fn get(&self, text: TextId) -> Option<&[f32]> {
        let start = *self.positions.get(&text)?;
        self.values.get(start..start + self.width)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Whether something in the file is no vector. It goes with the next that is kept.
    pub fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// The file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Takes new vectors, and keeps them in the file.
    ///
    /// # Errors
    /// The file can't be written; the vectors can be used all the same, and have to be made again the next time.
    pub fn add(&mut self, new: Vec<(TextId, Vector)>) -> io::Result<()> {
        let width = if self.positions.is_empty() { new.first().map_or(0, |(_, vector)| vector.len()) } else { self.width };
        let is_first = self.positions.is_empty();
        self.width = width;
        let mut bytes = Vec::new();
        for (id, vector) in new.into_iter().filter(|(_, vector)| vector.len() == width && width > 0) {
            if self.positions.contains_key(&id) {
                continue;
            }
            put(&mut bytes, id, &vector);
            self.positions.insert(id, self.values.len());
            self.values.extend(vector);
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let Some(file) = self.file.clone() else { return Ok(()) };
        // Another process may have begun the file meanwhile: what it wrote is vectors of the same model.
        if self.is_damaged || is_first && !file.exists() {
            return self.write_anew(&file);
        }
        match OpenOptions::new().append(true).open(&file).and_then(|file| append(file, &bytes)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.write_anew(&file),
            other => other,
        }
    }

    fn write_anew(&mut self, file: &Path) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(HEAD + self.len() * (KEY + 4 * self.width + SUM));
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(self.model.bytes());
        bytes.extend_from_slice(&(self.width as u32).to_le_bytes());
        let mut ids: Vec<(&TextId, &usize)> = self.positions.iter().collect();
        ids.sort_unstable_by_key(|(_, start)| **start);
        for (id, start) in ids {
            put(&mut bytes, *id, &self.values[*start..start + self.width]);
        }
        if let Some(folder) = file.parent() {
            durable::private_folder(folder).map_err(io::Error::other)?;
        }
        durable::write(file, &bytes, Durability::Renamed).map_err(io::Error::other)?;
        self.is_damaged = false;
        Ok(())
    }
}

/// One write: two processes that append at once write one after the other.
fn append(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)
}

fn put(bytes: &mut Vec<u8>, id: TextId, vector: &[f32]) {
    let start = bytes.len();
    bytes.extend_from_slice(&id.0);
    vector.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
    let sum = sum_of(&bytes[start..]);
    bytes.extend_from_slice(&sum);
}

/// FNV-1a by words of 8 bytes: it tells a torn or changed entry, and costs nothing beside reading it.
fn sum_of(bytes: &[u8]) -> [u8; SUM] {
    let mut sum: u64 = 0xcbf2_9ce4_8422_2325;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        sum = (sum ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01b3);
        sum ^= sum >> 32;
    }
    (sum as u32).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> ModelId {
        ModelId::of(&["fake"])
    }

    fn folder_with(texts: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mut vectors = Vectors::open(Some(folder.path()), model());
        for text in texts {
            vectors.add(vec![(TextId::of(text), vec![text.len() as f32, 1.0])]).unwrap();
        }
        folder
    }

    #[test]
    fn vectors_are_there_the_next_time() {
        let folder = folder_with(&["a", "bb"]);

        let vectors = Vectors::open(Some(folder.path()), model());

        assert_eq!(vectors.get(TextId::of("bb")), Some(&[2.0, 1.0][..]));
        assert_eq!((vectors.len(), vectors.get(TextId::of("c")), vectors.is_damaged()), (2, None, false));
        assert!(Vectors::open(Some(folder.path()), ModelId::of(&["another"])).is_empty());
    }

    #[test]
    fn two_writers_lose_nothing_of_each_other() {
        let folder = folder_with(&["a"]);
        let (mut one, mut other) = (Vectors::open(Some(folder.path()), model()), Vectors::open(Some(folder.path()), model()));

        one.add(vec![(TextId::of("bb"), vec![2.0, 1.0])]).unwrap();
        other.add(vec![(TextId::of("ccc"), vec![3.0, 1.0])]).unwrap();

        assert_eq!(Vectors::open(Some(folder.path()), model()).len(), 3);
    }

    #[test]
    fn what_is_damaged_is_passed_over_and_goes_with_the_next_write() {
        let file = |folder: &tempfile::TempDir| Vectors::open(Some(folder.path()), model()).path().unwrap().to_path_buf();
        let whole = {
            let folder = folder_with(&["a", "bb", "ccc"]);
            fs::read(file(&folder)).unwrap()
        };
        for length in 1..whole.len() {
            let folder = tempfile::tempdir().unwrap();
            durable::write(&file(&folder), &whole[..length], Durability::Renamed).unwrap();

            let mut vectors = Vectors::open(Some(folder.path()), model());
            let kept = vectors.len();
            vectors.add(vec![(TextId::of("dddd"), vec![4.0, 1.0])]).unwrap();

            let again = Vectors::open(Some(folder.path()), model());
            assert_eq!((again.len(), again.is_damaged()), (kept + 1, false), "{length}");
        }
        let folder = tempfile::tempdir().unwrap();
        let mut changed = whole.clone();
        changed[HEAD + KEY] ^= 1;
        durable::write(&file(&folder), &changed, Durability::Renamed).unwrap();
        let vectors = Vectors::open(Some(folder.path()), model());
        assert_eq!((vectors.len(), vectors.is_damaged(), vectors.get(TextId::of("a"))), (2, true, None));
    }
}
