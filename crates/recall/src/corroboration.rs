//! How what runs taught becomes a proposal, and when a proposal counts although nobody approved it.
//!
//! A proposal waits until a person approves it, or until a run that has nothing to do with it meets the same: another run, another
//! session, the same in both halves of the record, and one that was not shown the record before. What counts by that says so, with
//! who met it, and a person can reject it like any other.

use proctor_domain::RecordId;

use crate::line::Line;
use crate::matching::{Approach, Bars, Findable, Fingerprint, Index, Place, Reason};
use crate::record::{Approval, Polarity, Record};
use crate::store::{Contents, Entry, StoreError};

/// The metadata that names the run a record comes from.
const RUN: &str = "run";
/// The metadata that names a session which met the same: `run_…:ses_…:agent`.
const MET: &str = "met";
/// The metadata that says by what a record counts that nobody approved.
const COUNTS_BY: &str = "counts-by";
const CORROBORATION: &str = "corroboration";

/// A session that met what a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meeting {
    /// Its run.
    pub run: String,
    /// The session.
    pub session: String,
    /// Its engine, and the model where that is known.
    pub agent: String,
}

impl Meeting {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ':').map(str::to_owned);
        Some(Self { run: parts.next()?, session: parts.next()?, agent: parts.next().unwrap_or_default() })
    }

    fn text(&self) -> String {
        format!("{}:{}:{}", self.run, self.session, self.agent)
    }
}

/// The run that a record comes from.
pub fn run_of(record: &Record) -> Option<&str> {
    value(record, RUN)
}

/// Who met the same since it was written, oldest first.
pub fn meetings(record: &Record) -> Vec<Meeting> {
    record.other.iter().filter(|(key, _)| key == MET).filter_map(|(_, text)| Meeting::parse(text)).collect()
}

/// Whether it counts because others met the same, and nobody approved it.
pub fn is_corroborated(record: &Record) -> bool {
    record.approval == Approval::Active && value(record, COUNTS_BY) == Some(CORROBORATION)
}

/// The record without the mark that nobody approved it: a person has spoken.
pub(crate) fn spoken_for(mut record: Record) -> Record {
    record.other.retain(|(key, _)| key != COUNTS_BY);
    record
}

fn value<'record>(record: &'record Record, key: &str) -> Option<&'record str> {
    record.other.iter().find(|(other, _)| other == key).map(|(_, value)| value.as_str())
}

/// What a run taught.
#[derive(Debug, Clone)]
pub struct Draft<'a> {
    /// The record, with an id that this lesson alone has, however often it is proposed.
    pub line: Line,
    /// The session that worked, its run and its agent.
    pub by: Meeting,
    /// Every session of the run.
    pub sessions: &'a [String],
    /// Every record that a session of the run was shown.
    pub shown: &'a [RecordId],
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// It is a new proposal, or was made one before.
    Proposed(RecordId),
    /// This proposal of somebody else says the same, and counts from now on, or since this was proposed before.
    Corroborated(RecordId),
    /// The same is there, and stays what it is.
    Known(RecordId),
}

/// Takes what a run taught into the folder that proposals are kept in. `elsewhere` is what other folders hold.
///
/// # Errors
/// The record does not say what one has to say.
pub fn take(contents: &mut Contents, draft: &Draft<'_>, elsewhere: &[Entry]) -> Result<Taken, StoreError> {
    let record = &draft.line.record;
    if let Some(own) = contents.entries().find(|entry| entry.record.id == record.id) {
        let id = own.record.id.clone();
        return Ok(if own.record.approval == Approval::Proposed { Taken::Proposed(id) } else { Taken::Known(id) });
    }
    let mark = draft.by.text();
    if let Some(met) = contents.entries().find(|entry| entry.record.other.iter().any(|(key, text)| key == MET && *text == mark)) {
        return Ok(Taken::Corroborated(met.record.id.clone()));
    }
    if let Some(same) = elsewhere.iter().find(|entry| is_same(&entry.record, record)) {
        return Ok(Taken::Known(same.record.id.clone()));
    }
    // What somebody has decided on stands over what waits.
    let all_the_same = || contents.entries().filter(|entry| is_same(&entry.record, record));
    let decided = all_the_same().find(|entry| entry.record.approval != Approval::Proposed);
    let Some(same) = decided.or_else(|| all_the_same().next()).cloned() else {
        let mut line = draft.line.clone();
        line.record.approval = Approval::Proposed;
        line.record.session = Some(draft.by.session.clone());
        line.record.agent = Some(draft.by.agent.clone());
        line.record.other.push((RUN.to_owned(), draft.by.run.clone()));
        return contents.add(line).map(|added| Taken::Proposed(added.id().clone()));
    };
    if !is_independent(&same.record, draft) {
        return Ok(Taken::Known(same.record.id));
    }
    let id = same.record.id.clone();
    contents.set_approval(&id, Approval::Active)?;
    let mut record = Record { approval: Approval::Active, ..same.record };
    record.other.push((MET.to_owned(), mark));
    record.other.push((COUNTS_BY.to_owned(), CORROBORATION.to_owned()));
    contents.replace(Line { record, body: same.body, remarks: Vec::new() })?;
    Ok(Taken::Corroborated(id))
}

/// Whether the draft speaks for a waiting record without having anything to do with it. Who was shown it, or wrote it, does not;
/// and what a person rejected stays so.
fn is_independent(record: &Record, draft: &Draft<'_>) -> bool {
    let is_waiting = record.approval == Approval::Proposed;
    let is_of_this_run = run_of(record) == Some(draft.by.run.as_str());
    let is_of_its_sessions = record.session.as_ref().is_some_and(|session| draft.sessions.contains(session));
    let comes_from_a_session = record.session.is_some();
    is_waiting && comes_from_a_session && !is_of_this_run && !is_of_its_sessions && !draft.shown.contains(&record.id)
}

/// Whether two records say the same of the same repository: each half of one is what that half of the other is.
fn is_same(known: &Record, new: &Record) -> bool {
    let second = |record: &Record| match record.polarity {
        Polarity::Works => record.trap.clone().unwrap_or_default(),
        Polarity::Fails => record.observation.clone().unwrap_or_default(),
    };
    let is_near = known.polarity == new.polarity && (known.project == new.project || known.project.is_none());
    is_near && says_the_same(&known.route, &new.route) && says_the_same(&second(known), &second(new))
}

fn says_the_same(known: &str, new: &str) -> bool {
    if known.split_whitespace().eq(new.split_whitespace()) {
        return true;
    }
    let findable =
        Findable { polarity: Polarity::Works, route: known, trap: "", observation: "", files: &[], dependencies: &[], project: None };
    let index = Index::build(Fingerprint::default(), [(Place::default(), findable)]);
    let hits = index.search(&Approach { text: new, ..Approach::default() }, &Bars::default(), None, 1);
    hits.iter().any(|hit| match hit.decision.reason {
        Reason::Restated | Reason::Words => true,
        Reason::Code | Reason::File | Reason::Dependency | Reason::Meaning | Reason::Beside => false,
    })
}
