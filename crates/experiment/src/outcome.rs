//! What became of a flow.

use foundation::{Duration, Instant};
use hdrhistogram::Histogram;
use transport::Statistics;

/// A histogram of round-trip times in nanoseconds, where one is kept.
pub type RttHistogram = Option<Box<Histogram<u64>>>;

/// Counters of a sending direction, as they stood at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendCounters {
    /// Data packets, retransmissions included.
    pub packets: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// Data packets sent again.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Payload bytes of `retransmissions`.
    pub bytes_again: u64,
    /// Payload bytes acknowledged in order.
    pub acknowledged: u64,
    /// The part of `acknowledged` that was also sent for the first time in the measured time: all of it where
    /// measuring began with the flow.
    pub acknowledged_new: u64,
}

impl SendCounters {
    /// The counters of these statistics.
    #[must_use]
    pub const fn of(statistics: &Statistics) -> Self {
        Self {
            packets: statistics.packets_sent,
            bytes: statistics.bytes_sent,
            retransmissions: statistics.retransmissions,
            timeouts: statistics.timeouts,
            bytes_again: statistics.bytes_retransmitted,
            acknowledged: statistics.bytes_acknowledged,
            acknowledged_new: statistics.bytes_acknowledged,
        }
    }

    const fn since(self, before: Self) -> Self {
        // Sent before, and acknowledged only since then if at all.
        let under_way = before
            .bytes
            .saturating_sub(before.bytes_again)
            .saturating_sub(before.acknowledged);
        Self {
            packets: self.packets - before.packets,
            bytes: self.bytes - before.bytes,
            retransmissions: self.retransmissions - before.retransmissions,
            timeouts: self.timeouts - before.timeouts,
            bytes_again: self.bytes_again - before.bytes_again,
            acknowledged: self.acknowledged - before.acknowledged,
            acknowledged_new: (self.acknowledged - before.acknowledged).saturating_sub(under_way),
        }
    }

    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
            retransmissions: self.retransmissions + other.retransmissions,
            timeouts: self.timeouts + other.timeouts,
            bytes_again: self.bytes_again + other.bytes_again,
            acknowledged: self.acknowledged + other.acknowledged,
            acknowledged_new: self.acknowledged_new + other.acknowledged_new,
        }
    }
}

/// Payload bytes by the number of the way that carried them, retransmissions included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathBytes(Vec<u64>);

impl PathBytes {
    /// A way carried so many more.
    pub fn add(&mut self, way: u8, bytes: u64) {
        let place = usize::from(way);
        if place >= self.0.len() {
            self.0.resize(place + 1, 0);
        }
        self.0[place] += bytes;
    }

    /// Both together.
    pub fn add_all(&mut self, other: &Self) {
        for (way, bytes) in (0..).zip(&other.0) {
            self.add(way, *bytes);
        }
    }

    /// What each of so many ways carried.
    #[must_use]
    pub fn by_way(&self, ways: u8) -> Vec<u64> {
        let mut bytes = self.0.clone();
        bytes.resize(usize::from(ways), 0);
        bytes
    }

    fn since(mut self, before: &Self) -> Self {
        for (bytes, early) in self.0.iter_mut().zip(&before.0) {
            *bytes -= early;
        }
        self
    }
}

/// The figures of a flow at one moment, the opener's first: when measuring began, or since then.
#[derive(Debug, Default)]
pub struct FlowCounters {
    /// What either end has sent.
    pub sent: [SendCounters; 2],
    /// What both ends have sent, by way.
    pub carried: PathBytes,
    /// Bytes that either end has read.
    pub delivered: [u64; 2],
    /// Round-trip samples of the opener in nanoseconds, where they are kept.
    pub rtt: RttHistogram,
}

impl FlowCounters {
    /// What has been added since `before`.
    ///
    /// # Panics
    /// Where `before` is not from before.
    #[must_use]
    pub fn since(mut self, before: &Self) -> Self {
        if let (Some(all), Some(early)) = (&mut self.rtt, &before.rtt) {
            all.subtract(&**early)
                .expect("both have the same bounds, and counts only grow");
        }
        Self {
            sent: [0, 1].map(|side| self.sent[side].since(before.sent[side])),
            carried: self.carried.since(&before.carried),
            delivered: [0, 1].map(|side| self.delivered[side] - before.delivered[side]),
            rtt: self.rtt,
        }
    }
}

/// A request and its response, as the one who asks sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// When the request was made.
    pub requested_at: Instant,
    /// When the response was whole.
    pub responded_at: Instant,
    /// From the first packet of the one who asks to the last one that it got before the response was whole, as its
    /// interface saw them; `None` where nobody looked.
    pub on_wire: Option<Duration>,
}

impl Transaction {
    /// How long the one who asks waited; with a connection of its own, from the wish to connect.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.responded_at - self.requested_at
    }
}

/// What became of a flow. Counters are of the measured time alone.
#[derive(Clone, Debug)]
pub struct FlowOutcome {
    /// Its number, in the order in which flows begin.
    pub number: u32,
    /// 0 for the measured flows, else the place in `[[traffic]]`, from 1.
    pub group: u32,
    /// Which of the group's pairs of hosts.
    pub pair: u32,
    /// Bytes that it was to send, where that is known.
    pub size: Option<u64>,
    /// When its application asked for it.
    pub opened_at: Instant,
    /// When the first data packet left.
    pub first_data_at: Option<Instant>,
    /// When the sender learned that the last byte so far had arrived.
    pub last_acknowledged_at: Option<Instant>,
    /// When the receiver had read all of `size`.
    pub received_at: Option<Instant>,
    /// What both ends sent.
    pub sent: SendCounters,
    /// Which ways carried that.
    pub carried: PathBytes,
    /// Bytes that the receiver read, and the sender.
    pub delivered: [u64; 2],
    /// Bytes that either end ever read.
    pub delivered_in_all: u64,
    /// Round-trip samples of the sender in nanoseconds, where they were kept.
    pub rtt: RttHistogram,
    /// Requests that were answered.
    pub transactions: Vec<Transaction>,
    /// Requests that were not, where there is a time for it.
    pub unanswered: u64,
    /// All packets that both ends sent, those without payload too, where they are counted.
    pub packets: Option<u64>,
    /// The ways between its hosts that carried its data, one bit each.
    pub ways: u64,
    /// Whether both streams ended and were acknowledged.
    pub finished: bool,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

impl FlowOutcome {
    /// Flow completion time in seconds, from the wish to connect to the arrival of the last byte.
    #[must_use]
    pub fn completion(&self) -> Option<f64> {
        Some((self.received_at? - self.opened_at).as_secs_f64())
    }

    /// Size over completion time, in bit/s.
    #[must_use]
    pub fn throughput(&self) -> Option<f64> {
        let seconds = self.completion().filter(|seconds| *seconds > 0.0)?;
        Some(self.size? as f64 * 8.0 / seconds)
    }
}
