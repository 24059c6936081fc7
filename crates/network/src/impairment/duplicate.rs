//! Duplication: some packets arrive twice.

use foundation::{Generator, Probability, Streams};

use super::chance::Chance;

/// Duplication at work.
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

    /// Whether the next packet is sent twice.
    pub(crate) fn next(&mut self) -> bool {
        self.chance.throw(&mut self.stream)
    }
}
