//! The documents that are made from the program, so that they can't disagree with it.

use std::fs;
use std::path::Path;

use anyhow::Context;
use proctor_process::durable::{self, Durability};

/// A document and what makes it.
type Document = (&'static str, fn() -> String);

const DOCUMENTS: &[Document] = &[
    ("docs/box-contract.md", proctor::docs::box_contract),
    ("docs/card-reference.md", proctor::docs::card_reference),
    ("docs/cli-reference.md", proctor::docs::cli_reference),
    ("docs/environment.md", proctor::docs::environment),
    ("docs/exit-codes.md", proctor::docs::exit_codes),
    ("docs/mcp-tools.md", proctor::docs::mcp_tools),
    ("docs/settings.md", proctor::docs::settings),
];

/// Writes every document that is not as it should be, and names those.
pub(crate) fn write(root: &Path) -> anyhow::Result<Vec<&'static str>> {
    write_from(DOCUMENTS, root)
}

/// Names every document that is not as it should be.
pub(crate) fn stale(root: &Path) -> anyhow::Result<Vec<&'static str>> {
    stale_from(DOCUMENTS, root)
}

fn write_from(documents: &[Document], root: &Path) -> anyhow::Result<Vec<&'static str>> {
    let stale = stale_from(documents, root)?;
    for (path, make) in documents.iter().filter(|(path, _)| stale.contains(path)) {
        let file = root.join(path);
        let folder = file.parent().unwrap_or(root);
        fs::create_dir_all(folder).with_context(|| format!("make the folder {}", folder.display()))?;
        durable::write(&file, make().as_bytes(), Durability::Renamed)?;
    }
    Ok(stale)
}

fn stale_from(documents: &[Document], root: &Path) -> anyhow::Result<Vec<&'static str>> {
    let mut stale = Vec::new();
    for (path, make) in documents {
        let present = match fs::read_to_string(root.join(path)) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(error).with_context(|| format!("read {path}")),
        };
        if present.as_deref() != Some(&make()) {
            stale.push(*path);
        }
    }
    Ok(stale)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &[Document] = &[("docs/one.md", || "one\n".to_owned()), ("docs/two.md", || "two\n".to_owned())];

    #[test]
    fn a_document_that_is_missing_or_different_is_stale_and_written_anew() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("docs")).unwrap();
        durable::write(&root.path().join("docs/one.md"), b"1\n", Durability::Renamed).unwrap();

        assert_eq!(stale_from(SAMPLE, root.path()).unwrap(), ["docs/one.md", "docs/two.md"]);
        assert_eq!(write_from(SAMPLE, root.path()).unwrap(), ["docs/one.md", "docs/two.md"]);

        assert_eq!(stale_from(SAMPLE, root.path()).unwrap(), [""; 0]);
        assert_eq!(fs::read_to_string(root.path().join("docs/two.md")).unwrap(), "two\n");
    }
}
