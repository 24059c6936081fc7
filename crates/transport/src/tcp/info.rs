//! Snapshot of a connection, modelled on Linux's `tcp_info`.

use foundation::{Duration, Rate};

use super::state::{CongestionState, State};

/// Segments and payload bytes of this end by the code point with which they arrived (RFC 9768).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccurateEcnInfo {
    /// Segments marked CE (`tcpi_delivered_ce`).
    pub ce_packets: u32,
    /// Bytes marked CE as far as options report them, modulo 2^32 (`tcpi_delivered_ce_bytes`).
    pub ce_bytes: u32,
    /// Bytes marked ECT(0), likewise (`tcpi_delivered_e0_bytes`).
    pub ect0_bytes: u32,
    /// Bytes marked ECT(1), likewise (`tcpi_delivered_e1_bytes`).
    pub ect1_bytes: u32,
}

/// Snapshot of a connection. Segment counts follow Linux's definitions; sizes are in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// State of the connection.
    pub state: State,
    /// State of congestion control (`tcpi_ca_state`).
    pub congestion_state: CongestionState,
    /// Congestion window in segments (`tcpi_snd_cwnd`).
    pub window_packets: u64,
    /// Congestion window in bytes.
    pub window_bytes: u64,
    /// Slow start threshold in segments; `None` before it is set, and for controllers without one.
    pub ssthresh_packets: Option<u64>,
    /// Smoothed round-trip time, `None` before the first sample.
    pub smoothed_rtt: Option<Duration>,
    /// The latest round-trip sample, `None` before the first.
    pub latest_rtt: Option<Duration>,
    /// Mean deviation of the round-trip time.
    pub rtt_variation: Duration,
    /// Minimum round-trip time.
    pub min_rtt: Option<Duration>,
    /// Retransmission timeout, back-off included.
    pub rto: Duration,
    /// Doublings of the timeout.
    pub backoff: u32,
    /// Consecutive timeouts (`tcpi_retransmits`).
    pub timeouts: u32,
    /// Unanswered window probes (`tcpi_probes`).
    pub zero_window_probes: u32,
    /// Unacknowledged segments (`tcpi_unacked`).
    pub unacked: u64,
    /// Selectively acknowledged segments; without SACK, duplicate ACKs.
    pub sacked: u64,
    /// Segments considered lost.
    pub lost: u64,
    /// Segments whose retransmission is in flight (`tcpi_retrans`).
    pub retransmitted: u64,
    /// Total retransmissions (`tcpi_total_retrans`).
    pub total_retransmitted: u64,
    /// Total segments considered lost.
    pub total_lost: u64,
    /// Reordering to expect, in segments (`tcpi_reordering`).
    pub reordering: u64,
    /// Number of reordering events (`tcpi_reord_seen`).
    pub reordering_seen: u32,
    /// Estimated payload bytes in flight.
    pub bytes_in_flight: u64,
    /// Delivered segments (`tcpi_delivered`).
    pub delivered: u64,
    /// Segments delivered by ACKs with a congestion echo (`tcpi_delivered_ce`).
    pub delivered_marked: u64,
    /// Delivered payload bytes.
    pub bytes_delivered: u64,
    /// Payload bytes written but not sent (`tcpi_notsent_bytes`).
    pub bytes_unsent: u64,
    /// Pacing rate, where segments are paced.
    pub pacing_rate: Option<Rate>,
    /// Payload bytes of a full segment (`tcpi_snd_mss`).
    pub segment: u32,
    /// Value of the announced MSS option (`tcpi_advmss`).
    pub announced_mss: u32,
    /// Window advertised by the peer.
    pub send_window: u64,
    /// Window advertised to the peer.
    pub receive_window: u64,
    /// Estimate of the peer's full segments (`tcpi_rcv_mss`); 0 before the first.
    pub receive_segment: u32,
    /// Payload bytes that arrived in order (`tcpi_bytes_received`).
    pub bytes_received: u64,
    /// Current ACK delay (`tcpi_ato`).
    pub ack_delay: Duration,
    /// Whether SACK is in use.
    pub sack: bool,
    /// Whether timestamps are in use.
    pub timestamps: bool,
    /// Whether ECN is in use.
    pub ecn: bool,
    /// What the peer reports with accurate feedback (RFC 9768); `None` without it.
    pub accurate_ecn: Option<AccurateEcnInfo>,
    /// The peer's window shift.
    pub send_scale: u8,
    /// This end's window shift.
    pub receive_scale: u8,
}
