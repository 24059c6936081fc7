//! Observations of a link.

use foundation::{Duration, Instant};
use hdrhistogram::Histogram;
use network::{Body, Count, LinkId, Network, Observer};

/// Returns the packets marked so far by all `links` of a network (ECN).
#[must_use]
pub fn marked<B: Body, O: Observer<B>>(network: &Network<B, O>, links: usize) -> u64 {
    let counters = (0..links).map(|link| network.counters(LinkId(link as u32)));
    counters.map(|counters| counters.marked.packets).sum()
}

/// The counters of a link at one time, or over a time.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// Packets that reached its far end.
    pub delivered: Count,
    /// Packets dropped by its queue.
    pub dropped: u64,
    /// Packets dropped by its loss model.
    pub lost: u64,
    /// Packets dropped because it was down.
    pub outage_dropped: u64,
    /// Packets marked by its queue (ECN).
    pub marked: u64,
    /// Maximum queue length since the start of the trial.
    pub max_queue_packets: u64,
    /// Packets in the queue times nanoseconds.
    packet_nanos: u128,
    /// Time in transmission.
    pub busy: Duration,
    /// Queueing delays in nanoseconds since the last [`mark`](Observation::mark).
    pub waits: Option<Box<Histogram<u64>>>,
}

impl Observation {
    fn counters<B: Body, O: Observer<B>>(now: Instant, network: &Network<B, O>, link: LinkId) -> Self {
        let (counters, occupancy) = (network.counters(link), network.occupancy(link, now));
        Self {
            delivered: counters.delivered,
            dropped: counters.queue_dropped.packets,
            lost: counters.lost.packets,
            outage_dropped: counters.outage_dropped.packets,
            marked: counters.marked.packets,
            max_queue_packets: counters.max_queue_packets,
            packet_nanos: occupancy.packet_nanos,
            busy: occupancy.busy,
            waits: None,
        }
    }

    /// Observes a link at the start of the measured time, and clears its histogram.
    #[must_use]
    pub fn mark<B: Body, O: Observer<B>>(now: Instant, network: &mut Network<B, O>, link: LinkId) -> Self {
        network.reset_waits(link);
        Self::counters(now, network, link)
    }

    /// Observes a link at the end of the measured time, and takes its histogram.
    #[must_use]
    pub fn take<B: Body, O: Observer<B>>(now: Instant, network: &mut Network<B, O>, link: LinkId) -> Self {
        Self {
            waits: network.take_waits(link),
            ..Self::counters(now, network, link)
        }
    }

    /// Returns the increase since `before`.
    ///
    /// # Panics
    /// If `before` is not an earlier observation.
    #[must_use]
    pub fn since(self, before: &Self) -> Self {
        Self {
            delivered: self.delivered - before.delivered,
            dropped: self.dropped - before.dropped,
            lost: self.lost - before.lost,
            outage_dropped: self.outage_dropped - before.outage_dropped,
            marked: self.marked - before.marked,
            max_queue_packets: self.max_queue_packets,
            packet_nanos: self.packet_nanos - before.packet_nanos,
            busy: self.busy - before.busy,
            waits: self.waits,
        }
    }

    /// Returns the mean queue length in packets over a time in seconds, the packet in transmission included.
    #[must_use]
    pub fn mean_queue_packets(&self, seconds: f64) -> f64 {
        self.packet_nanos as f64 / 1e9 / seconds
    }
}
