//! What the events of a session add up to.

use proctor_domain::session::{AgentReport, EngineName, SessionEnd, Spending, Told, Usage};
use proctor_domain::{MicroDollars, Timestamp};

use super::{AgentEvent, Finish, Stop};

/// Bytes kept of what an agent said at the end.
const LONGEST_CLAIM: usize = 16 * 1024;
/// What ends the reason of a crash of which nothing else is known.
const UNEXPLAINED: &str = "and without a result";
/// Bytes kept of what an engine said about an error.
const LONGEST_ERROR: usize = 2 * 1024;

/// Adds up the events of one session while it goes on.
#[derive(Debug)]
pub struct Account {
    report: AgentReport,
    stop: Option<Stop>,
    /// The account's quota was used up until then, and nothing came after that.
    used_up: Option<Option<Timestamp>>,
    /// The totals of programs before this one.
    carried: Carried,
}

#[derive(Debug, Default)]
struct Carried {
    turns: u32,
    spent: Vec<Spending>,
}

/// Adds what was spent, model by model.
fn add_up(sum: &mut Vec<Spending>, more: Vec<Spending>) {
    for spending in more {
        match sum.iter_mut().find(|known| known.model == spending.model) {
            Some(known) => {
                known.usage = known.usage + spending.usage;
                known.cost = [known.cost, spending.cost].into_iter().sum();
            }
            None => sum.push(spending),
        }
    }
}

impl Account {
    /// Of a session that has just begun.
    pub fn new(engine: EngineName) -> Self {
        let report = AgentReport {
            engine,
            conversation: None,
            model: None,
            responded: false,
            turns: 0,
            spent: Vec::new(),
            claim: None,
            result: None,
            error: None,
            unknown_lines: 0,
            told: Told::default(),
        };
        Self { report, stop: None, used_up: None, carried: Carried::default() }
    }

    /// Takes in one event. Returns whether it is a sign of progress: heartbeats and limits are none.
    pub fn add(&mut self, event: AgentEvent) -> bool {
        match event {
            AgentEvent::Started { conversation, model } => {
                self.report.conversation = Some(conversation);
                self.report.model = model.or(self.report.model.take());
                // More may be asked of it after a result; then that was not the end.
                true
            }
            AgentEvent::Text(text) => {
                self.report.claim = Some(shortened(text, LONGEST_CLAIM));
                self.answered()
            }
            AgentEvent::Thinking(_) | AgentEvent::ToolCall { .. } => self.answered(),
            AgentEvent::Turn => {
                self.report.turns = self.report.turns.saturating_add(1);
                self.answered()
            }
            AgentEvent::ToolResult { .. } | AgentEvent::Plan(_) | AgentEvent::Working => true,
            AgentEvent::Spent(spent) => {
                self.report.spent = spent;
                true
            }
            AgentEvent::Limit { until, reached } => {
                self.used_up = reached.then_some(until);
                false
            }
            AgentEvent::Said(_)
            | AgentEvent::Retrying { .. }
            | AgentEvent::ServerFailed { .. }
            | AgentEvent::Nothing
            | AgentEvent::Garbage => false,
            AgentEvent::Unknown(_) => {
                self.report.unknown_lines += 1;
                false
            }
            AgentEvent::Finished(finish) => {
                self.finish(*finish);
                true
            }
        }
    }

    fn answered(&mut self) -> bool {
        self.report.responded = true;
        self.used_up = None;
        true
    }

    fn finish(&mut self, finish: Finish) {
        self.report.turns = finish.turns.unwrap_or(self.report.turns).max(self.report.turns);
        if !finish.spent.is_empty() {
            self.report.spent = finish.spent;
        }
        if let Some(text) = finish.text {
            self.report.claim = Some(shortened(text, LONGEST_CLAIM));
        }
        self.report.result = finish.result.or(self.report.result.take());
        // The last word decides: what an earlier one complained of is over.
        self.report.error = match &finish.stop {
            Stop::Refused(reason) | Stop::Failed(reason) | Stop::NoResult(reason) => Some(shortened(reason.clone(), LONGEST_ERROR)),
            Stop::Done | Stop::TurnLimit | Stop::Budget | Stop::Interrupted | Stop::RateLimited { .. } | Stop::UsageLimit { .. } => None,
        };
        self.stop = Some(finish.stop);
    }

    /// Takes it that more is asked in the same program: what was said so far is not the end.
    pub fn reopen(&mut self) {
        self.stop = None;
    }

    /// Takes it that the conversation goes on in another program, whose totals begin anew.
    pub fn carry_over(&mut self) {
        self.stop = None;
        self.carried.turns = self.carried.turns.saturating_add(std::mem::take(&mut self.report.turns));
        add_up(&mut self.carried.spent, std::mem::take(&mut self.report.spent));
    }

    /// The answer of an engine that takes no schema, once it has said that it is done: the result, or the last words.
    pub fn answer(&self) -> Option<&str> {
        matches!(self.stop, Some(Stop::Done)).then(|| self.report.result.as_deref().or(self.report.claim.as_deref()).unwrap_or_default())
    }

    /// Takes this for the result, as JSON text, whatever the engine gave for one.
    pub fn settle_result(&mut self, result: Option<String>) {
        self.report.result = result;
    }

    /// What is known to be spent so far; `None` where nothing is said about it.
    pub fn cost(&self) -> Option<MicroDollars> {
        let known = self.carried.spent.iter().chain(&self.report.spent).filter_map(|spending| spending.cost.known());
        known.reduce(|sum, cost| MicroDollars(sum.0.saturating_add(cost.0)))
    }

    /// What is known to be used so far.
    pub fn used(&self) -> Usage {
        self.carried.spent.iter().chain(&self.report.spent).map(|spending| spending.usage).fold(Usage::default(), |sum, usage| sum + usage)
    }

    /// Whether the engine has said that it is done.
    pub fn is_finished(&self) -> bool {
        self.stop.is_some()
    }

    /// Whether this is said of an engine that said nothing about its end.
    pub fn is_unexplained(reason: &str) -> bool {
        reason.ends_with(UNEXPLAINED)
    }

    /// The session's id at its engine, once it is known.
    pub fn conversation(&self) -> Option<&str> {
        self.report.conversation.as_deref()
    }

    /// The report, and how the session ended if nothing but the engine itself ended it with this exit code (`None` when
    /// that is not known). `owes_result`: whether a schema was given.
    ///
    /// An exit code alone proves nothing: what the engine said before decides, and one that said nothing has crashed.
    pub fn close(self, exit_code: Option<i32>, owes_result: bool) -> (SessionEnd, AgentReport) {
        let Self { mut report, stop, used_up, carried } = self;
        report.turns = report.turns.saturating_add(carried.turns);
        let last = std::mem::replace(&mut report.spent, carried.spent);
        add_up(&mut report.spent, last);
        let end = match stop {
            Some(Stop::Done) if owes_result && report.result.is_none() => SessionEnd::NoResult,
            Some(Stop::Done) => SessionEnd::Completed,
            Some(Stop::TurnLimit) => SessionEnd::TurnLimit,
            Some(Stop::Budget) => SessionEnd::Budget,
            Some(Stop::RateLimited { until }) => SessionEnd::RateLimited { until },
            Some(Stop::UsageLimit { until }) => SessionEnd::UsageLimit { until },
            Some(Stop::Refused(_)) => SessionEnd::Refused,
            Some(Stop::NoResult(_)) => SessionEnd::NoResult,
            Some(Stop::Interrupted) => SessionEnd::Interrupted,
            Some(Stop::Failed(reason)) => SessionEnd::Crashed { reason },
            None => {
                let code = exit_code.map_or_else(|| "without an exit code".to_owned(), |code| format!("with exit code {code}"));
                let reason = format!("the engine ended {code} {UNEXPLAINED}");
                report.error.get_or_insert_with(|| reason.clone());
                match used_up {
                    Some(until) => SessionEnd::UsageLimit { until },
                    None => SessionEnd::Crashed { reason },
                }
            }
        };
        (end, report)
    }
}

/// At most `longest` bytes of a text, with a word about what is missing.
fn shortened(mut text: String, longest: usize) -> String {
    if text.len() > longest {
        let cut = (0..=longest).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let missing = text.len() - cut;
        text.truncate(cut);
        text.push_str(&format!("\n[… {missing} bytes not shown …]"));
        text.shrink_to_fit();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_a_long_text_takes_no_more_memory_than_it_needs() {
        let kept = shortened("x".repeat(4 << 20), LONGEST_CLAIM);

        assert!(kept.capacity() < 2 * LONGEST_CLAIM, "{}", kept.capacity());
        assert!(kept.ends_with("bytes not shown …]"));
    }
}
