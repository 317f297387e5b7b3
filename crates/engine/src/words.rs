//! Errors as one line of text, where a sentence is all that is left of them.

use std::error::Error;

/// An error and what led to it.
pub fn in_words(error: &dyn Error) -> String {
    format!("{error}{}", causes(error))
}

/// What led to an error, to be put behind its own text; empty where nothing did.
pub(crate) fn causes(error: &dyn Error) -> String {
    let mut text = String::new();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(&format!(": {cause}"));
        next = cause.source();
    }
    text
}
