//! What a link has done, as it stood at one moment.

use foundation::Instant;
use hdrhistogram::Histogram;
use network::{Count, LinkId, Network, Observer};

use crate::body::Parcel;

/// A link's counters at one moment, or over a span of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observation {
    pub delivered: Count,
    pub dropped: u64,
    pub lost: u64,
    pub marked: u64,
    pub max_queue_packets: u64,
    /// Packets in the queue times nanoseconds.
    packet_nanos: u128,
    /// Waiting times before transmission, in nanoseconds.
    pub waits: Option<Histogram<u64>>,
}

impl Observation {
    pub(crate) fn of<O: Observer<Parcel>>(now: Instant, network: &Network<Parcel, O>, link: LinkId) -> Self {
        let counters = network.counters(link);
        Self {
            delivered: counters.delivered,
            dropped: counters.queue_dropped.packets,
            lost: counters.lost.packets,
            marked: counters.marked.packets,
            max_queue_packets: counters.max_queue_packets,
            packet_nanos: network.occupancy(link, now).packet_nanos,
            waits: network.waits(link).cloned(),
        }
    }

    /// What has been added since `before`.
    pub(crate) fn since(mut self, before: &Self) -> Self {
        if let (Some(all), Some(early)) = (&mut self.waits, &before.waits) {
            all.subtract(early)
                .expect("both have the same bounds, and counts only grow");
        }
        Self {
            delivered: Count {
                packets: self.delivered.packets - before.delivered.packets,
                bytes: self.delivered.bytes - before.delivered.bytes,
            },
            dropped: self.dropped - before.dropped,
            lost: self.lost - before.lost,
            marked: self.marked - before.marked,
            max_queue_packets: self.max_queue_packets,
            packet_nanos: self.packet_nanos - before.packet_nanos,
            waits: self.waits,
        }
    }

    /// Packets in the queue, the one being sent included, on average over so many seconds.
    pub(crate) fn mean_queue_packets(&self, seconds: f64) -> f64 {
        self.packet_nanos as f64 / 1e9 / seconds
    }
}
