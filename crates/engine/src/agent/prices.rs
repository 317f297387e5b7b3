//! What models cost, for engines that tell tokens and no money.
//!
//! Public list prices of a provider's own API, in dollars for a million tokens, as they were in November 2026. They are an
//! estimate: a plan is paid otherwise, and long prompts, batches and fast answers have prices of their own. A model that is
//! not in the table has no price at all: a guess would look like a fact, and a budget would rest on it.

use proctor_domain::session::Usage;
use proctor_domain::{Cost, MicroDollars};

/// Micro-dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Price {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

const MILLION: u128 = 1_000_000;

/// Models of the same price, by the names that the provider gives them.
const PRICES: [(&[&str], Price); 16] = [
    (&["gpt-6.2-astra"], thousandths(8_000, 40_000, 400)),
    (&["gpt-6.2-sol", "gpt-6.1-sol"], written(thousandths(2_000, 10_000, 100), 2_500)),
    (&["gpt-6-astra"], written(thousandths(10_000, 50_000, 1_000), 12_500)),
    (&["gpt-6-sol"], written(thousandths(2_000, 10_000, 200), 2_500)),
    (&["gpt-6-luna"], written(thousandths(100, 500, 10), 125)),
    (&["gpt-5.6-sol"], thousandths(4_000, 20_000, 400)),
    (&["gpt-5.6-terra"], thousandths(2_000, 12_000, 200)),
    (&["gpt-5.6-luna"], thousandths(200, 1_200, 20)),
    (&["gpt-5.5"], thousandths(5_000, 30_000, 500)),
    (&["gpt-5.4"], thousandths(2_500, 15_000, 250)),
    (&["gpt-5.4-mini"], thousandths(750, 4_500, 75)),
    (&["gpt-5.2", "gpt-5.2-codex", "gpt-5.3-codex"], thousandths(1_750, 14_000, 175)),
    (&["gpt-5", "gpt-5-codex", "gpt-5.1", "gpt-5.1-codex", "gpt-5.1-codex-max"], thousandths(1_250, 10_000, 125)),
    (&["gpt-5-mini", "gpt-5.1-codex-mini"], thousandths(250, 2_000, 25)),
    (&["gpt-5-nano"], thousandths(50, 400, 5)),
    (&["gpt-4.1", "o3"], thousandths(2_000, 8_000, 500)),
];

/// A price from thousandths of a dollar. Writing to a cache costs what reading anew does, unless it is said otherwise.
const fn thousandths(input: u64, output: u64, cache_read: u64) -> Price {
    Price { input: input * 1_000, output: output * 1_000, cache_read: cache_read * 1_000, cache_write: input * 1_000 }
}

/// The same, with what writing to the cache costs.
const fn written(price: Price, cache_write: u64) -> Price {
    Price { cache_write: cache_write * 1_000, ..price }
}

/// What this use of a model costs by the list.
pub(crate) fn list_cost(model: &str, usage: &Usage) -> Cost {
    let Some(price) = price(model) else { return Cost::Unknown };
    let parts = [
        (usage.input, price.input),
        (usage.output, price.output),
        (usage.cache_read, price.cache_read),
        (usage.cache_write, price.cache_write),
    ];
    let total: u128 = parts.into_iter().map(|(tokens, price)| u128::from(tokens) * u128::from(price)).sum();
    // What can't be paid by anybody is as good as the most that can be written down.
    Cost::Known(MicroDollars(u64::try_from(total / MILLION).unwrap_or(u64::MAX)))
}

/// The price of this model: of its own name, of the snapshot of a day (`gpt-5-2025-08-07`), or with the provider's name
/// before it.
fn price(model: &str) -> Option<Price> {
    let name = model.strip_prefix("openai/").unwrap_or(model);
    let is = |known: &str| name.strip_prefix(known).is_some_and(|rest| rest.is_empty() || is_day(rest));
    PRICES.iter().find(|(models, _)| models.iter().any(|known| is(known))).map(|(_, price)| *price)
}

/// Whether this is the end of a snapshot's name: `-2025-08-07`.
fn is_day(rest: &str) -> bool {
    rest.len() == 11
        && rest.bytes().enumerate().all(|(at, byte)| if matches!(at, 0 | 5 | 8) { byte == b'-' } else { byte.is_ascii_digit() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const USAGE: Usage = Usage { input: 1_000_000, output: 100_000, cache_read: 500_000, cache_write: 200_000 };

    #[test]
    fn each_kind_of_token_has_its_price() {
        assert_eq!(list_cost("gpt-6.2-sol", &USAGE), Cost::Known(MicroDollars(2_000_000 + 1_000_000 + 50_000 + 500_000)));
        assert_eq!(list_cost("gpt-5", &USAGE), Cost::Known(MicroDollars(1_250_000 + 1_000_000 + 62_500 + 250_000)));
        assert_eq!(list_cost("gpt-5", &Usage::default()), Cost::Known(MicroDollars(0)));
    }

    #[test]
    fn a_snapshot_costs_what_its_model_does_and_a_sibling_does_not() {
        let known = |model| list_cost(model, &USAGE) != Cost::Unknown;

        assert!(known("gpt-5.5-2026-04-23") && known("openai/gpt-5.5"));
        assert_eq!(["gpt-5.5-pro", "gpt-5.9", "gpt-5.5-2026", "gpt", "", "model-of-nobody"].map(known), [false; 6]);
    }

    #[test]
    fn no_number_of_tokens_is_too_much() {
        let most = Usage { input: u64::MAX, output: u64::MAX, cache_read: u64::MAX, cache_write: u64::MAX };

        assert_eq!(list_cost("gpt-6-astra", &most), Cost::Known(MicroDollars(u64::MAX)));
    }
}
