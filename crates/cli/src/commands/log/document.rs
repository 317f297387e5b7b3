//! What sessions wrote, as JSON.

use std::io::ErrorKind;
use std::path::Path;

use proctor_domain::SessionId;
use proctor_domain::procedure::StepRecord;
use proctor_domain::session::{Excerpt, SessionRecord};
use proctor_engine::TRANSCRIPT;
use proctor_engine::agent::{AgentEvent, Finish, PlanEntry, PlanState, Stop};
use serde::Serialize;
use serde_json::Value;

use super::transcript::Transcript;
use super::{is_listed, is_of_an_agent, unreadable};
use crate::archive::{Archive, Seen};
use crate::report::Report;
use crate::run_document::{session_end, session_kind};
use crate::run_text::utc_time;
use crate::spending::dollars;

/// A log.
#[derive(Serialize)]
pub(super) struct LogDocument {
    version: u32,
    run: String,
    procedure: String,
    sessions: Vec<SessionLog>,
}

#[derive(Serialize)]
struct SessionLog {
    session: String,
    step: Option<String>,
    kind: &'static str,
    phase: Option<&'static str>,
    attempt: Option<u32>,
    end: &'static str,
    events: Vec<Event>,
}

/// One thing that happened in a session, in order.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Event {
    /// Text of shells, or what an engine wrote to standard error.
    Output {
        stream: &'static str,
        text: String,
    },
    Started {
        conversation: String,
        model: Option<String>,
    },
    /// A person said it while the agent worked.
    Said {
        text: String,
    },
    Text {
        text: String,
    },
    Thinking {
        text: String,
    },
    Turn,
    ToolCall {
        id: String,
        name: String,
        input: Value,
    },
    ToolResult {
        id: String,
        failed: bool,
        text: String,
    },
    Plan {
        entries: Vec<Planned>,
    },
    ServerFailed {
        name: String,
        reason: Option<String>,
    },
    Retrying {
        attempt: u32,
        status: Option<u16>,
        wait_ms: Option<u64>,
    },
    Limit {
        until: Option<String>,
        reached: bool,
    },
    End {
        stop: &'static str,
        reason: Option<String>,
        until: Option<String>,
        turns: Option<u32>,
        cost_usd: Option<f64>,
        text: Option<String>,
        result: Option<Value>,
    },
    /// A line of a kind that this version does not know.
    Unknown {
        name: String,
    },
    /// A line that is not what the engine prints.
    Garbage,
}

/// One thing that an agent means to do.
#[derive(Serialize)]
struct Planned {
    text: String,
    state: &'static str,
}

/// The log of a run, or of one of its sessions.
pub(super) fn of(archive: &Archive, seen: &Seen, only: Option<&SessionId>) -> Result<LogDocument, Report> {
    let mut sessions = Vec::new();
    for step in &seen.loaded.run.steps {
        for record in step.sessions.iter().filter(|record| only.is_none_or(|only| *only == record.id)) {
            sessions.push(session(archive, seen, step, record)?);
        }
    }
    if let Some(only) = only.filter(|only| !is_listed(seen, only)) {
        // A new definition dropped its step; its files are still there.
        let folder = archive.site.state.session(only);
        let kind = if is_of_an_agent(&folder, None) { "agent" } else { "shell" };
        let events = events(&folder, None, seen)?;
        let (step, phase, attempt) = (None, None, None);
        sessions.push(SessionLog { session: only.to_string(), step, kind, phase, attempt, end: "unknown", events });
    }
    Ok(LogDocument { version: 1, run: seen.loaded.run_id.to_string(), procedure: seen.loaded.run.started.procedure.clone(), sessions })
}

fn session(archive: &Archive, seen: &Seen, step: &StepRecord, record: &SessionRecord) -> Result<SessionLog, Report> {
    Ok(SessionLog {
        session: record.id.to_string(),
        step: Some(step.plan.id.to_string()),
        kind: session_kind(record),
        phase: Some(record.phase.name()),
        attempt: Some(record.attempt),
        end: session_end(record, &seen.loaded.run, &seen.standing),
        events: events(&archive.site.state.session(&record.id), Some(record), seen)?,
    })
}

fn events(folder: &Path, record: Option<&SessionRecord>, seen: &Seen) -> Result<Vec<Event>, Report> {
    let report = record.and_then(|record| record.report.as_ref());
    let mut events = Vec::new();
    let mut output = |stream, excerpt: Option<&Excerpt>| -> Result<(), Report> {
        let text = String::from_utf8_lossy(&read(&folder.join(format!("{stream}.log")), excerpt)?).into_owned();
        if !text.is_empty() {
            events.push(Event::Output { stream, text });
        }
        Ok(())
    };
    if is_of_an_agent(folder, record) {
        output("stderr", report.map(|report| &report.stderr))?;
        let mut transcript = Transcript::of(record, seen.loaded.run.started.engine.as_ref());
        let lines = read(&folder.join(TRANSCRIPT), report.map(|report| &report.stdout))?;
        let mut said = transcript.feed(&lines);
        said.extend(transcript.finish());
        events.splice(0..0, said.into_iter().filter_map(event));
    } else {
        output("stdout", report.map(|report| &report.stdout))?;
        output("stderr", report.map(|report| &report.stderr))?;
    }
    Ok(events)
}

/// A file of a session; where it is gone, what the record keeps of it.
fn read(path: &Path, excerpt: Option<&Excerpt>) -> Result<Vec<u8>, Report> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(excerpt.map(Excerpt::text).unwrap_or_default().into_bytes()),
        Err(error) => Err(unreadable(path, &error)),
    }
}

fn event(event: AgentEvent) -> Option<Event> {
    Some(match event {
        AgentEvent::Started { conversation, model } => Event::Started { conversation, model },
        AgentEvent::Said(text) => Event::Said { text },
        AgentEvent::Text(text) => Event::Text { text },
        AgentEvent::Thinking(text) => Event::Thinking { text },
        AgentEvent::Turn => Event::Turn,
        AgentEvent::ToolCall { id, name, input } => Event::ToolCall { id, name, input: json(input) },
        AgentEvent::ToolResult { id, failed, text } => Event::ToolResult { id, failed, text },
        AgentEvent::Plan(entries) => Event::Plan { entries: entries.into_iter().map(planned).collect() },
        AgentEvent::Retrying { attempt, status, wait_ms } => Event::Retrying { attempt, status, wait_ms },
        AgentEvent::Limit { until, reached } => Event::Limit { until: until.map(utc_time), reached },
        AgentEvent::ServerFailed { name, reason } => Event::ServerFailed { name, reason },
        AgentEvent::Finished(finish) => end(*finish),
        AgentEvent::Unknown(name) => Event::Unknown { name },
        AgentEvent::Garbage => Event::Garbage,
        AgentEvent::Spent(_) | AgentEvent::Working | AgentEvent::Nothing => return None,
    })
}

fn planned(entry: PlanEntry) -> Planned {
    let state = match entry.state {
        PlanState::Pending => "pending",
        PlanState::InProgress => "in-progress",
        PlanState::Completed => "completed",
    };
    Planned { text: entry.text, state }
}

fn end(finish: Finish) -> Event {
    let cost_usd = (!finish.spent.is_empty())
        .then(|| finish.spent.iter().map(|spending| spending.cost).sum::<proctor_domain::Cost>().known().map(dollars))
        .flatten();
    let (stop, reason, until) = match finish.stop {
        Stop::Done => ("done", None, None),
        Stop::TurnLimit => ("turn-limit", None, None),
        Stop::Budget => ("budget", None, None),
        Stop::RateLimited { until } => ("rate-limited", None, until),
        Stop::UsageLimit { until } => ("usage-limit", None, until),
        Stop::Refused(reason) => ("refused", Some(reason), None),
        Stop::NoResult(reason) => ("no-result", Some(reason), None),
        Stop::Interrupted => ("interrupted", None, None),
        Stop::Failed(reason) => ("failed", Some(reason), None),
    };
    let (turns, text, result) = (finish.turns, finish.text, finish.result.map(json));
    Event::End { stop, reason, until: until.map(utc_time), turns, cost_usd, text, result }
}

/// A JSON text as what it says; one that is none as text.
fn json(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}
