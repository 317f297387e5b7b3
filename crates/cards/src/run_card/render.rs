//! From a run card to its text.

use std::collections::BTreeMap;

use proctor_domain::Timestamp;
use proctor_domain::retention::Expires;

use super::{RunCard, RunStepRecord, StepStatus, Streams};
use crate::yaml::Emitter;

/// The card's text. [`super::read_run_card`] reads it back as the same card.
pub fn render_run_card(card: &RunCard) -> String {
    let mut out = Emitter::default();
    out.line("---");
    if let Some(run) = &card.run {
        out.entry("", "run", run.as_str());
    }
    out.entry("", "procedure", &card.procedure);
    optional(&mut out, "", "outcome", card.outcome.map(|outcome| outcome.name()));
    optional(&mut out, "", "started-at", card.started_at.map(time).as_deref());
    optional(&mut out, "", "completed-at", card.completed_at.map(time).as_deref());
    optional(&mut out, "", "directive", card.directive.as_deref());
    match &card.expires {
        Expires::Unset => {}
        Expires::Never => out.entry("", "expires", "never"),
        Expires::At(at) => out.entry("", "expires", &time(*at)),
        Expires::Unreadable(text) => out.entry("", "expires", text),
    }
    texts(&mut out, "", "inputs", &card.inputs);
    if card.steps.is_empty() {
        out.line("steps: []");
    } else {
        out.line("steps:");
    }
    for step in &card.steps {
        render_step(&mut out, step);
    }
    out.line("---");
    out.into_text()
}

fn render_step(out: &mut Emitter, step: &RunStepRecord) {
    let (lead, inner) = ("    ", "      ");
    out.entry("  - ", "id", &step.id);
    out.entry(lead, "status", step.status.name());
    if let StepStatus::Skipped(Some(reason)) = step.status {
        out.entry(lead, "skip-reason", reason.name());
    }
    optional(out, lead, "started-at", step.started_at.map(time).as_deref());
    optional(out, lead, "completed-at", step.completed_at.map(time).as_deref());
    if step.attempts > 0 {
        out.line(&format!("{lead}attempts: {}", step.attempts));
    }
    optional(out, lead, "error", step.error.as_deref());
    list(out, lead, "earlier-errors", step.earlier_errors.iter().map(String::as_str));
    if let Some(precheck) = &step.precheck {
        out.open(lead, "precheck");
        out.entry(inner, "status", precheck.status.name());
        render_streams(out, inner, &precheck.streams);
    }
    if let Some(run) = &step.run {
        let mut body = Emitter::default();
        optional(&mut body, inner, "session-id", run.session.as_deref());
        render_streams(&mut body, inner, &run.streams);
        optional(&mut body, inner, "error", run.error.as_deref());
        optional(&mut body, inner, "git-ref", run.git_ref.as_deref());
        let body = body.into_text();
        if body.is_empty() {
            out.line(&format!("{lead}run: {{}}"));
        } else {
            out.open(lead, "run");
            out.raw(&body);
        }
    }
    if let Some(validate) = &step.validate {
        out.open(lead, "validate");
        out.entry(inner, "status", validate.status.name());
        render_streams(out, inner, &validate.streams);
        optional(out, inner, "review", validate.review.as_deref());
        optional(out, inner, "error", validate.error.as_deref());
        optional(out, inner, "reason", validate.reason.as_deref());
    }
    texts(out, lead, "outputs", &step.outputs);
    list(out, lead, "commits", step.commits.iter().map(|commit| commit.0.as_str()));
}

fn render_streams(out: &mut Emitter, lead: &str, streams: &Streams) {
    if let Some(code) = streams.exit_code {
        out.line(&format!("{lead}exit-code: {code}"));
    }
    for (key, text) in [("stdout", &streams.stdout), ("stderr", &streams.stderr)] {
        if !text.is_empty() {
            out.entry(lead, key, text);
        }
    }
}

fn optional(out: &mut Emitter, lead: &str, key: &str, text: Option<&str>) {
    if let Some(text) = text {
        out.entry(lead, key, text);
    }
}

fn texts(out: &mut Emitter, lead: &str, key: &str, texts: &BTreeMap<String, String>) {
    if texts.is_empty() {
        return;
    }
    out.open(lead, key);
    for (name, text) in texts {
        out.entry(&format!("{lead}  "), name, text);
    }
}

fn list<'t>(out: &mut Emitter, lead: &str, key: &str, items: impl Iterator<Item = &'t str>) {
    for (position, item) in items.enumerate() {
        if position == 0 {
            out.open(lead, key);
        }
        out.item(&format!("{lead}  "), item);
    }
}

/// ISO 8601 in UTC, with milliseconds where there are any. A time that no calendar knows is the nearest one it does.
pub(super) fn time(at: Timestamp) -> String {
    let fallback = if at.0 < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
    jiff::Timestamp::from_millisecond(at.0).unwrap_or(fallback).to_string()
}
