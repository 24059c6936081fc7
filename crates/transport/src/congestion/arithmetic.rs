//! Integer arithmetic that controllers share.

use foundation::Duration;

/// `value * numerator / denominator`, in 64 bits where they suffice: a division of 128 bits costs
/// as much as all the rest of an ACK.
#[inline]
pub(super) fn scale(value: u64, numerator: u64, denominator: u64) -> u64 {
    match value.checked_mul(numerator) {
        Some(product) => product / denominator,
        None => {
            let product = u128::from(value) * u128::from(numerator);
            u64::try_from(product / u128::from(denominator)).unwrap_or(u64::MAX)
        }
    }
}

/// Bytes that pass in `span` at `bits` bit/s.
pub(super) fn bytes_in(bits: u64, span: Duration) -> u64 {
    scale(bits, span.as_nanos(), 8_000_000_000)
}
