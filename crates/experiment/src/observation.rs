//! Observations of a link.

use foundation::{Duration, Instant};
use hdrhistogram::Histogram;
use network::topology::Topology;
use network::{Body, Count, LinkId, Network, Observer};

/// Returns the packets marked so far by all `links` of a network (ECN).
fn marked<B: Body, O: Observer<B>>(network: &Network<B, O>, links: usize) -> u64 {
    let counters = (0..links).map(|link| network.counters(LinkId(link as u32)));
    counters.map(|counters| counters.marked.packets).sum()
}

/// The observed links and the marks of all links at the start of the measured time.
#[derive(Clone, Debug)]
pub struct Baseline {
    observed: Vec<LinkId>,
    links: usize,
    before: Vec<Observation>,
    marked: u64,
}

impl Baseline {
    /// Returns the state of a network before its first packet.
    #[must_use]
    pub fn new(topology: &Topology) -> Self {
        Self {
            observed: topology.observed().collect(),
            links: topology.links().len(),
            before: vec![Observation::default(); topology.observed().count()],
            marked: 0,
        }
    }

    /// Starts the measured time.
    pub fn mark<B: Body, O: Observer<B>>(&mut self, now: Instant, network: &mut Network<B, O>) {
        for (before, &link) in self.before.iter_mut().zip(&self.observed) {
            *before = Observation::mark(now, network, link);
        }
        self.marked = marked(network, self.links);
    }

    /// Returns the observations of the observed links over the measured time, and the packets marked by all links in it. Takes the
    /// histograms of the links, so a second call lacks them.
    #[must_use]
    pub fn take<B: Body, O: Observer<B>>(
        &self,
        now: Instant,
        network: &mut Network<B, O>,
    ) -> (Vec<Observation>, u64) {
        let links = self.observed.iter().zip(&self.before);
        let over = links.map(|(&link, before)| Observation::take(now, network, link).since(before));
        (over.collect(), marked(network, self.links) - self.marked)
    }
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
    /// Packets dropped by its address translator.
    pub nat_dropped: u64,
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
            nat_dropped: counters.nat_dropped.packets,
            marked: counters.marked.packets,
            max_queue_packets: counters.max_queue_packets,
            packet_nanos: occupancy.packet_nanos,
            busy: occupancy.busy,
            waits: None,
        }
    }

    /// Observes a link at the start of the measured time, and clears its histogram.
    fn mark<B: Body, O: Observer<B>>(now: Instant, network: &mut Network<B, O>, link: LinkId) -> Self {
        network.reset_waits(link);
        Self::counters(now, network, link)
    }

    /// Observes a link at the end of the measured time, and takes its histogram.
    fn take<B: Body, O: Observer<B>>(now: Instant, network: &mut Network<B, O>, link: LinkId) -> Self {
        Self {
            waits: network.take_waits(link),
            ..Self::counters(now, network, link)
        }
    }

    /// Returns the increase since an earlier observation.
    fn since(self, before: &Self) -> Self {
        Self {
            delivered: self.delivered - before.delivered,
            dropped: self.dropped - before.dropped,
            lost: self.lost - before.lost,
            outage_dropped: self.outage_dropped - before.outage_dropped,
            nat_dropped: self.nat_dropped - before.nat_dropped,
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
