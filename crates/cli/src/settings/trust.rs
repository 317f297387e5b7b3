//! Consent to a repository's sensitive settings: kept in its state folder as hashes of exactly the values that
//! were accepted, so that a changed value asks again and another branch's accepted values don't.

use std::path::{Path, PathBuf};

use proctor_process::durable::{self, Durability, DurableError};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Sensitive;

const FILE: &str = "trust.json";
const VERSION: u32 = 1;

/// Whether a repository's sensitive settings may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// It has none.
    NotNeeded,
    /// The user accepted exactly these.
    Given,
    /// The user has not.
    Missing,
}

/// The list of accepted values can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It can't be read.
    #[error("read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// It is not what we write.
    #[error("read {}: it is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Why it can't be read.
        source: serde_json::Error,
    },
    /// A newer Proctor wrote it; it may be read and must not be written.
    #[error("change {}: a newer Proctor wrote it (version {version})", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// It can't be written.
    #[error(transparent)]
    Unwritable(#[from] DurableError),
}

/// The file.
#[derive(Debug, Serialize, Deserialize)]
struct Accepted {
    version: u32,
    /// SHA-256 of the values, in hex.
    accepted: Vec<String>,
}

/// What the state folder says about `sensitive`; a repository without state has accepted nothing.
///
/// # Errors
/// The list can't be read.
pub fn consent(sensitive: &Sensitive, state: Option<&Path>) -> Result<Consent, TrustError> {
    if sensitive.is_harmless() {
        return Ok(Consent::NotNeeded);
    }
    let Some(state) = state else { return Ok(Consent::Missing) };
    let accepted = read(&state.join(FILE))?;
    Ok(if accepted.accepted.contains(&fingerprint(sensitive)) { Consent::Given } else { Consent::Missing })
}

/// Records that the user accepts exactly these values.
///
/// # Errors
/// The list can't be read or written.
pub fn accept(sensitive: &Sensitive, state: &Path) -> Result<(), TrustError> {
    let path = state.join(FILE);
    let mut accepted = read(&path)?;
    let fingerprint = fingerprint(sensitive);
    if accepted.accepted.contains(&fingerprint) {
        return Ok(());
    }
    accepted.accepted.push(fingerprint);
    write(&path, &accepted)
}

/// Takes back everything that was accepted.
///
/// # Errors
/// The list can't be read or written.
pub fn revoke(state: &Path) -> Result<(), TrustError> {
    let path = state.join(FILE);
    let mut accepted = read(&path)?;
    if accepted.accepted.is_empty() {
        return Ok(());
    }
    accepted.accepted.clear();
    write(&path, &accepted)
}

fn read(path: &Path) -> Result<Accepted, TrustError> {
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|source| TrustError::Damaged { path: path.to_owned(), source }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Accepted { version: VERSION, accepted: Vec::new() }),
        Err(source) => Err(TrustError::Unreadable { path: path.to_owned(), source }),
    }
}

fn write(path: &Path, accepted: &Accepted) -> Result<(), TrustError> {
    if accepted.version > VERSION {
        return Err(TrustError::Newer { path: path.to_owned(), version: accepted.version });
    }
    let bytes = serde_json::to_vec(accepted).map_err(|source| TrustError::Damaged { path: path.to_owned(), source })?;
    Ok(durable::write(path, &bytes, Durability::Synced)?)
}

/// The hash of the values. Each part is preceded by its length, so that no two different values read the same.
fn fingerprint(sensitive: &Sensitive) -> String {
    let mut hash = Sha256::new();
    for ask in &sensitive.asks {
        hash.update(format!("{} {}\n", ask.key.name(), ask.values.len()));
        for value in &ask.values {
            hash.update(format!("{} {value}\n", value.len()));
        }
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Ask, Key, NameList};
    use super::*;

    fn sensitive(pass_env: &[&str], linger: &[&str]) -> Sensitive {
        let ask = |list, values: &[&str]| {
            let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
            (!values.is_empty()).then_some(Ask { key: Key::Names(list), values })
        };
        Sensitive { asks: [ask(NameList::PassEnv, pass_env), ask(NameList::Linger, linger)].into_iter().flatten().collect() }
    }

    #[test]
    fn consent_holds_for_exactly_the_accepted_values() {
        let state = tempfile::tempdir().expect("a folder");
        accept(&sensitive(&["A", "B"], &[]), state.path()).expect("accepts");

        for (asked, expected) in [
            (sensitive(&["A", "B"], &[]), Consent::Given),
            (sensitive(&["A"], &[]), Consent::Missing),
            (sensitive(&["A\n1 B"], &[]), Consent::Missing),
            (sensitive(&["A", "B"], &["B"]), Consent::Missing),
            (sensitive(&[], &["A", "B"]), Consent::Missing),
            (sensitive(&[], &[]), Consent::NotNeeded),
            (Sensitive::default(), Consent::NotNeeded),
        ] {
            assert_eq!(consent(&asked, Some(state.path())).expect("reads"), expected, "{asked:?}");
        }
    }

    #[test]
    fn revoking_takes_back_everything() {
        let state = tempfile::tempdir().expect("a folder");
        let asked = sensitive(&["A"], &[]);
        accept(&asked, state.path()).expect("accepts");

        revoke(state.path()).expect("revokes");

        assert_eq!(consent(&asked, Some(state.path())).expect("reads"), Consent::Missing);
    }

    #[test]
    fn a_damaged_list_is_an_error_and_never_consent() {
        let state = tempfile::tempdir().expect("a folder");
        durable::write(&state.path().join(FILE), b"{\"version\":1,\"acc", Durability::Renamed).expect("writes");

        assert!(matches!(consent(&sensitive(&["A"], &[]), Some(state.path())), Err(TrustError::Damaged { .. })));
    }

    #[test]
    fn a_list_of_a_newer_version_is_read_and_never_written() {
        let state = tempfile::tempdir().expect("a folder");
        let text = br#"{"version":2,"accepted":[],"since":"later"}"#;
        durable::write(&state.path().join(FILE), text, Durability::Renamed).expect("writes");

        assert_eq!(consent(&sensitive(&["A"], &[]), Some(state.path())).expect("reads"), Consent::Missing);
        assert!(matches!(accept(&sensitive(&["A"], &[]), state.path()), Err(TrustError::Newer { version: 2, .. })));
        assert_eq!(std::fs::read(state.path().join(FILE)).expect("reads"), text);
    }
}
