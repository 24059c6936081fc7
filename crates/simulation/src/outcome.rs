//! What became of a flow.

use foundation::Instant;
use hdrhistogram::Histogram;
use transport::Statistics;

use crate::body::Side;
use crate::endpoint::{Endpoint, Transaction};
use crate::world::Flow;

/// Counters of a sending direction, as they stood at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Data packets, retransmissions included.
    pub packets: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// Data packets sent again.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Payload bytes acknowledged in order.
    pub acknowledged: u64,
}

impl Sent {
    fn of(statistics: &Statistics) -> Self {
        Self {
            packets: statistics.packets_sent,
            bytes: statistics.bytes_sent,
            retransmissions: statistics.retransmissions,
            timeouts: statistics.timeouts,
            acknowledged: statistics.bytes_acknowledged,
        }
    }

    const fn since(self, before: Self) -> Self {
        Self {
            packets: self.packets - before.packets,
            bytes: self.bytes - before.bytes,
            retransmissions: self.retransmissions - before.retransmissions,
            timeouts: self.timeouts - before.timeouts,
            acknowledged: self.acknowledged - before.acknowledged,
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
            acknowledged: self.acknowledged + other.acknowledged,
        }
    }
}

/// The figures of a flow when measuring began.
#[derive(Debug, Default)]
pub(crate) struct Baseline {
    sent: [Sent; 2],
    delivered: [u64; 2],
    rtt: Option<Box<Histogram<u64>>>,
}

impl Baseline {
    pub(crate) fn of(ends: &[Endpoint; 2]) -> Self {
        let sent = |end: &Endpoint| end.statistics().map(Sent::of).unwrap_or_default();
        Self {
            sent: [sent(&ends[0]), sent(&ends[1])],
            delivered: [ends[0].delivered, ends[1].delivered],
            rtt: ends[0].statistics().and_then(|statistics| statistics.rtt.clone()),
        }
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
    pub sent: Sent,
    /// Bytes that the receiver read, and the sender.
    pub delivered: [u64; 2],
    /// Bytes that either end ever read.
    pub delivered_in_all: u64,
    /// Round-trip samples of the sender in nanoseconds, where they were kept.
    pub rtt: Option<Box<Histogram<u64>>>,
    /// Requests that were answered.
    pub transactions: Vec<Transaction>,
    /// Whether both streams ended and were acknowledged.
    pub finished: bool,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

impl FlowOutcome {
    pub(crate) fn of(flow: &Flow) -> Self {
        let [sender, receiver] = &flow.ends;
        let now = Baseline::of(&flow.ends);
        let before = &flow.baseline;
        let statistics = sender.statistics();
        let sent = |side: Side| now.sent[side as usize].since(before.sent[side as usize]);
        let delivered = |side: Side| now.delivered[side as usize] - before.delivered[side as usize];
        let mut rtt = now.rtt;
        if let (Some(all), Some(early)) = (&mut rtt, &before.rtt) {
            all.subtract(&**early)
                .expect("both have the same bounds, and counts only grow");
        }
        Self {
            number: flow.number,
            group: flow.group,
            pair: flow.pair,
            size: flow.size,
            opened_at: flow.opened_at,
            first_data_at: statistics.and_then(|s| s.first_data_at),
            last_acknowledged_at: statistics.and_then(|s| s.last_acknowledged_at),
            received_at: flow.received_at,
            sent: sent(Side::Sender).and(sent(Side::Receiver)),
            delivered: [delivered(Side::Receiver), delivered(Side::Sender)],
            delivered_in_all: sender.delivered + receiver.delivered,
            rtt,
            transactions: sender.progress.transactions.clone(),
            finished: sender.progress.finished,
            failure: sender.progress.failure.clone(),
        }
    }
}
