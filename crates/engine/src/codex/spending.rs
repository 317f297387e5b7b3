//! What a conversation used and what that costs by the list, by totals that go on from one session to the next.

use std::collections::BTreeMap;

use proctor_domain::session::{Spending, Usage};
use serde::Deserialize;

use crate::agent::list_cost;

/// Tokens since a conversation began. What was read from the cache and written into it is among the input.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct Counted {
    #[serde(alias = "inputTokens")]
    input_tokens: u64,
    #[serde(alias = "cachedInputTokens")]
    cached_input_tokens: u64,
    #[serde(alias = "cacheWriteInputTokens")]
    cache_write_input_tokens: u64,
    #[serde(alias = "outputTokens")]
    output_tokens: u64,
}

impl Counted {
    pub(super) fn usage(self) -> Usage {
        let cached = self.cached_input_tokens.saturating_add(self.cache_write_input_tokens);
        Usage {
            input: self.input_tokens.saturating_sub(cached),
            output: self.output_tokens,
            cache_read: self.cached_input_tokens,
            cache_write: self.cache_write_input_tokens,
        }
    }
}

/// What was used beyond this.
fn since(usage: Usage, before: Usage) -> Usage {
    Usage {
        input: usage.input.saturating_sub(before.input),
        output: usage.output.saturating_sub(before.output),
        cache_read: usage.cache_read.saturating_sub(before.cache_read),
        cache_write: usage.cache_write.saturating_sub(before.cache_write),
    }
}

/// What one session has spent.
#[derive(Debug, Default)]
pub(super) struct Spent {
    /// The last total of each conversation, of which there are several where agents are set to work by the agent.
    told: BTreeMap<String, Usage>,
    by_model: Vec<Spending>,
}

impl Spent {
    /// This much of a conversation was paid for before.
    pub(super) fn paid(&mut self, conversation: &str, total: Usage) {
        self.told.insert(conversation.to_owned(), total);
    }

    /// Takes in the total of a conversation. Whether the model has answered since the last one.
    pub(super) fn add(&mut self, conversation: &str, total: Usage, model: &str) -> bool {
        let more = since(total, self.told.insert(conversation.to_owned(), total).unwrap_or_default());
        if more == Usage::default() {
            return false;
        }
        match self.by_model.iter_mut().find(|spending| spending.model == model) {
            Some(spending) => {
                spending.usage = spending.usage + more;
                spending.cost = list_cost(model, &spending.usage);
            }
            None => self.by_model.push(Spending { model: model.to_owned(), usage: more, cost: list_cost(model, &more) }),
        }
        more.output > 0
    }

    pub(super) fn by_model(&self) -> Vec<Spending> {
        self.by_model.clone()
    }
}

#[cfg(test)]
mod tests {
    use proctor_domain::{Cost, MicroDollars};

    use super::*;

    fn counted(input: u64, cached: u64, output: u64) -> Usage {
        let text = format!(r#"{{"totalTokens":1,"inputTokens":{input},"cachedInputTokens":{cached},"outputTokens":{output}}}"#);
        serde_json::from_str::<Counted>(&text).unwrap().usage()
    }

    #[test]
    fn what_was_paid_before_is_not_paid_again_and_each_model_has_its_price() {
        let mut spent = Spent::default();
        spent.paid("t", counted(1_000, 400, 50));

        let answered = [
            spent.add("t", counted(1_000, 400, 50), "gpt-5.5"),
            spent.add("t", counted(1_200, 500, 60), "gpt-5.5"),
            spent.add("t", counted(1_300, 500, 60), "gpt-5.5"),
            spent.add("t", counted(1_400, 500, 70), "gpt-of-nobody"),
            spent.add("child", counted(100, 0, 10), "gpt-5.5"),
        ];

        let usage = |input, cache_read, output| Usage { input, output, cache_read, ..Usage::default() };
        assert_eq!(answered, [false, true, false, true, true]);
        assert_eq!(
            spent.by_model(),
            [
                Spending { model: "gpt-5.5".to_owned(), usage: usage(300, 100, 20), cost: Cost::Known(MicroDollars(2_150)) },
                Spending { model: "gpt-of-nobody".to_owned(), usage: usage(100, 0, 10), cost: Cost::Unknown },
            ]
        );
    }
}
