//! Duplication of packets.

use foundation::{Generator, Probability, Streams};

use super::chance::Chance;

/// The duplication process of a link.
#[derive(Clone, Debug)]
pub(crate) struct Duplicate {
    chance: Chance,
    stream: Generator,
}

impl Duplicate {
    pub(crate) fn new(probability: Probability, streams: Streams) -> Self {
        Self {
            chance: Chance::new(probability),
            stream: streams.stream("duplicate"),
        }
    }

    /// Returns whether the next packet is duplicated.
    pub(crate) fn next(&mut self) -> bool {
        self.chance.draw(&mut self.stream)
    }
}
