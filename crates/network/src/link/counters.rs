//! What a link has done so far.

use crate::observer::DropReason;

/// A number of packets and of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes of these packets, headers included.
    pub bytes: u64,
}

impl Count {
    #[inline]
    pub(crate) fn add(&mut self, size: u32) {
        self.packets += 1;
        self.bytes += u64::from(size);
    }
}

impl std::ops::Add for Count {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
        }
    }
}

/// Of two counts the second is part of the first.
impl std::ops::Sub for Count {
    type Output = Self;
    fn sub(self, part: Self) -> Self {
        Self {
            packets: self.packets - part.packets,
            bytes: self.bytes - part.bytes,
        }
    }
}

/// What a link has done so far. Once it is empty,
/// `entered + duplicated = delivered + lost + queue_dropped + mtu_dropped`, in packets and in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Reached the near end of the link (copies made by the link not included).
    pub entered: Count,
    /// Reached the far end of the link.
    pub delivered: Count,
    /// Dropped by the loss model.
    pub lost: Count,
    /// Dropped because the queue was full or its discipline chose so.
    pub queue_dropped: Count,
    /// Dropped because it was larger than the MTU.
    pub mtu_dropped: Count,
    /// Second copies made.
    pub duplicated: Count,
    /// Packets in which a bit was flipped.
    pub corrupted: Count,
    /// Packets that the queue's discipline marked as having met congestion (RFC 3168). They go on.
    pub marked: Count,
    /// Packets that reached the far end after one that had entered later (RFC 4737).
    pub reordered: Count,
    /// The most packets that stood in the queue at once, with the one being sent.
    pub max_queue_packets: u64,
    /// The most bytes that stood in the queue at once, with those of the packet being sent.
    pub max_queue_bytes: u64,
}

impl LinkCounters {
    /// Dropped for this reason.
    #[must_use]
    pub const fn dropped(&self, reason: DropReason) -> Count {
        match reason {
            DropReason::Loss => self.lost,
            DropReason::Queue => self.queue_dropped,
            DropReason::Mtu => self.mtu_dropped,
        }
    }

    /// Notes the length of the queue.
    #[inline]
    pub(crate) fn saw_queue(&mut self, packets: u64, bytes: u64) {
        self.max_queue_packets = self.max_queue_packets.max(packets);
        self.max_queue_bytes = self.max_queue_bytes.max(bytes);
    }

    #[inline]
    pub(crate) fn add_drop(&mut self, reason: DropReason, size: u32) {
        match reason {
            DropReason::Loss => self.lost.add(size),
            DropReason::Queue => self.queue_dropped.add(size),
            DropReason::Mtu => self.mtu_dropped.add(size),
        }
    }
}
