//! A random event with one draw per packet.

use foundation::{Generator, Probability};
use rand::Rng;

/// A probability as a threshold for 53 random bits: exact for 0 % and 100 %, and identical on every machine.
///
/// With the same draw, an event with a higher probability occurs whenever one with a lower probability does. A path with
/// 4 % loss therefore loses every packet that the same path with 2 % loss loses, and curves over the probability are smooth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(probability: Probability) -> Self {
        Self((probability.value() * (1_u64 << 53) as f64) as u64)
    }

    /// Returns whether the event occurs; takes one draw.
    #[inline]
    pub(crate) fn draw(self, generator: &mut Generator) -> bool {
        generator.next_u64() >> 11 < self.0
    }
}
