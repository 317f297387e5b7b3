//! Keeping an index in a file.
//!
//! The sources are the truth: the file is used only as long as they are what it was made of, and is made anew whenever
//! there is a doubt. Losing it costs time and nothing else.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use proctor_process::durable::{self, Durability, DurableError};
use sha2::{Digest, Sha256};

use super::{Fingerprint, Index};

/// A source that was changed shorter than this before the index was written could be changed again within the same tick of
/// the file system's clock, and look the same.
const SETTLED: Duration = Duration::from_secs(1);

/// Where an index came from.
#[derive(Debug)]
pub enum Origin {
    /// From its file.
    Kept,
    /// From the sources; it was written to its file.
    Made,
    /// From the sources; it could not be written, so the next one has to be made as well.
    MadeInVain(DurableError),
}

/// What sources are known by without being read: their place, size and times, and which file it is. A change of the
/// contents changes the time of change, which nobody can set.
pub fn fingerprint(sources: &[&Path]) -> Fingerprint {
    let mut sum = Sha256::new();
    for source in sources {
        sum.update(source.as_os_str().as_encoded_bytes());
        let stamp = fs::metadata(source).ok().map(|found| {
            let times = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
            (found.dev(), found.ino(), found.size(), times)
        });
        sum.update(format!("\0{stamp:?}\0"));
    }
    Fingerprint(sum.finalize().into())
}

/// The index of these sources, from its file if that is of now, or else from `make`, which reads the sources.
///
/// # Errors
/// What `make` says.
pub fn open<E>(file: &Path, sources: &[&Path], make: impl FnOnce(Fingerprint) -> Result<Index, E>) -> Result<(Index, Origin), E> {
    // Before the sources are read: what changes meanwhile makes the next one who asks doubt.
    let now = fingerprint(sources);
    if let Some(kept) = kept(file, sources, now) {
        return Ok((kept, Origin::Kept));
    }
    let index = make(now)?;
    let origin = match durable::write(file, index.as_bytes(), Durability::Renamed) {
        Ok(()) => Origin::Made,
        Err(error) => Origin::MadeInVain(error),
    };
    Ok((index, origin))
}

/// The index in the file, unless anything speaks against it.
fn kept(file: &Path, sources: &[&Path], now: Fingerprint) -> Option<Index> {
    let written = fs::metadata(file).ok().filter(Metadata::is_file)?.modified().ok()?;
    let is_settled = |source: &&Path| fs::metadata(source).map_or(true, |found| is_settled(&found, written));
    if !sources.iter().all(is_settled) {
        return None;
    }
    let index = Index::from_bytes(fs::read(file).ok()?).ok()?;
    (index.fingerprint() == now).then_some(index)
}

fn is_settled(source: &Metadata, written: SystemTime) -> bool {
    let seconds = u64::try_from(source.ctime()).unwrap_or_default();
    let changed = SystemTime::UNIX_EPOCH + Duration::new(seconds, u32::try_from(source.ctime_nsec()).unwrap_or_default());
    written.duration_since(changed).is_ok_and(|age| age >= SETTLED)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::fs::File;
    use std::path::PathBuf;

    use super::*;
    use crate::Polarity;
    use crate::matching::{Findable, Place};

    struct Shelf {
        folder: tempfile::TempDir,
    }

    impl Shelf {
        fn new() -> Self {
            let shelf = Self { folder: tempfile::tempdir().unwrap() };
            shelf.write("route: switch to a plastic frame\n");
            shelf
        }

        fn source(&self) -> PathBuf {
            self.folder.path().join("fails.md")
        }

        fn file(&self) -> PathBuf {
            self.folder.path().join("index")
        }

        fn write(&self, text: &str) {
            durable::write(&self.source(), text.as_bytes(), Durability::Renamed).unwrap();
        }

        /// Opens the index, and says whether the sources had to be read for it.
        fn open(&self) -> (Index, Origin) {
            let make = |fingerprint| {
                let text = fs::read_to_string(self.source()).unwrap();
                let records = text.lines().enumerate().map(|(number, route)| {
                    let place = Place { source: 0, line: 0, offset: number as u64, length: 1 };
                    let polarity = Polarity::Fails;
                    let files = &[];
                    (place, Findable { polarity, route, trap: "", observation: "", files, dependencies: &[], project: None })
                });
                Ok::<_, Infallible>(Index::build(fingerprint, records))
            };
            open(&self.file(), &[&self.source()], make).unwrap()
        }

        /// Makes the file of the index look as if it had been written so long after now.
        fn let_pass(&self, seconds: u64) {
            let file = File::options().write(true).open(self.file()).unwrap();
            let changed = fs::metadata(self.source()).unwrap().modified().unwrap();
            file.set_modified(changed + Duration::from_secs(seconds)).unwrap();
        }
    }

    #[test]
    fn an_index_is_kept_as_long_as_its_sources_are_the_same() {
        let shelf = Shelf::new();
        assert!(matches!(shelf.open().1, Origin::Made));
        shelf.let_pass(5);

        assert!(matches!(shelf.open().1, Origin::Kept));

        shelf.write("route: switch to a plastic frame\nroute: glue it\n");
        let (index, origin) = shelf.open();
        assert!(matches!(origin, Origin::Made));
        assert_eq!(index.len(), 2);
    }

    #[test]
    fn a_change_in_the_same_tick_as_the_index_is_not_missed() {
        let shelf = Shelf::new();
        shelf.open();

        // Nothing changed, and nobody can tell.
        assert!(matches!(shelf.open().1, Origin::Made));
    }

    #[test]
    fn a_source_of_the_same_size_and_time_is_told_by_its_time_of_change() {
        let shelf = Shelf::new();
        let time = fs::metadata(shelf.source()).unwrap().modified().unwrap();
        shelf.open();
        shelf.let_pass(5);

        shelf.write("route: switch to a wooden  frame\n");
        File::options().write(true).open(shelf.source()).unwrap().set_modified(time).unwrap();

        assert!(matches!(shelf.open().1, Origin::Made));
    }

    #[test]
    fn a_damaged_index_is_made_anew() {
        let shelf = Shelf::new();
        let whole = shelf.open().0.as_bytes().to_vec();
        let middle = whole.len() / 2;
        let mut changed = whole.clone();
        changed[middle] ^= 1;
        for damaged in [&b""[..], b"not an index", &whole[..middle], &changed] {
            durable::write(&shelf.file(), damaged, Durability::Renamed).unwrap();
            shelf.let_pass(5);

            let (index, origin) = shelf.open();

            assert!(matches!(origin, Origin::Made));
            assert_eq!(index.as_bytes(), whole);
        }
    }

    #[test]
    fn a_source_that_went_away_is_a_change() {
        let shelf = Shelf::new();
        let before = fingerprint(&[&shelf.source()]);

        fs::remove_file(shelf.source()).unwrap();

        assert_ne!(fingerprint(&[&shelf.source()]), before);
        assert_eq!(fingerprint(&[&shelf.source()]), fingerprint(&[&shelf.source()]));
    }

    #[test]
    fn an_index_that_cannot_be_kept_is_used_all_the_same() {
        let shelf = Shelf::new();
        fs::create_dir(shelf.file()).unwrap();

        let (index, origin) = shelf.open();

        assert!(matches!(origin, Origin::MadeInVain(_)));
        assert_eq!(index.len(), 1);
    }
}
