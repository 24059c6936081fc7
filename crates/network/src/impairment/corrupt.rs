//! Corruption: a bit error in some packets.

use foundation::{Generator, Probability, Streams};
use rand::Rng;

use super::chance::Chance;

/// The corruption process of a link.
#[derive(Clone, Debug)]
pub(crate) struct Corrupt {
    chance: Chance,
    stream: Generator,
}

impl Corrupt {
    pub(crate) fn new(probability: Probability, streams: Streams) -> Self {
        Self {
            chance: Chance::new(probability),
            stream: streams.stream("corrupt"),
        }
    }

    /// Returns a selector of the flipped bit of the next packet; `None` for an intact one. Always takes two draws.
    pub(crate) fn next(&mut self) -> Option<u64> {
        let corrupt = self.chance.draw(&mut self.stream);
        let choice = self.stream.next_u64();
        corrupt.then_some(choice)
    }
}
