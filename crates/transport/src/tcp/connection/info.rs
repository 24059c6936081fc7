//! What a connection tells about itself, in the manner of Linux's `tcp_info`.

use foundation::{Duration, Rate};

use super::{Connection, State};
use crate::tcp::sender::CongestionState;

/// A snapshot of a connection. Segments are counted as Linux counts them; sizes are bytes.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// State of the connection.
    pub state: State,
    /// State of congestion control (`tcpi_ca_state`).
    pub congestion_state: CongestionState,
    /// Congestion window in segments (`tcpi_snd_cwnd`) and in bytes.
    pub window_packets: u64,
    /// The congestion window in bytes.
    pub window_bytes: u64,
    /// Slow start threshold in segments, `None` where it is not set yet or there is none.
    pub ssthresh_packets: Option<u64>,
    /// Smoothed round-trip time, `None` before the first sample.
    pub smoothed_rtt: Option<Duration>,
    /// The latest round-trip sample, `None` before the first.
    pub latest_rtt: Option<Duration>,
    /// Mean deviation of the round-trip time.
    pub rtt_variation: Duration,
    /// Least round-trip time.
    pub min_rtt: Option<Duration>,
    /// Retransmission timeout, back-off included.
    pub rto: Duration,
    /// Doublings of the timeout.
    pub backoff: u32,
    /// Timeouts since the last progress (`tcpi_retransmits`).
    pub timeouts: u32,
    /// Unanswered window probes (`tcpi_probes`).
    pub zero_window_probes: u32,
    /// Segments not acknowledged (`tcpi_unacked`), selectively acknowledged, lost, and retransmitted.
    pub unacked: u64,
    /// Segments selectively acknowledged; without SACK, duplicate ACKs.
    pub sacked: u64,
    /// Segments taken for lost.
    pub lost: u64,
    /// Segments whose retransmission is in flight (`tcpi_retrans`).
    pub retransmitted: u64,
    /// Segments that were ever sent again (`tcpi_total_retrans`).
    pub total_retransmitted: u64,
    /// Segments that were ever taken for lost.
    pub total_lost: u64,
    /// Segments of reordering to expect (`tcpi_reordering`), and how often it was seen.
    pub reordering: u64,
    /// Times that reordering was seen (`tcpi_reord_seen`).
    pub reordering_seen: u32,
    /// Payload bytes in flight as far as is known.
    pub bytes_in_flight: u64,
    /// Segments delivered (`tcpi_delivered`).
    pub delivered: u64,
    /// Segments delivered by ACKs that echoed congestion (`tcpi_delivered_ce`).
    pub delivered_marked: u64,
    /// Payload bytes delivered.
    pub bytes_delivered: u64,
    /// Payload bytes written and not sent (`tcpi_notsent_bytes`).
    pub bytes_unsent: u64,
    /// The rate at which segments leave, where they are paced.
    pub pacing_rate: Option<Rate>,
    /// Payload bytes of a full segment (`tcpi_snd_mss`), and what the MSS option announces (`tcpi_advmss`).
    pub segment: u32,
    /// What the MSS option announces.
    pub announced_mss: u32,
    /// The peer's window and the one offered to it.
    pub send_window: u64,
    /// The window offered to the peer.
    pub receive_window: u64,
    /// How long an ACK would be delayed (`tcpi_ato`).
    pub ack_delay: Duration,
    /// Options in use.
    pub sack: bool,
    /// Whether timestamps are in use.
    pub timestamps: bool,
    /// Whether ECN is in use.
    pub ecn: bool,
    /// Window shifts: the peer's and this end's.
    pub send_scale: u8,
    /// This end's window shift.
    pub receive_scale: u8,
}

impl Connection {
    /// A snapshot of the connection.
    #[must_use]
    pub fn info(&self) -> Info {
        let mut info = self.sender.info(self.state);
        info.announced_mss = self.parameters.mss;
        info.receive_window = self.receiver.window();
        info.ack_delay = self.receiver.timing().delay;
        info.sack = self.sack;
        info.timestamps = self.timestamps;
        info.ecn = self.ecn;
        info.send_scale = self.peer_scale;
        info.receive_scale = self.scale;
        info
    }
}
