//! Building blocks of disciplines: packets in order of arrival, and a queue limit.

use std::collections::VecDeque;

use crate::link::Count;
use crate::queue::{QueueLimit, QueuedPacket};

/// A first-in, first-out queue.
#[derive(Debug, Default)]
pub(super) struct Fifo {
    packets: VecDeque<QueuedPacket>,
    bytes: u64,
}

impl Fifo {
    pub(super) fn push(&mut self, packet: QueuedPacket) {
        self.bytes += u64::from(packet.size());
        self.packets.push_back(packet);
    }

    pub(super) fn pop(&mut self) -> Option<QueuedPacket> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.size());
        Some(packet)
    }

    /// Removes the packet that joined last.
    pub(super) fn pop_last(&mut self) -> Option<QueuedPacket> {
        let packet = self.packets.pop_back()?;
        self.bytes -= u64::from(packet.size());
        Some(packet)
    }

    /// Removes the packet at a position.
    pub(super) fn remove(&mut self, position: usize) -> Option<QueuedPacket> {
        let packet = self.packets.remove(position)?;
        self.bytes -= u64::from(packet.size());
        Some(packet)
    }

    /// Returns the packets in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &QueuedPacket> {
        self.packets.iter()
    }

    /// Returns the packet that joined last.
    pub(super) fn last(&self) -> Option<&QueuedPacket> {
        self.packets.back()
    }

    /// Returns when the first packet joined, in nanoseconds.
    pub(super) fn head_since(&self) -> Option<u64> {
        self.packets.front().map(|packet| packet.since.as_nanos())
    }

    pub(super) fn count(&self) -> Count {
        Count {
            packets: self.packets.len() as u64,
            bytes: self.bytes,
        }
    }
}

/// The limit of a queue in packets and bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    limit: Count,
}

impl Bounds {
    pub(super) const fn new(limit: QueueLimit) -> Self {
        let (packets, bytes) = limit.packets_and_bytes();
        Self {
            limit: Count { packets, bytes },
        }
    }

    /// Returns whether a queue of this length is within the limit.
    pub(super) const fn contain(&self, length: Count) -> bool {
        length.packets <= self.limit.packets && length.bytes <= self.limit.bytes
    }

    /// Returns whether a queue of this length has room for a packet of `size` bytes.
    pub(super) const fn admit(&self, length: Count, size: u32) -> bool {
        self.contain(Count {
            packets: length.packets + 1,
            bytes: length.bytes + size as u64,
        })
    }
}
