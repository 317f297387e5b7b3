//! What memory knows about a step's task, looked up before its agent starts.

use std::collections::BTreeSet;

use proctor_cards::template;
use proctor_domain::procedure::{Failure, Task};
use proctor_domain::session::{Phase, Work};
use proctor_domain::{RecordId, RepoPath, SessionId};
use proctor_engine::in_words;
use proctor_recall::Found;
use proctor_recall::advice::{Advice, Brief, brief};

use super::Notice;
use super::driver::Driver;
use crate::session::template_values;

/// About 1,200 tokens.
const MOST_CHARACTERS: usize = 1_200 * 4;
/// Questions that memory is asked about one task.
const MOST_QUESTIONS: usize = 8;
/// Characters of one question; a longer one is asked about in parts.
const LONGEST_QUESTION: usize = 2_000;
/// Words without which a part of a text asks nothing.
const FEWEST_WORDS: usize = 3;
/// Files that are named to memory.
const MOST_FILES: usize = 50;
/// Lines at the end of a check's output that a repair asks about.
const LINES_OF_OUTPUT: usize = 6;

/// Which records may be shown.
#[derive(Debug, Clone, Copy)]
pub(super) enum Showing<'a> {
    /// Any.
    Any,
    /// Those that are recorded as shown already: a session that was opened and never started is started with no more.
    Recorded(&'a [RecordId]),
}

impl Driver<'_> {
    /// What the agent of this task is told of what memory knows. Judges are told nothing: they are not to be told what to think.
    /// Memory that can't be read is said once, and the run goes on without.
    pub(super) fn known_here(&mut self, index: usize, task: Task, showing: Showing<'_>) -> Option<Brief> {
        let site = self.context.site;
        let memory = site.memory.clone().filter(|_| site.settings.known_here)?;
        if !task.is_of_an_agent() || !self.definition.uses_memory(&self.run.steps[index].plan.id) {
            return None;
        }
        let now = self.context.clock.now();
        match memory.known(&self.questions(index, task), &self.files_of_run(), now) {
            Ok(found) => {
                let may_be_shown = |found: &&Found| match showing {
                    Showing::Any => true,
                    Showing::Recorded(ids) => ids.contains(&found.entry.record.id),
                };
                let advice: Vec<Advice<'_>> = found.iter().filter(may_be_shown).map(Found::advice).collect();
                brief(&advice, now, MOST_CHARACTERS)
            }
            Err(error) => {
                if !std::mem::replace(&mut self.told_of_memory, true) {
                    (self.context.notify)(Notice::NotKnown { reason: &in_words(&error) });
                }
                None
            }
        }
    }

    /// The same for a session that was opened before its driver died, and not started.
    pub(super) fn known_again(&mut self, index: usize, session: &SessionId, task: Task) -> Option<Brief> {
        let recorded = self.run.steps[index].sessions.iter().find(|opened| opened.id == *session)?.known.clone();
        if recorded.is_empty() { None } else { self.known_here(index, task, Showing::Recorded(&recorded)) }
    }

    /// What memory is asked about a task: what the person wants, what the agent is asked, what was found wanting.
    fn questions(&self, index: usize, task: Task) -> Vec<String> {
        let mut texts = Vec::new();
        if task.work == Work::Repair {
            texts.extend(self.found_wanting(index));
        }
        texts.extend(self.run.started.directive.clone());
        texts.extend(self.prompts(index, task.work));
        let step = self.definition.step(&self.run.steps[index].plan.id);
        texts.extend(step.map(|step| format!("{} {}", self.run.started.procedure, step.description)));
        questions_of(&texts)
    }

    /// What the agents of this work are asked, as the card has it with its values.
    pub(super) fn prompts(&self, index: usize, work: Work) -> Vec<String> {
        let step = self.definition.step(&self.run.steps[index].plan.id);
        let agents = step.and_then(|step| step.run.as_ref()).map_or(&[][..], |run| run.agents.as_slice());
        let is_meant = |number: usize| match work {
            Work::Agent(only) => usize::try_from(only).is_ok_and(|only| only == number),
            Work::Repair | Work::Shells | Work::Judge(_) => true,
        };
        let values = template_values(&self.run, &self.definition);
        let meant = (1..).zip(agents).filter(|(number, _)| is_meant(*number));
        meant.map(|(_, agent)| template::render(&agent.prompt, &values).unwrap_or_else(|_| agent.prompt.clone())).collect()
    }

    fn found_wanting(&self, index: usize) -> Option<String> {
        let record = &self.run.steps[index];
        if let Failure::Judged { reasoning } = record.repairing.as_ref()? {
            return Some(reasoning.clone());
        }
        let report = record.last_report(Phase::Validate)?;
        let end = |text: &str| {
            let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
            lines[lines.len().saturating_sub(LINES_OF_OUTPUT)..].join("\n")
        };
        Some(format!("{}\n{}", end(&report.stderr.text()), end(&report.stdout.text())))
    }

    /// What the run has changed so far.
    fn files_of_run(&self) -> Vec<String> {
        let mut paths: BTreeSet<RepoPath> = self.run.steps.iter().flat_map(|step| step.changed.iter().cloned()).collect();
        if let (Some(from), Some(to)) = (&self.run.started.head, &self.run.head) {
            // Whether memory is asked well is no reason to stop.
            paths.extend(self.context.site.repository.differing(from, to).unwrap_or_default());
        }
        paths.iter().take(MOST_FILES).map(ToString::to_string).collect()
    }
}

/// Each text whole, and then its sentences.
fn questions_of(texts: &[String]) -> Vec<String> {
    let whole = texts.iter().map(|text| text.chars().take(LONGEST_QUESTION).collect::<String>());
    let mut questions: Vec<String> = Vec::new();
    for question in whole.chain(texts.iter().flat_map(|text| sentences(text))) {
        let says_enough = question.split_whitespace().nth(FEWEST_WORDS - 1).is_some();
        if says_enough && !questions.contains(&question) && questions.len() < MOST_QUESTIONS {
            questions.push(question);
        }
    }
    questions
}

fn sentences(text: &str) -> impl Iterator<Item = String> {
    let of_line = |line: &str| line.split_inclusive(". ").flat_map(|part| part.split("; ")).map(|part| part.trim().to_owned()).collect();
    text.lines().flat_map(move |line| -> Vec<String> { of_line(line) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_asked_about_whole_and_in_its_sentences_once_each() {
        let prompt = "Raise the version in Cargo.toml. Then run the release script; tag it.\nDon't push the tag";

        let questions = questions_of(&[prompt.to_owned(), "Don't push the tag".to_owned(), "Tidy up".to_owned()]);

        assert_eq!(questions, [prompt, "Don't push the tag", "Raise the version in Cargo.toml.", "Then run the release script"]);
    }

    #[test]
    fn a_long_task_asks_a_bounded_number_of_bounded_questions() {
        let text = (0..500).map(|number| format!("This is sentence number {number}. ")).collect::<String>();

        let questions = questions_of(&[text]);

        assert_eq!(questions.len(), MOST_QUESTIONS);
        assert!(questions.iter().all(|question| question.chars().count() <= LONGEST_QUESTION));
    }
}
