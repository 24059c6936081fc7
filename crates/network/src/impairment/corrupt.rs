//! Corruption: in some packets one bit is flipped.

use foundation::{Generator, Probability, Streams};
use rand::Rng;

use super::chance::Chance;

/// Corruption at work.
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

    /// Which bit of the next packet is flipped; `None` for one that stays whole. Always two draws.
    pub(crate) fn next(&mut self) -> Option<u64> {
        let corrupt = self.chance.throw(&mut self.stream);
        let choice = self.stream.next_u64();
        corrupt.then_some(choice)
    }
}
