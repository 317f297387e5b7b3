//! What a run taught, proposed to memory.
//!
//! Proposals go to the user's folder and name their repository: a run must not make its working tree dirty, and a step's commit
//! must not hold what the step did not do. An effect like others: what was proposed before a crash is found by its id.

use std::collections::BTreeSet;

use proctor_domain::procedure::{Lesson, LessonKind, Proposal, Reception, RunEvent};
use proctor_domain::session::{SessionReport, Work};
use proctor_domain::{RecordId, RepoPath};
use proctor_engine::in_words;
use proctor_process::killpoint;
use proctor_recall::corroboration::{Draft, Meeting, Taken, take};
use proctor_recall::{Approval, Effect, Entry, Evidence, Folder, Line, Polarity, Record, Said};
use sha2::{Digest, Sha256};

use super::driver::Driver;
use super::{Notice, ProcedureError};
use crate::memory::Memory;

/// Characters of a route, of a trap and of an observation: what people and models read of them.
const LONGEST: usize = 600;
/// Files that a record names.
const MOST_FILES: usize = 10;

impl Driver<'_> {
    /// Tells memory what the run taught. Memory that can't be written is said and recorded, and fails nothing.
    pub(super) fn propose(&mut self) -> Result<(), ProcedureError> {
        // What the lessons follow from is durable before anything is written elsewhere.
        self.save()?;
        killpoint::reach("before proposals");
        let (records, obstacle) = self.tell_memory();
        killpoint::reach("after proposals");
        if !records.is_empty() || obstacle.is_some() {
            (self.context.notify)(Notice::Proposed { records: &records, obstacle: obstacle.as_deref() });
        }
        self.record(RunEvent::Proposed { records, obstacle })
    }

    fn tell_memory(&self) -> (Vec<Proposal>, Option<String>) {
        let site = self.context.site;
        let Some(memory) = site.memory.as_deref().filter(|_| site.settings.proposals) else { return (Vec::new(), None) };
        let lessons: Vec<Lesson<'_>> =
            self.run.lessons().into_iter().filter(|lesson| self.definition.uses_memory(&lesson.step.plan.id)).collect();
        if lessons.is_empty() {
            return (Vec::new(), None);
        }
        let Some(folder) = &memory.proposals else {
            return (Vec::new(), Some("there is no place for your memory: neither HOME nor XDG_DATA_HOME names a folder".to_owned()));
        };
        let elsewhere = decided_elsewhere(memory, folder);
        let mut records = Vec::new();
        for lesson in &lessons {
            match self.propose_lesson(memory, folder, lesson, &elsewhere) {
                Ok(taken) => records.push(proposal(lesson, taken)),
                Err(error) => return (records, Some(in_words(&error))),
            }
        }
        (records, None)
    }

    fn propose_lesson(
        &self,
        memory: &Memory,
        folder: &Folder,
        lesson: &Lesson<'_>,
        elsewhere: &[Entry],
    ) -> Result<Taken, proctor_recall::StoreError> {
        let mut line = Line::of(self.record_of(memory, lesson));
        line.mask(&memory.mask);
        let sessions: Vec<String> = self.run.steps.iter().flat_map(|step| &step.sessions).map(|session| session.id.to_string()).collect();
        let shown: Vec<RecordId> = self.run.shown_records().cloned().collect();
        let agent = lesson.session.report.as_ref().and_then(|report| report.agent.as_ref());
        let agent = agent.map(|agent| match &agent.model {
            Some(model) => format!("{}/{model}", agent.engine),
            None => agent.engine.to_string(),
        });
        let by = Meeting { run: self.run_id.to_string(), session: lesson.session.id.to_string(), agent: agent.unwrap_or_default() };
        let draft = Draft { line, by, sessions: &sessions, shown: &shown };
        folder.change(Effect::Write, |contents| take(contents, &draft, elsewhere))
    }

    fn record_of(&self, memory: &Memory, lesson: &Lesson<'_>) -> Record {
        let id = id_of(&[self.run_id.as_str(), lesson.step.plan.id.as_str(), lesson.kind.name()]);
        let record = match lesson.kind {
            LessonKind::Repaired(learned) => Record {
                trap: Some(beginning(&learned.trap)),
                evidence: Some(Said::Known(Evidence::Once)),
                ..Record::new(id, Polarity::Works, beginning(&learned.route))
            },
            LessonKind::Refuted { failure, report } => Record {
                observation: Some(format!("{failure}\n{}", end_of_output(report)).trim().to_owned()),
                ..Record::new(id, Polarity::Fails, self.route_of(lesson))
            },
            LessonKind::Judged { reasoning } => {
                Record { observation: Some(beginning(reasoning)), ..Record::new(id, Polarity::Fails, self.route_of(lesson)) }
            }
        };
        Record {
            project: memory.project.clone(),
            commit: self.run.head.as_ref().map(|head| head.0.clone()),
            files: self.files_of(lesson),
            created: Some(self.context.clock.now()),
            approval: Approval::Proposed,
            ..record
        }
    }

    /// What was tried: what the caller wanted, and what the step's agents were asked.
    fn route_of(&self, lesson: &Lesson<'_>) -> String {
        let index = self.run.steps.iter().position(|step| step.plan.id == lesson.step.plan.id).unwrap_or_default();
        let asked = self.run.started.directive.iter().cloned().chain(self.prompts(index, Work::Repair));
        beginning(&asked.collect::<Vec<_>>().join("\n"))
    }

    /// The paths that the step changed, committed or not.
    fn files_of(&self, lesson: &Lesson<'_>) -> Vec<String> {
        let step = lesson.step;
        let mut paths: BTreeSet<RepoPath> = step.changed.iter().cloned().collect();
        if let (Some(from), Some(to)) = (&step.baseline, step.commits.last()) {
            paths.extend(self.context.site.repository.differing(from, to).unwrap_or_default());
        }
        paths.iter().take(MOST_FILES).map(ToString::to_string).collect()
    }
}

/// What other folders hold that a person has decided on. One that can't be read decides nothing, and was said before.
fn decided_elsewhere(memory: &Memory, proposals: &Folder) -> Vec<Entry> {
    let others = memory.library.shelves().iter().filter(|shelf| shelf.folder.path() != proposals.path());
    let entries = others.filter_map(|shelf| shelf.folder.read().ok()).flat_map(|contents| contents.entries().cloned().collect::<Vec<_>>());
    entries.filter(|entry| entry.record.approval != Approval::Proposed).collect()
}

fn proposal(lesson: &Lesson<'_>, taken: Taken) -> Proposal {
    let (record, reception) = match taken {
        Taken::Proposed(id) => (id, Reception::Proposed),
        Taken::Corroborated(id) => (id, Reception::Corroborated),
        Taken::Known(id) => (id, Reception::Known),
    };
    Proposal { step: lesson.step.plan.id.clone(), record, reception }
}

/// The same for the same run, step and kind of lesson, so that nothing is proposed twice.
fn id_of(parts: &[&str]) -> RecordId {
    let digest = Sha256::digest(parts.join("\n"));
    RecordId::from_bits(digest.iter().take(8).fold(0, |bits, byte| bits << 8 | u64::from(*byte)))
}

/// The beginning of a text, as far as it fits.
fn beginning(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The end of what a check printed, which says what is wrong.
fn end_of_output(report: &SessionReport) -> String {
    let (errors, output) = (report.stderr.text(), report.stdout.text());
    let said = if errors.trim().is_empty() { output.trim() } else { errors.trim() };
    match said.char_indices().nth_back(LONGEST) {
        Some((start, first)) => format!("…{}", &said[start + first.len_utf8()..]),
        None => said.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_lesson_of_the_same_run_has_the_same_id_and_no_other_has() {
        let id = |run, step, kind| id_of(&[run, step, kind]);

        assert_eq!(id("run_1", "a", "judged"), id("run_1", "a", "judged"));
        for other in [id("run_2", "a", "judged"), id("run_1", "b", "judged"), id("run_1", "a", "refuted")] {
            assert_ne!(other, id("run_1", "a", "judged"));
        }
    }

    #[test]
    fn texts_are_cut_at_characters_and_say_so() {
        assert_eq!(beginning(" short "), "short");
        assert_eq!(beginning(&"é".repeat(LONGEST + 1)), format!("{}…", "é".repeat(LONGEST)));
    }
}
