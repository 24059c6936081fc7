//! The checksum of contents whose packets are not authenticated.

use twox_hash::xxhash3_128::Hasher;

/// The XXH3 of bytes in order. It detects accidents that the CRC-32C of single packets misses, at a tenth of the cost of
/// a cryptographic hash. Nothing but encryption protects against attackers, who can replace a hash of any kind.
#[derive(Default)]
pub struct Checksum(Option<Hasher>);

impl std::fmt::Debug for Checksum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Checksum({:032x})", self.value())
    }
}

impl Checksum {
    /// Starts a checksum; without `enabled` it is always 0.
    #[must_use]
    pub fn new(enabled: bool) -> Self {
        Self(enabled.then(Hasher::new))
    }

    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        if let Some(hasher) = &mut self.0 {
            hasher.write(bytes);
        }
    }

    /// Returns the checksum of all bytes so far.
    #[must_use]
    pub fn value(&self) -> u128 {
        self.0.as_ref().map_or(0, Hasher::finish_128)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depends_on_the_bytes_and_not_on_their_pieces() {
        let value = |pieces: &[&[u8]]| {
            let mut checksum = Checksum::new(true);
            for piece in pieces {
                checksum.update(piece);
            }
            checksum.value()
        };
        assert_eq!(value(&[b"ab", b"", b"c"]), value(&[b"abc"]));
        assert_ne!(value(&[b"abc"]), value(&[b"abd"]));
        // The reference implementation's: XXH3_128bits("", 0).
        assert_eq!(value(&[]), 0x99aa_06d3_0147_98d8_6001_c324_468d_497f);
        let mut none = Checksum::new(false);
        none.update(b"abc");
        assert_eq!(none.value(), 0);
    }
}
