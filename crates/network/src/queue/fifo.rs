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

#[cfg(test)]
pub(super) mod tests {
    use foundation::Instant;

    use super::*;
    use crate::impairment::Lag;
    use crate::packet::RouteId;
    use crate::packet_store::Ticket;

    /// Returns a packet of a flow with `size` bytes.
    pub(in crate::queue) fn packet(flow: u64, size: u32) -> QueuedPacket {
        let mut ticket = Ticket::default();
        ticket.size = size;
        QueuedPacket {
            since: Instant::ZERO,
            route: RouteId(0),
            flow,
            ticket,
            lag: Lag::default(),
        }
    }

    #[test]
    fn removes_a_packet_and_its_bytes() {
        let mut queue = Fifo::default();
        assert!(queue.remove(0).is_none());
        for size in [100, 20, 3] {
            queue.push(packet(0, size));
        }
        assert_eq!(queue.remove(1).map(|packet| packet.size()), Some(20));
        let expected = Count {
            packets: 2,
            bytes: 103,
        };
        assert_eq!(queue.count(), expected);
        assert!(queue.remove(2).is_none());
        let sizes: Vec<u32> = queue.iter().map(QueuedPacket::size).collect();
        assert_eq!(sizes, [100, 3]);
    }
}
