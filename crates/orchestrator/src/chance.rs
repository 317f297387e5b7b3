//! The one place that draws random numbers, for ids.

/// Bits for a new id.
///
/// A machine without random numbers could hand out one id twice, so its failure is an error, never a fallback.
///
/// # Errors
/// The operating system gives no random numbers.
pub fn random_bits() -> Result<u64, getrandom::Error> {
    getrandom::u64()
}
