//! What others wrote: vaults of Logos (procedures among its memories, dead ends in its checkpoints), and plain lists.
//!
//! Reading and writing lose nothing of a record: what reads otherwise in the form of the other side is written in ours, with
//! a mark. What is not a dead end or a procedure stays where it is, and is counted.

mod placeholder;
mod read;
mod vault;
mod write;

pub use placeholder::is_placeholder;
pub use read::{Import, Skipped, read_list};
pub use vault::{ImportError, import};
pub use write::{WrittenFile, write_list, write_vault};

/// What `from` says of a record from a vault, before the path in it.
const FROM: &str = "logos:";
/// Logos' own metadata, kept under its name with this in front.
const KEPT: &str = "logos.";
/// Our metadata among that of Logos.
const OURS: &str = "proctor.";
/// Says that a line has our references for characters.
const FORM: &str = "form";
const ESCAPED: &str = "escaped";
/// The file of a vault's procedures.
const PROCEDURES: &str = "memories/procedure.md";
/// The section of a checkpoint in which its dead ends are.
const SECTION: &str = "## Didn't work";
