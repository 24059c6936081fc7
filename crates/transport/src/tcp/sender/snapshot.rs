//! The decisions of a sender, for traces.

use foundation::Duration;

use super::Sender;
use crate::statistics::Statistics;
use crate::tcp::config::Recovery;
use crate::tcp::state::CongestionState;

/// The state in which a sender decides, and counts of its decisions so far.
#[derive(Clone, Copy, Debug)]
pub struct SenderSnapshot {
    /// State of loss recovery.
    pub state: CongestionState,
    /// Phase of the congestion controller.
    pub phase: &'static str,
    /// Loss detection in use: without SACK, `newreno`.
    pub detection: Recovery,
    /// Congestion window in bytes.
    pub window: u64,
    /// Slow-start threshold in bytes, once set.
    pub ssthresh: Option<u64>,
    /// Retransmission timeout, back-off included.
    pub rto: Duration,
    /// Segments acknowledged selectively; without SACK, duplicate ACKs.
    pub sacked: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Tail loss probes sent.
    pub probes: u64,
    /// Losses detected by the reordering timer.
    pub late: u64,
    /// Retransmissions that proved spurious.
    pub spurious: u64,
}

impl Sender {
    /// Returns the state for traces.
    pub fn snapshot(&self, statistics: &Statistics) -> SenderSnapshot {
        SenderSnapshot {
            state: self.state,
            phase: self.controller.phase(),
            detection: match self.parameters.recovery {
                _ if !self.negotiated.sack => Recovery::Newreno,
                recovery => recovery,
            },
            window: self.window_packets() * self.controller.segment(),
            ssthresh: self
                .controller
                .ssthresh()
                .filter(|&threshold| threshold != u64::MAX),
            rto: self.rto(),
            sacked: self.scoreboard.sacked().packets + self.duplicates,
            timeouts: statistics.timeouts,
            probes: u64::from(self.totals.tail_probes),
            late: u64::from(self.totals.late),
            spurious: statistics.spurious_retransmissions,
        }
    }
}
