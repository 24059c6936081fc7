//! Link counters.

use crate::observer::DropReason;

/// A number of packets and their bytes.
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

/// Subtracts a part from a count.
impl std::ops::Sub for Count {
    type Output = Self;
    fn sub(self, part: Self) -> Self {
        Self {
            packets: self.packets - part.packets,
            bytes: self.bytes - part.bytes,
        }
    }
}

impl std::ops::AddAssign for LinkCounters {
    /// Adds the counters of another link; the maxima are those of the longer queue.
    fn add_assign(&mut self, other: Self) {
        let add = |count: &mut Count, other: Count| *count = *count + other;
        add(&mut self.entered, other.entered);
        add(&mut self.delivered, other.delivered);
        add(&mut self.lost, other.lost);
        add(&mut self.queue_dropped, other.queue_dropped);
        add(&mut self.mtu_dropped, other.mtu_dropped);
        add(&mut self.outage_dropped, other.outage_dropped);
        add(&mut self.duplicated, other.duplicated);
        add(&mut self.corrupted, other.corrupted);
        add(&mut self.marked, other.marked);
        add(&mut self.reordered, other.reordered);
        self.record_queue(other.max_queue_packets, other.max_queue_bytes);
    }
}

/// Counters of a link since the start. When the link is empty,
/// `entered + duplicated = delivered + lost + queue_dropped + mtu_dropped + outage_dropped + nat_dropped`, in packets and in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets that reached the near end of the link (without copies made by the link).
    pub entered: Count,
    /// Packets that reached the far end of the link.
    pub delivered: Count,
    /// Packets dropped by the loss model, or lost on request.
    pub lost: Count,
    /// Packets dropped by a full queue or its discipline.
    pub queue_dropped: Count,
    /// Packets dropped for exceeding the MTU.
    pub mtu_dropped: Count,
    /// Packets dropped because the link was down.
    pub outage_dropped: Count,
    /// Packets dropped by the address translator.
    pub nat_dropped: Count,
    /// Copies made.
    pub duplicated: Count,
    /// Packets with a flipped bit.
    pub corrupted: Count,
    /// Packets marked with ECN CE by the queue discipline (RFC 3168); they are also delivered.
    pub marked: Count,
    /// Packets that reached the far end after a packet that entered later (RFC 4737).
    pub reordered: Count,
    /// Maximum queue length in packets, the packet in transmission included.
    pub max_queue_packets: u64,
    /// Maximum queue length in bytes, the packet in transmission included.
    pub max_queue_bytes: u64,
}

impl LinkCounters {
    /// Returns the packets dropped for this reason. Losses by the model and on request have one counter.
    #[must_use]
    pub const fn dropped(&self, reason: DropReason) -> Count {
        match reason {
            DropReason::Loss | DropReason::Requested => self.lost,
            DropReason::Queue => self.queue_dropped,
            DropReason::Mtu => self.mtu_dropped,
            DropReason::Outage => self.outage_dropped,
            DropReason::Nat => self.nat_dropped,
        }
    }

    /// Records the length of the queue.
    #[inline]
    pub(crate) fn record_queue(&mut self, packets: u64, bytes: u64) {
        self.max_queue_packets = self.max_queue_packets.max(packets);
        self.max_queue_bytes = self.max_queue_bytes.max(bytes);
    }

    #[inline]
    pub(crate) fn add_drop(&mut self, reason: DropReason, size: u32) {
        match reason {
            DropReason::Loss | DropReason::Requested => self.lost.add(size),
            DropReason::Queue => self.queue_dropped.add(size),
            DropReason::Mtu => self.mtu_dropped.add(size),
            DropReason::Outage => self.outage_dropped.add(size),
            DropReason::Nat => self.nat_dropped.add(size),
        }
    }
}
