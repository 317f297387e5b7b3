//! What sessions cost.

use std::fmt;
use std::iter::Sum;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An amount of United States dollars, in millionths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MicroDollars(pub u64);

/// A text that is no amount of dollars.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an amount of dollars: write it like 2 or 0.25, at most six digits after the point")]
pub struct InvalidDollars(pub String);

impl MicroDollars {
    /// Whole dollars.
    pub const fn dollars(dollars: u64) -> Self {
        Self(dollars * 1_000_000)
    }

    /// What a program reports as a decimal number; `None` when it is no amount.
    pub fn from_float(dollars: f64) -> Option<Self> {
        let micros = (dollars * 1_000_000.0).round();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked before")]
        (0.0..1e18).contains(&micros).then_some(Self(micros as u64))
    }
}

impl fmt::Display for MicroDollars {
    /// At least two digits after the point, and as many more as the amount needs.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:06}", self.0 % 1_000_000);
        let needed = digits.trim_end_matches('0').len().max(2);
        write!(formatter, "{}.{}", self.0 / 1_000_000, &digits[..needed])
    }
}

impl FromStr for MicroDollars {
    type Err = InvalidDollars;

    fn from_str(text: &str) -> Result<Self, InvalidDollars> {
        let invalid = || InvalidDollars(text.to_owned());
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) || fraction.len() > 6 {
            return Err(invalid());
        }
        let micros = format!("{fraction:0<6}").parse::<u64>().map_err(|_| invalid())?;
        let whole = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(1_000_000)).ok_or_else(invalid)?;
        whole.checked_add(micros).map(Self).ok_or_else(invalid)
    }
}

/// What something cost. An unknown cost is never shown or counted as nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cost {
    /// The engine, or a table of prices, says so.
    Known(MicroDollars),
    /// Nobody says.
    Unknown,
}

impl Cost {
    /// The amount, where it is known.
    pub fn known(self) -> Option<MicroDollars> {
        match self {
            Self::Known(amount) => Some(amount),
            Self::Unknown => None,
        }
    }
}

impl Sum for Cost {
    /// One unknown part makes the whole unknown.
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::Known(MicroDollars(0)), |total, cost| match (total, cost) {
            (Self::Known(total), Self::Known(cost)) => Self::Known(MicroDollars(total.0.saturating_add(cost.0))),
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
        })
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(amount) => write!(formatter, "{amount} USD"),
            Self::Unknown => formatter.write_str("unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_that_are_none_are_refused() {
        for text in ["", ".5", "1.", "-1", "1e3", "1.0000001", "ten", "99999999999999999999"] {
            assert_eq!(text.parse::<MicroDollars>(), Err(InvalidDollars(text.to_owned())));
        }
        assert_eq!((MicroDollars::from_float(f64::NAN), MicroDollars::from_float(-0.5)), (None, None));
    }

    #[test]
    fn amounts_are_written_with_the_digits_they_need() {
        let written = |text: &str| text.parse::<MicroDollars>().unwrap().to_string();

        assert_eq!((written("2"), written("0.25"), written("0.009440")), ("2.00".to_owned(), "0.25".to_owned(), "0.00944".to_owned()));
        assert_eq!(MicroDollars::from_float(0.011_099_999_999_999_999), Some(MicroDollars(11_100)));
    }

    #[test]
    fn one_unknown_part_makes_a_sum_unknown() {
        let known = |micros| Cost::Known(MicroDollars(micros));

        assert_eq!([known(1), known(2)].into_iter().sum::<Cost>(), known(3));
        assert_eq!([known(1), Cost::Unknown, known(2)].into_iter().sum::<Cost>(), Cost::Unknown);
    }
}
