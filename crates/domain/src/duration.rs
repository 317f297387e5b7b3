//! Durations as people write them in cards: `90s`, `1.5h`, `2 w`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A duration as a card writes it: a number, optional spaces, one of `s m h d w`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CardDuration {
    millis: u64,
}

/// A text that is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a duration: write a number and one of s, m, h, d, w, as in 90s, 1.5h or 2w")]
pub struct InvalidDuration(pub String);

const UNITS: [(char, u64); 5] = [('w', 604_800_000), ('d', 86_400_000), ('h', 3_600_000), ('m', 60_000), ('s', 1_000)];

/// Ten thousand years; longer durations would overflow what a timestamp can hold.
const LONGEST_MILLIS: u64 = 10_000 * 366 * 86_400_000;

impl CardDuration {
    /// A duration of whole milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self { millis }
    }

    /// A duration of whole days.
    pub const fn days(days: u64) -> Self {
        Self { millis: days * 86_400_000 }
    }

    /// A duration of whole minutes.
    pub const fn minutes(minutes: u64) -> Self {
        Self { millis: minutes * 60_000 }
    }

    /// Its length in milliseconds.
    pub const fn millis(self) -> u64 {
        self.millis
    }
}

impl From<CardDuration> for Duration {
    fn from(duration: CardDuration) -> Self {
        Self::from_millis(duration.millis)
    }
}

impl FromStr for CardDuration {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, InvalidDuration> {
        let invalid = || InvalidDuration(text.to_owned());
        let trimmed = text.trim();
        let unit_char = trimmed.chars().next_back().ok_or_else(invalid)?;
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit_char).ok_or_else(invalid)?;
        let number = trimmed[..trimmed.len() - unit_char.len_utf8()].trim_end();
        let (whole, fraction) = number.split_once('.').map_or((number, None), |(whole, part)| (whole, Some(part)));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || fraction.is_some_and(|part| !digits(part)) {
            return Err(invalid());
        }
        let whole_millis = whole.parse::<u64>().ok().and_then(|count| count.checked_mul(*unit)).ok_or_else(invalid)?;
        let millis = whole_millis.checked_add(fraction_millis(fraction.unwrap_or("0"), *unit)).ok_or_else(invalid)?;
        if millis > LONGEST_MILLIS {
            return Err(invalid());
        }
        Ok(Self { millis })
    }
}

/// The part of `unit` that the decimal digits `fraction` name; digits past the ninth can't matter.
fn fraction_millis(fraction: &str, unit: u64) -> u64 {
    let digits = &fraction[..fraction.len().min(9)];
    let scale = 10_u128.pow(u32::try_from(digits.len()).unwrap_or(0));
    let part = u128::from(digits.parse::<u64>().unwrap_or(0)) * u128::from(unit) / scale;
    u64::try_from(part).unwrap_or(0)
}

impl fmt::Display for CardDuration {
    /// The shortest text that reads back as the same duration.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, unit) in UNITS {
            if self.millis >= unit && self.millis.is_multiple_of(unit) {
                return write!(formatter, "{}{name}", self.millis / unit);
            }
        }
        let (seconds, rest) = (self.millis / 1_000, self.millis % 1_000);
        if rest == 0 {
            return write!(formatter, "{seconds}s");
        }
        write!(formatter, "{}s", format!("{seconds}.{rest:03}").trim_end_matches('0'))
    }
}

/// How long a finished run is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expiry {
    /// Removed by `gc` this long after its end.
    After(CardDuration),
    /// Kept until a person removes it.
    Never,
}

impl FromStr for Expiry {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, InvalidDuration> {
        if text.trim() == "never" { Ok(Self::Never) } else { text.parse().map(Self::After) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_write_them() {
        for (text, millis) in
            [("90s", 90_000), ("1.5h", 5_400_000), ("2 w", 1_209_600_000), ("0.25s", 250), ("6w", 3_628_800_000), (" 1d ", 86_400_000)]
        {
            assert_eq!(text.parse::<CardDuration>().map(CardDuration::millis), Ok(millis), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "s", "5", "5x", "-1s", "1.s", ".5s", "1e3s", "5 ms", "99999999999999999w", "1,5h", "٣s"] {
            assert!(text.parse::<CardDuration>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_printed_duration_reads_back_as_itself() {
        for millis in [0, 1, 250, 1_000, 60_000, 61_000, 86_400_000, 5_400_000, 604_800_000, 90_500] {
            let duration = CardDuration::from_millis(millis);

            assert_eq!(duration.to_string().parse(), Ok(duration));
        }
    }
}
