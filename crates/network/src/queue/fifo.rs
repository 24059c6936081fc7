//! What most disciplines are made of: packets in order of arrival, and a limit on how much is held.

use std::collections::VecDeque;

use crate::link::Count;
use crate::queue::{QueueLimit, Waiting};

/// Packets that wait, first in, first out.
#[derive(Debug, Default)]
pub(super) struct Fifo {
    packets: VecDeque<Waiting>,
    bytes: u64,
}

impl Fifo {
    pub(super) fn push(&mut self, packet: Waiting) {
        self.bytes += u64::from(packet.size());
        self.packets.push_back(packet);
    }

    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.size());
        Some(packet)
    }

    pub(super) fn count(&self) -> Count {
        Count {
            packets: self.packets.len() as u64,
            bytes: self.bytes,
        }
    }
}

/// The most that a queue holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    most: Count,
}

impl Bounds {
    pub(super) const fn new(limit: QueueLimit) -> Self {
        let (packets, bytes) = limit.packets_and_bytes();
        Self {
            most: Count { packets, bytes },
        }
    }

    /// Whether that much may be held.
    pub(super) const fn hold(&self, count: Count) -> bool {
        count.packets <= self.most.packets && count.bytes <= self.most.bytes
    }

    /// Whether a packet of `size` may join what is held.
    pub(super) const fn admit(&self, held: Count, size: u32) -> bool {
        self.hold(Count {
            packets: held.packets + 1,
            bytes: held.bytes + size as u64,
        })
    }
}
