//! The sender's part of a connection's snapshot.

use super::Sender;
use crate::tcp::info::Info;
use crate::tcp::state::State;

impl Sender {
    /// Returns a snapshot with the sender's fields; the other fields are zero.
    pub fn info(&self, state: State) -> Info {
        let scoreboard = &self.scoreboard;
        let in_packets = |bytes: u64| bytes / self.controller.segment();
        Info {
            state,
            congestion_state: self.state,
            window_packets: self.window_packets(),
            window_bytes: self.window_packets() * self.controller.segment(),
            ssthresh_packets: self
                .controller
                .ssthresh()
                .filter(|&t| t != u64::MAX)
                .map(in_packets),
            smoothed_rtt: self.rtt.has_sample().then(|| self.rtt.smoothed()),
            latest_rtt: self.rtt.has_sample().then(|| self.rtt.latest()),
            rtt_variation: self.rtt.variation(),
            min_rtt: self.rtt.minimum(),
            rto: self.rto(),
            backoff: self.timeout.backoff,
            timeouts: self.timeout.consecutive,
            zero_window_probes: self.due.window_probes,
            unacked: scoreboard.out().packets,
            sacked: scoreboard.sacked().packets + self.duplicates,
            lost: scoreboard.lost().packets,
            retransmitted: scoreboard.retransmitted().packets,
            total_retransmitted: u64::from(self.totals.retransmitted),
            total_lost: u64::from(self.totals.lost),
            reordering: u64::from(self.reordering.extent),
            reordering_seen: self.reordering.events,
            bytes_in_flight: self.pipe_bytes(),
            delivered: self.totals.delivered,
            delivered_marked: u64::from(self.totals.marked),
            bytes_delivered: self.estimator.delivered(),
            bytes_unsent: self.writes.end.saturating_sub(self.next),
            pacing_rate: self.controller.pacing_rate(),
            segment: self.segment,
            announced_mss: 0,
            send_window: self.peer.window,
            receive_window: 0,
            receive_segment: 0,
            bytes_received: 0,
            ack_delay: foundation::Duration::ZERO,
            sack: self.negotiated.sack,
            timestamps: self.negotiated.timestamps,
            ecn: self.negotiated.ecn,
            accurate_ecn: None,
            send_scale: 0,
            receive_scale: 0,
        }
    }
}
