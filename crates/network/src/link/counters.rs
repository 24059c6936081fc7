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
        // Without `..`, so that a new counter cannot be forgotten.
        let Self {
            entered,
            delivered,
            lost,
            queue_dropped,
            mtu_dropped,
            outage_dropped,
            nat_dropped,
            duplicated,
            corrupted,
            marked,
            reordered,
            max_queue_packets,
            max_queue_bytes,
        } = other;
        let add = |count: &mut Count, other: Count| *count = *count + other;
        add(&mut self.entered, entered);
        add(&mut self.delivered, delivered);
        add(&mut self.lost, lost);
        add(&mut self.queue_dropped, queue_dropped);
        add(&mut self.mtu_dropped, mtu_dropped);
        add(&mut self.outage_dropped, outage_dropped);
        add(&mut self.nat_dropped, nat_dropped);
        add(&mut self.duplicated, duplicated);
        add(&mut self.corrupted, corrupted);
        add(&mut self.marked, marked);
        add(&mut self.reordered, reordered);
        self.record_queue(max_queue_packets, max_queue_bytes);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Drops for all reasons add up, and the conservation of packets holds for the sum of two links.
    #[test]
    fn sums_contain_drops_for_all_reasons() {
        let mut link = LinkCounters::default();
        let reasons = [
            DropReason::Loss,
            DropReason::Queue,
            DropReason::Mtu,
            DropReason::Outage,
            DropReason::Nat,
        ];
        for (size, reason) in (1..).zip(reasons) {
            link.entered.add(size);
            link.add_drop(reason, size);
        }
        let mut sum = link;
        sum += link;
        for (size, reason) in (1..).zip(reasons) {
            let expected = Count {
                packets: 2,
                bytes: 2 * size,
            };
            assert_eq!(sum.dropped(reason), expected, "{reason:?}");
        }
        assert_eq!(sum.entered.bytes, 30);
    }
}
