//! What a change says that it did.

use proctor_recall::Effect;
use proctor_recall::hygiene::Masked;
use serde::Serialize;

use crate::Invocation;
use crate::args::memory::ChangeArgs;

/// What was done to one record, or would be.
#[derive(Debug, Serialize)]
pub(super) struct Done {
    pub(super) id: String,
    /// `added`, `known`, `approved`, …
    pub(super) what: &'static str,
    pub(super) place: &'static str,
    pub(super) polarity: &'static str,
    pub(super) approval: &'static str,
    pub(super) route: String,
}

/// The receipt of a change, as JSON.
#[derive(Debug, Serialize)]
pub(super) struct Receipt {
    pub(super) version: u32,
    /// Whether it was only asked what would be done.
    pub(super) dry_run: bool,
    pub(super) records: Vec<Done>,
    pub(super) masked: MaskedDocument,
}

/// How many secrets were taken out before anything was written.
#[derive(Debug, Default, Serialize)]
pub(super) struct MaskedDocument {
    pub(super) count: usize,
    pub(super) fields: Vec<&'static str>,
}

impl MaskedDocument {
    pub(super) fn add(&mut self, masked: Masked) {
        self.count += masked.count;
        for field in masked.fields {
            if !self.fields.contains(&field) {
                self.fields.push(field);
            }
        }
    }

    /// Says so on stderr.
    pub(super) fn tell(&self, invocation: &Invocation) {
        if self.count > 0 {
            let (number, is) = if self.count == 1 { ("1 secret".to_owned(), "was") } else { (format!("{} secrets", self.count), "were") };
            invocation.printer.insist(&format!("{number} {is} masked, in {}", self.fields.join(", ")));
        }
    }
}

/// Whether the change is carried out.
pub(super) fn effect(args: ChangeArgs) -> Effect {
    if args.dry_run { Effect::OnlySay } else { Effect::Write }
}

/// `would be` or `is`, in front of what was done.
pub(super) fn auxiliary(args: ChangeArgs) -> &'static str {
    if args.dry_run { "would be" } else { "is" }
}
