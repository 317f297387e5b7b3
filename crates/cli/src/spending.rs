//! What the sessions of agents used and cost, added up so that what nobody knows never looks like nothing.

use proctor_domain::session::{AgentReport, SessionRecord, Spending, Usage};
use proctor_domain::{Cost, MicroDollars};
use serde::Serialize;

use crate::run_text::counted;

/// Any number of sessions together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub sessions: usize,
    /// Turns of the model, as far as they are known.
    pub turns: u64,
    usage: Usage,
    /// Sessions whose tokens, or part of whose tokens, nobody knows.
    unknown_usage: usize,
    known: MicroDollars,
    /// Sessions whose cost, or part of whose cost, nobody knows.
    unknown_cost: usize,
}

/// The same as JSON.
#[derive(Debug, Serialize)]
pub struct TallyDocument {
    sessions: usize,
    turns: u64,
    tokens: TokensDocument,
    /// What is known of the cost; null where nothing is.
    cost_usd: Option<f64>,
    /// Whether that is all of it.
    cost_complete: bool,
    unknown_cost_sessions: usize,
}

/// Tokens as JSON.
#[derive(Debug, Serialize)]
pub struct TokensDocument {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    /// Whether that is all of them.
    complete: bool,
}

impl Tally {
    /// The engine's sessions among these.
    pub fn of<'a>(sessions: impl IntoIterator<Item = &'a SessionRecord>) -> Self {
        let mut tally = Self::default();
        for session in sessions.into_iter().filter(|session| session.work.needs_engine()) {
            match &session.report {
                Some(report) if report.is_free() => tally.add_free(),
                report => tally.add(report.as_ref().and_then(|report| report.agent.as_deref())),
            }
        }
        tally
    }

    /// Takes in a session; `None` for one that nothing is known about.
    pub fn add(&mut self, report: Option<&AgentReport>) {
        self.sessions += 1;
        let Some(report) = report else {
            self.unknown_usage += 1;
            self.unknown_cost += 1;
            return;
        };
        self.turns += u64::from(report.turns);
        report.spent.iter().for_each(|spending| self.spend(spending));
        self.unknown_cost += usize::from(report.cost() == Cost::Unknown);
        self.unknown_usage += usize::from(report.spent.is_empty());
    }

    /// Takes in a session that its provider turned away before anything was used.
    pub fn add_free(&mut self) {
        self.sessions += 1;
    }

    /// Takes in what one model did in a session of several.
    pub fn add_part(&mut self, turns: u32, spending: &Spending) {
        self.sessions += 1;
        self.turns += u64::from(turns);
        self.spend(spending);
        self.unknown_cost += usize::from(spending.cost == Cost::Unknown);
    }

    fn spend(&mut self, Spending { usage, cost, .. }: &Spending) {
        let add = |total: &mut u64, part: u64| *total = total.saturating_add(part);
        add(&mut self.usage.input, usage.input);
        add(&mut self.usage.output, usage.output);
        add(&mut self.usage.cache_read, usage.cache_read);
        add(&mut self.usage.cache_write, usage.cache_write);
        add(&mut self.known.0, cost.known().unwrap_or_default().0);
    }

    /// Whether all of the cost is known.
    pub fn is_complete(&self) -> bool {
        self.unknown_cost == 0
    }

    /// Dollars, as far as they are known; `None` where nothing is.
    pub fn cost_usd(&self) -> Option<f64> {
        (self.is_complete() || self.known.0 > 0).then(|| dollars(self.known))
    }

    /// The cost for people: `0.25 USD`, `unknown`, `at least 0.25 USD (2 sessions of unknown cost)`.
    pub fn cost_text(&self) -> String {
        match (self.unknown_cost, self.known) {
            (0, known) => Cost::Known(known).to_string(),
            (_, MicroDollars(0)) => Cost::Unknown.to_string(),
            (unknown, known) => format!("at least {} ({} of unknown cost)", Cost::Known(known), counted(unknown, "session")),
        }
    }

    /// Input, output, read from and written to the cache, for people.
    pub fn token_texts(&self) -> [String; 4] {
        let Usage { input, output, cache_read, cache_write } = self.usage;
        [input, output, cache_read, cache_write].map(|count| match (self.unknown_usage, count) {
            (0, count) => short_count(count),
            (unknown, 0) if unknown == self.sessions => "unknown".to_owned(),
            (_, count) => format!("≥ {}", short_count(count)),
        })
    }

    /// As JSON.
    pub fn document(&self) -> TallyDocument {
        TallyDocument {
            sessions: self.sessions,
            turns: self.turns,
            tokens: tokens(self.usage, self.unknown_usage == 0),
            cost_usd: self.cost_usd(),
            cost_complete: self.is_complete(),
            unknown_cost_sessions: self.unknown_cost,
        }
    }
}

/// Tokens as JSON.
pub fn tokens(usage: Usage, complete: bool) -> TokensDocument {
    let Usage { input, output, cache_read, cache_write } = usage;
    TokensDocument { input, output, cache_read, cache_write, complete }
}

/// An amount as JSON has it.
pub fn dollars(amount: MicroDollars) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "exact up to nine billion dollars")]
    let micros = amount.0 as f64;
    micros / 1_000_000.0
}

/// `812`, `3.4k`, `12.0M`.
fn short_count(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use proctor_domain::session::Told;
    use proctor_engine::agent::EngineKind;

    use super::*;

    fn report(costs: &[Cost]) -> AgentReport {
        let usage = Usage { input: 1_200, output: 80, cache_read: 0, cache_write: 0 };
        let spent = costs.iter().map(|cost| Spending { model: "m".to_owned(), usage, cost: *cost }).collect();
        AgentReport {
            engine: EngineKind::Scripted.engine_name(),
            conversation: None,
            model: None,
            responded: true,
            turns: 2,
            spent,
            claim: None,
            result: None,
            error: None,
            unknown_lines: 0,
            told: Told::default(),
        }
    }

    fn tally(reports: &[Option<AgentReport>]) -> Tally {
        let mut tally = Tally::default();
        reports.iter().for_each(|report| tally.add(report.as_ref()));
        tally
    }

    #[test]
    fn an_unknown_cost_is_never_shown_as_nothing() {
        let quarter = Cost::Known(MicroDollars(250_000));
        let known = || Some(report(&[quarter]));
        for (reports, text, usd) in [
            (vec![], "0.00 USD", Some(0.0)),
            (vec![known(), known()], "0.50 USD", Some(0.5)),
            (vec![None], "unknown", None),
            (vec![Some(report(&[]))], "unknown", None),
            (vec![Some(report(&[Cost::Known(MicroDollars(0))])), None], "unknown", None),
            (vec![known(), None], "at least 0.25 USD (1 session of unknown cost)", Some(0.25)),
            (vec![Some(report(&[quarter, Cost::Unknown])), None], "at least 0.25 USD (2 sessions of unknown cost)", Some(0.25)),
        ] {
            let tally = tally(&reports);

            assert_eq!((tally.cost_text().as_str(), tally.cost_usd()), (text, usd), "{reports:?}");
        }
    }

    #[test]
    fn tokens_say_when_they_are_not_all() {
        let known = Some(report(&[Cost::Unknown]));

        assert_eq!(tally(std::slice::from_ref(&known)).token_texts(), ["1.2k", "80", "0", "0"]);
        assert_eq!(tally(&[known, None]).token_texts(), ["≥ 1.2k", "≥ 80", "≥ 0", "≥ 0"]);
        assert_eq!(tally(&[None]).token_texts(), ["unknown", "unknown", "unknown", "unknown"]);
    }
}
