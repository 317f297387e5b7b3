//! What a change says that it did.

use proctor_recall::Effect;
use proctor_recall::hygiene::Masked;
use serde::Serialize;

use crate::Invocation;
use crate::args::memory::ChangeArgs;

/// What was done to one record, or would be.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct Done {
    pub(in crate::commands) id: String,
    /// `added`, `known`, `approved`, …
    pub(in crate::commands) what: &'static str,
    pub(in crate::commands) place: &'static str,
    pub(in crate::commands) polarity: &'static str,
    pub(in crate::commands) approval: &'static str,
    pub(in crate::commands) route: String,
}

/// The receipt of a change, as JSON.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct Receipt {
    pub(in crate::commands) version: u32,
    /// Whether it was only asked what would be done.
    pub(in crate::commands) dry_run: bool,
    pub(in crate::commands) records: Vec<Done>,
    pub(in crate::commands) masked: MaskedDocument,
}

/// How many secrets were taken out before anything was written.
#[derive(Debug, Default, Serialize)]
pub(in crate::commands) struct MaskedDocument {
    pub(in crate::commands) count: usize,
    pub(in crate::commands) fields: Vec<&'static str>,
}

impl MaskedDocument {
    pub(in crate::commands) fn add(&mut self, masked: Masked) {
        self.count += masked.count;
        for field in masked.fields {
            if !self.fields.contains(&field) {
                self.fields.push(field);
            }
        }
    }

    /// Says so on stderr.
    pub(in crate::commands) fn tell(&self, invocation: &Invocation) {
        if self.count > 0 {
            let (number, is) = if self.count == 1 { ("1 secret".to_owned(), "was") } else { (format!("{} secrets", self.count), "were") };
            invocation.printer.insist(&format!("{number} {is} masked, in {}", self.fields.join(", ")));
        }
    }
}

/// Whether the change is carried out.
pub(in crate::commands) fn effect(args: ChangeArgs) -> Effect {
    if args.dry_run { Effect::OnlySay } else { Effect::Write }
}

/// `would be` or `is`, in front of what was done.
pub(in crate::commands) fn auxiliary(args: ChangeArgs) -> &'static str {
    if args.dry_run { "would be" } else { "is" }
}
