//! Typed ids: a kind prefix and ten lower-case Crockford characters.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

const CROCKFORD: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const LENGTH: usize = 10;

/// A text that is not an id of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an id of the form {prefix}…")]
pub struct InvalidId {
    /// What was given.
    pub text: String,
    /// The prefix that was wanted, with its underscore.
    pub prefix: &'static str,
}

fn encode(prefix: &str, bits: u64) -> String {
    let mut id = String::with_capacity(prefix.len() + LENGTH);
    id.push_str(prefix);
    for position in (0..LENGTH).rev() {
        let digit = (bits >> (position * 5)) & 31;
        id.push(char::from(CROCKFORD[usize::try_from(digit).unwrap_or(0)]));
    }
    id
}

fn is_id(prefix: &str, text: &str) -> bool {
    text.strip_prefix(prefix).is_some_and(|rest| rest.len() == LENGTH && rest.bytes().all(|byte| CROCKFORD.contains(&byte)))
}

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The kind prefix with its underscore.
            pub const PREFIX: &'static str = $prefix;

            /// The id made of the lowest 50 of `bits`, which the caller draws at random.
            pub fn from_bits(bits: u64) -> Self {
                Self(encode(Self::PREFIX, bits))
            }

            /// The printed form.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::try_from(text.to_owned())
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                if is_id(Self::PREFIX, &text) {
                    Ok(Self(text))
                } else {
                    Err(InvalidId { text, prefix: Self::PREFIX })
                }
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }
    };
}

id_type!(
    /// One run of a procedure.
    RunId,
    "run_"
);
id_type!(
    /// One session: the child processes of one phase (or, later, one agent) under one host.
    SessionId,
    "ses_"
);
id_type!(
    /// One record of memory: what works and its trap, or what fails.
    RecordId,
    "mem_"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_print_their_prefix_and_ten_characters() {
        assert_eq!(RunId::from_bits(0).as_str(), "run_0000000000");
        assert_eq!(SessionId::from_bits(u64::MAX).as_str(), "ses_zzzzzzzzzz");
        assert_eq!(RunId::from_bits(33).as_str(), "run_0000000011");
    }

    #[test]
    fn an_id_of_another_kind_is_refused() {
        assert!("ses_0000000000".parse::<RunId>().is_err());
        assert!("run_000000000".parse::<RunId>().is_err());
        assert!("run_000000000i".parse::<RunId>().is_err());
        assert_eq!("run_0000000011".parse::<RunId>(), Ok(RunId::from_bits(33)));
    }
}
