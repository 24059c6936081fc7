//! Arithmetic shared by controllers.

use foundation::Duration;

/// Returns `value * numerator / denominator`, saturating. Uses 64 bits if possible: a division of 128 bits takes as
/// long as the rest of an ACK.
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

/// Returns the cube root of a number of at least 0, by Newton's method: mathematics libraries differ in the last bit,
/// and the same seed must give the same bits on all systems.
pub(super) fn cube_root(value: f64) -> f64 {
    // NaN too, which no window yields.
    if value.is_nan() || value <= 0.0 {
        return 0.0;
    }
    // A third of the exponent is within a factor of two of the root.
    let mut root = f64::from_bits(value.to_bits() / 3 + 0x2aa0_0000_0000_0000);
    for _ in 0..6 {
        root = (2.0 * root + value / (root * root)) / 3.0;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_roots() {
        for value in [1e-12, 0.001, 1.0, 8.0, 27.0, 1e6, 3.3e17] {
            let root = cube_root(value);
            assert!(
                (root * root * root / value - 1.0).abs() < 1e-14,
                "{value}: {root}"
            );
        }
        assert_eq!(cube_root(0.0), 0.0);
    }
}
