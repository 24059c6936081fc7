//! What a link has done, as it stood at one moment.

use foundation::Instant;
use hdrhistogram::Histogram;
use network::{Body, Count, LinkId, Network, Observer};

/// A link's counters at one moment, or over a span of time.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// What reached its far end.
    pub delivered: Count,
    /// Packets that its queue dropped.
    pub dropped: u64,
    /// Packets that its loss model dropped.
    pub lost: u64,
    /// Packets that its queue marked (ECN).
    pub marked: u64,
    /// The most packets in its queue, from the beginning.
    pub max_queue_packets: u64,
    /// Packets in the queue times nanoseconds.
    packet_nanos: u128,
    /// Waiting times before transmission, in nanoseconds, since the last [`mark`](Observation::mark).
    pub waits: Option<Box<Histogram<u64>>>,
}

impl Observation {
    fn counters<B: Body, O: Observer<B>>(now: Instant, network: &Network<B, O>, link: LinkId) -> Self {
        let counters = network.counters(link);
        Self {
            delivered: counters.delivered,
            dropped: counters.queue_dropped.packets,
            lost: counters.lost.packets,
            marked: counters.marked.packets,
            max_queue_packets: counters.max_queue_packets,
            packet_nanos: network.occupancy(link, now).packet_nanos,
            waits: None,
        }
    }

    /// A link as it stands now, where measuring begins: waits until now are forgotten.
    #[must_use]
    pub fn mark<B: Body, O: Observer<B>>(now: Instant, network: &mut Network<B, O>, link: LinkId) -> Self {
        network.reset_waits(link);
        Self::counters(now, network, link)
    }

    /// A link as it stands now, where measuring ends: its waits are no longer recorded.
    #[must_use]
    pub fn take<B: Body, O: Observer<B>>(now: Instant, network: &mut Network<B, O>, link: LinkId) -> Self {
        Self {
            waits: network.take_waits(link),
            ..Self::counters(now, network, link)
        }
    }

    /// What has been added since `before`.
    ///
    /// # Panics
    /// Where `before` is not from before.
    #[must_use]
    pub fn since(self, before: &Self) -> Self {
        Self {
            delivered: self.delivered - before.delivered,
            dropped: self.dropped - before.dropped,
            lost: self.lost - before.lost,
            marked: self.marked - before.marked,
            max_queue_packets: self.max_queue_packets,
            packet_nanos: self.packet_nanos - before.packet_nanos,
            waits: self.waits,
        }
    }

    /// Packets in the queue, the one being sent included, on average over so many seconds.
    #[must_use]
    pub fn mean_queue_packets(&self, seconds: f64) -> f64 {
        self.packet_nanos as f64 / 1e9 / seconds
    }
}
