//! What a session used and what that cost, as far as its agent tells.

use proctor_domain::session::{Spending, Usage};
use proctor_domain::{Cost, MicroDollars};

use super::answer::{Prompted, TokenCount};
use super::update::Price;

/// What is known so far.
#[derive(Debug, Default)]
pub(super) struct Spent {
    usage: Option<Usage>,
    /// The only model of which something was told.
    model: Option<String>,
    several_models: bool,
    /// What the whole conversation has cost by now.
    total: Option<Cost>,
    before: Before,
}

/// What the conversation had cost before this session.
#[derive(Debug, Clone, Copy, Default)]
enum Before {
    /// It is new.
    #[default]
    Nothing,
    /// It goes on, and nobody has said.
    Unknown,
    Told(Cost),
}

impl Spent {
    /// The conversation is one that goes on. Costs are told of the whole of it.
    pub(super) fn goes_on(&mut self) {
        self.before = Before::Unknown;
    }

    /// Takes in what the conversation has cost by now.
    pub(super) fn cost(&mut self, price: Option<&Price>, was_prompted: bool) {
        let Some(price) = price else { return };
        // Nothing is what is told by one that does not know.
        let dollars = (price.currency == "USD" && price.amount > 0.0).then(|| MicroDollars::from_float(price.amount)).flatten();
        let cost = dollars.map_or(Cost::Unknown, Cost::Known);
        if was_prompted {
            self.total = Some(cost);
        } else {
            self.before = Before::Told(cost);
        }
    }

    /// Takes in what one prompt used.
    pub(super) fn prompt(&mut self, prompted: &Prompted) {
        let models = &prompted.meta.quota.model_usage;
        for one in models {
            self.several_models |= self.model.as_ref().is_some_and(|model| *model != one.model);
            self.model = Some(one.model.clone());
        }
        // By model there may be more than the prompt's own: what the agent asks a model on the side.
        let by_models =
            || (!models.is_empty()).then(|| models.iter().fold(Usage::default(), |sum, one| added(sum, usage(&one.token_count))));
        if let Some(used) = prompted.usage.as_ref().map(usage).or_else(by_models) {
            self.usage = Some(added(self.usage.unwrap_or_default(), used));
        }
    }

    /// What to report; `model` is the one that the session is set to.
    pub(super) fn told(&self, model: Option<&str>) -> Vec<Spending> {
        let cost = self.of_this_session();
        if self.usage.is_none() && cost == Cost::Unknown {
            return Vec::new();
        }
        let only = self.model.as_deref().filter(|_| !self.several_models);
        let model = only.or(model).or(self.model.as_deref()).unwrap_or("unknown").to_owned();
        vec![Spending { model, usage: self.usage.unwrap_or_default(), cost }]
    }

    fn of_this_session(&self) -> Cost {
        match (self.total, self.before) {
            (Some(Cost::Known(total)), Before::Nothing) => Cost::Known(total),
            // One that has become less is another sum than was thought.
            (Some(Cost::Known(total)), Before::Told(Cost::Known(before))) if total >= before => {
                Cost::Known(MicroDollars(total.0 - before.0))
            }
            (Some(_), Before::Nothing | Before::Unknown | Before::Told(_)) | (None, _) => Cost::Unknown,
        }
    }
}

/// Some count what came from the cache as a part of the input, and their total says so.
fn usage(count: &TokenCount) -> Usage {
    let cached = count.cached_read_tokens.saturating_add(count.cached_write_tokens);
    let is_within = count.total_tokens == count.input_tokens.saturating_add(count.output_tokens) && cached <= count.input_tokens;
    Usage {
        input: if is_within { count.input_tokens - cached } else { count.input_tokens },
        output: count.output_tokens,
        cache_read: count.cached_read_tokens,
        cache_write: count.cached_write_tokens,
    }
}

fn added(one: Usage, other: Usage) -> Usage {
    Usage {
        input: one.input.saturating_add(other.input),
        output: one.output.saturating_add(other.output),
        cache_read: one.cache_read.saturating_add(other.cache_read),
        cache_write: one.cache_write.saturating_add(other.cache_write),
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::parsed;
    use super::*;

    fn price(amount: f64, currency: &str) -> Price {
        Price { amount, currency: currency.to_owned() }
    }

    fn cost_of(spent: &Spent) -> Option<Cost> {
        spent.told(None).first().map(|spending| spending.cost)
    }

    #[test]
    fn tokens_of_the_cache_are_counted_once_whichever_way_they_are_told() {
        let told = |text: &str| {
            let mut spent = Spent::default();
            spent.prompt(&parsed(text).unwrap());
            spent.told(Some("set")).pop().map(|spending| (spending.model, spending.usage))
        };
        let expected = |model: &str| Some((model.to_owned(), Usage { input: 100, output: 10, cache_read: 50, cache_write: 5 }));

        let apart = r#"{"usage":{"inputTokens":100,"outputTokens":10,"cachedReadTokens":50,"cachedWriteTokens":5,"totalTokens":165}}"#;
        let within = r#"{"usage":{"inputTokens":155,"outputTokens":10,"cachedReadTokens":50,"cachedWriteTokens":5,"totalTokens":165}}"#;
        let beside = r#"{"_meta":{"quota":{"model_usage":[{"model":"m","token_count":
            {"totalTokens":165,"inputTokens":155,"cachedInputTokens":50,"cacheWriteInputTokens":5,"outputTokens":10}}]}}}"#;
        assert_eq!([told(apart), told(within), told(beside)], [expected("set"), expected("set"), expected("m")]);
        assert_eq!(told(r#"{"stopReason":"end_turn","usage":7}"#), None);
    }

    #[test]
    fn a_session_costs_what_its_conversation_cost_more_afterwards() {
        let (mut new, mut gone_on, mut untold) = (Spent::default(), Spent::default(), Spent::default());
        gone_on.goes_on();
        untold.goes_on();
        gone_on.cost(Some(&price(1.5, "USD")), false);
        for spent in [&mut new, &mut gone_on, &mut untold] {
            spent.cost(Some(&price(2.0, "USD")), true);
            spent.cost(None, true);
        }

        assert_eq!(cost_of(&new), Some(Cost::Known(MicroDollars(2_000_000))));
        assert_eq!(cost_of(&gone_on), Some(Cost::Known(MicroDollars(500_000))));
        assert_eq!(cost_of(&untold), None);
        new.cost(Some(&price(2.0, "EUR")), true);
        assert_eq!(cost_of(&new), None);
    }
}
