//! The outcome of a flow.

use foundation::{Duration, Instant};
use hdrhistogram::Histogram;
use transport::Statistics;

/// A histogram of round-trip times in nanoseconds, if recorded.
pub type RttHistogram = Option<Box<Histogram<u64>>>;

/// The times of a real-time frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameTimes {
    /// When the application sent it.
    pub sent_at: Instant,
    /// When its last byte arrived; `None` if it did not.
    pub arrived_at: Option<Instant>,
}

impl FrameTimes {
    /// Returns the times of all frames from those at the source and at the sink, where [`Instant::MAX`] stands for none.
    #[must_use]
    pub fn of(sent: &[Instant], arrived: &[Instant]) -> Vec<Self> {
        let arrived = arrived.iter().map(|&at| Some(at).filter(|&at| at < Instant::MAX));
        let arrived = arrived.chain(std::iter::repeat(None));
        sent.iter()
            .zip(arrived)
            .map(|(&sent_at, arrived_at)| Self { sent_at, arrived_at })
            .collect()
    }
}

/// Counters of a sending direction at one time, or over a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendCounters {
    /// Data packets, including retransmissions.
    pub packets: u64,
    /// Payload bytes of these packets.
    pub bytes: u64,
    /// Retransmitted data packets.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Payload bytes of `retransmissions`.
    pub bytes_again: u64,
    /// Payload bytes acknowledged in order.
    pub acknowledged: u64,
    /// Nanoseconds in which the receive window limited the sender.
    pub receiver_limited_ns: u64,
    /// Nanoseconds in which the send buffer limited the sender.
    pub buffer_limited_ns: u64,
}

impl SendCounters {
    /// Returns the counters of a machine's statistics.
    #[must_use]
    pub const fn of(statistics: &Statistics) -> Self {
        Self {
            packets: statistics.packets_sent,
            bytes: statistics.bytes_sent,
            retransmissions: statistics.retransmissions,
            timeouts: statistics.timeouts,
            bytes_again: statistics.bytes_retransmitted,
            acknowledged: statistics.bytes_acknowledged,
            receiver_limited_ns: statistics.receiver_limited.as_nanos(),
            buffer_limited_ns: statistics.buffer_limited.as_nanos(),
        }
    }

    const fn since(self, before: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(before.packets),
            bytes: self.bytes.saturating_sub(before.bytes),
            retransmissions: self.retransmissions.saturating_sub(before.retransmissions),
            timeouts: self.timeouts.saturating_sub(before.timeouts),
            bytes_again: self.bytes_again.saturating_sub(before.bytes_again),
            acknowledged: self.acknowledged.saturating_sub(before.acknowledged),
            receiver_limited_ns: self
                .receiver_limited_ns
                .saturating_sub(before.receiver_limited_ns),
            buffer_limited_ns: self.buffer_limited_ns.saturating_sub(before.buffer_limited_ns),
        }
    }

    /// Returns the sum of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
            retransmissions: self.retransmissions + other.retransmissions,
            timeouts: self.timeouts + other.timeouts,
            bytes_again: self.bytes_again + other.bytes_again,
            acknowledged: self.acknowledged + other.acknowledged,
            receiver_limited_ns: self.receiver_limited_ns + other.receiver_limited_ns,
            buffer_limited_ns: self.buffer_limited_ns + other.buffer_limited_ns,
        }
    }
}

/// Payload bytes by path number, including retransmissions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathBytes(Vec<u64>);

impl PathBytes {
    /// Adds bytes of a path.
    pub fn add(&mut self, way: u8, bytes: u64) {
        let place = usize::from(way);
        if place >= self.0.len() {
            self.0.resize(place + 1, 0);
        }
        self.0[place] += bytes;
    }

    /// Adds the bytes of all paths.
    pub fn add_all(&mut self, other: &Self) {
        for (way, bytes) in (0..).zip(&other.0) {
            self.add(way, *bytes);
        }
    }

    /// Returns the bytes of each of `ways` paths.
    #[must_use]
    pub fn by_way(&self, ways: u8) -> Vec<u64> {
        let mut bytes = self.0.clone();
        bytes.resize(usize::from(ways), 0);
        bytes
    }

    fn since(mut self, before: &Self) -> Self {
        for (bytes, early) in self.0.iter_mut().zip(&before.0) {
            *bytes = bytes.saturating_sub(*early);
        }
        self
    }
}

/// The counters of a flow at one time, or over a time; the opener's come first.
#[derive(Debug, Default)]
pub struct FlowCounters {
    /// Packets and bytes sent by each end.
    pub sent: [SendCounters; 2],
    /// Bytes sent by both ends, by path.
    pub carried: PathBytes,
    /// Payload bytes delivered to each end: those that arrived, each counted once, or in netns those that it read. Bytes that
    /// wait for earlier ones count, so that the measured time contains no burst of bytes that arrived before it.
    pub delivered: [u64; 2],
    /// RTT samples of the opener in nanoseconds, if recorded.
    pub rtt: RttHistogram,
    /// One-way delays of the datagrams that arrived at the other end, in nanoseconds, if recorded.
    pub one_way: RttHistogram,
}

impl FlowCounters {
    /// Returns the increase since `before`. A busy machine may read `before` after these counters of a flow that has ended; then
    /// nothing has increased.
    #[must_use]
    pub fn since(mut self, before: &Self) -> Self {
        for (all, early) in [(&mut self.rtt, &before.rtt), (&mut self.one_way, &before.one_way)] {
            if let (Some(all), Some(early)) = (all, early)
                && all.subtract(&**early).is_err()
            {
                all.reset();
            }
        }
        Self {
            sent: [0, 1].map(|side| self.sent[side].since(before.sent[side])),
            carried: self.carried.since(&before.carried),
            delivered: [0, 1].map(|side| self.delivered[side].saturating_sub(before.delivered[side])),
            rtt: self.rtt,
            one_way: self.one_way,
        }
    }
}

/// A request and its response, at the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Time of the request.
    pub requested_at: Instant,
    /// Time of the complete response.
    pub responded_at: Instant,
    /// Time on the wire, from the first packet of the request to the last one of the response at the client's interface;
    /// `None` if not captured.
    pub on_wire: Option<Duration>,
}

impl Transaction {
    /// Returns the response time; for the first request of a connection it includes the connection setup.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.responded_at - self.requested_at
    }
}

/// The outcome of a flow. Counters cover the measured time.
#[derive(Clone, Debug)]
pub struct FlowOutcome {
    /// Number, in order of start.
    pub number: u32,
    /// 0 for the measured flows, else the position in `[[traffic]]`, from 1.
    pub group: u32,
    /// Index of its pair of hosts.
    pub pair: u32,
    /// Size in bytes, if known.
    pub size: Option<u64>,
    /// Time of opening.
    pub opened_at: Instant,
    /// Departure of the first data packet.
    pub first_data_at: Option<Instant>,
    /// Time of the last acknowledgement of new data.
    pub last_acknowledged_at: Option<Instant>,
    /// Time at which the receiver had read `size` bytes.
    pub received_at: Option<Instant>,
    /// Packets and bytes sent by both ends.
    pub sent: SendCounters,
    /// Bytes sent by both ends, by path.
    pub carried: PathBytes,
    /// Payload bytes delivered to the receiver and to the sender, as in [`FlowCounters`].
    pub delivered: [u64; 2],
    /// Bytes read by both ends since the start of the flow.
    pub delivered_in_all: u64,
    /// RTT samples of the sender in nanoseconds, if recorded.
    pub rtt: RttHistogram,
    /// One-way delays of datagrams in nanoseconds, if recorded.
    pub one_way: RttHistogram,
    /// Answered requests.
    pub transactions: Vec<Transaction>,
    /// Real-time frames.
    pub frames: Vec<FrameTimes>,
    /// Number of requests without a response in time.
    pub unanswered: u64,
    /// Retransmission timeouts of both ends by the end of each round but the last (`barrier`), if counted.
    pub round_timeouts: Option<Vec<u64>>,
    /// Packets sent by both ends, including those without payload, if counted.
    pub packets: Option<u64>,
    /// The paths that carried its data, one bit each.
    pub ways: u64,
    /// Whether both streams ended and were acknowledged.
    pub finished: bool,
    /// Reason of a failure.
    pub failure: Option<Box<str>>,
    /// Ideal completion time in seconds, from [`ideal::set`](crate::ideal::set); `None` for flows without one.
    pub ideal: Option<f64>,
}

impl FlowOutcome {
    /// Returns the flow completion time in seconds, from opening to the arrival of the last byte.
    #[must_use]
    pub fn completion(&self) -> Option<f64> {
        Some((self.received_at? - self.opened_at).as_secs_f64())
    }

    /// Returns the completion time over the ideal one; `None` if the flow has no size, is incomplete, or takes no time.
    #[must_use]
    pub fn slowdown(&self) -> Option<f64> {
        Some(self.completion()? / self.ideal?)
    }

    /// Returns size over flow completion time, in bit/s.
    #[must_use]
    pub fn throughput(&self) -> Option<f64> {
        let seconds = self.completion().filter(|seconds| *seconds > 0.0)?;
        Some(self.size? as f64 * 8.0 / seconds)
    }
}
