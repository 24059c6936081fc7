//! A coin that is thrown once a packet.

use foundation::{Generator, Probability};
use rand::Rng;

/// A probability as a threshold for 53 random bits: exact for 0 % and 100 %, the same on every machine.
///
/// At the same draw a higher probability says yes wherever a lower one does. So a path with 4 % loss loses
/// every packet that the same path with 2 % loses, and curves over the probability are smooth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(probability: Probability) -> Self {
        Self((probability.value() * (1_u64 << 53) as f64) as u64)
    }

    /// Throws the coin: one draw.
    #[inline]
    pub(crate) fn throw(self, generator: &mut Generator) -> bool {
        generator.next_u64() >> 11 < self.0
    }
}
