//! Loss of listed packets.

use foundation::{Generator, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LossModel, LossProcess};

/// Loss of listed packets
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Packets {
    /// Numbers of the lost packets, counted from 1 in each direction in the order of arrival at the link, e.g. [3, 7]. All packets count: handshake, ACKs, retransmissions, and those of other flows. Without reverse.loss, the list applies to both directions
    #[schemars(inner(range(min = 1)))]
    pub packets: Vec<u64>,
}

impl LossModel for Packets {
    type Process = List;

    fn mean(&self) -> f64 {
        0.0
    }

    fn validate(&self) -> Vec<Problem> {
        if !self.packets.contains(&0) {
            return Vec::new();
        }
        vec![Problem::new(
            "packets",
            "0 is out of range: packets are counted from 1",
        )]
    }

    fn start(&self, _: Generator) -> List {
        let mut numbers = self.packets.clone();
        numbers.sort_unstable();
        numbers.dedup();
        List {
            numbers: numbers.into(),
            next: 0,
            seen: 0,
        }
    }
}

/// Increasing packet numbers, and the number of packets so far.
#[derive(Clone, Debug)]
pub(crate) struct List {
    numbers: Box<[u64]>,
    next: usize,
    seen: u64,
}

impl LossProcess for List {
    #[inline]
    fn next(&mut self) -> bool {
        self.seen += 1;
        let lost = self.numbers.get(self.next) == Some(&self.seen);
        self.next += usize::from(lost);
        lost
    }
}
