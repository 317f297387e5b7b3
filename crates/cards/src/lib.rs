//! The text files that people edit: procedure cards, run cards, and a box's settings.
//!
//! Text comes in, values and [`Finding`]s go out; values come in, text goes out. Nothing here writes
//! to a disk, and whatever the text holds, reading it ends with a value or with findings that name
//! file, line and column.

mod boxes;
mod finding;
mod front;
mod keys;
mod layout;
mod locate;
mod nearest;
mod procedure;
mod run_card;
mod source;
pub mod template;
mod yaml;

pub use boxes::{BoxDefaults, load_box_defaults, read_box_json};
pub use finding::{Finding, Level};
pub use keys::{KeyDoc, key_reference};
pub use layout::Layout;
pub use locate::{FindError, ListedCard, find_procedure, list_procedures};
pub use nearest::nearest;
pub use procedure::{Card, read_procedure};
pub use run_card::{
    PrecheckRecord, PrecheckStatus, RunCard, RunPhaseRecord, RunStepRecord, StepStatus, Streams, ValidateRecord, read_run_card,
    render_run_card, set_expires,
};
pub use source::Source;
