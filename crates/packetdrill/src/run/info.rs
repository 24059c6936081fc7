//! The values that code snippets can read.

use std::collections::BTreeMap;

use foundation::{Duration, Instant};
use transport::tcp::{AccurateEcnInfo, CongestionState, Connection, Info};

use super::symbols;
use super::tested::TestedConnection;

/// `TCP_INFINITE_SSTHRESH`: Linux's value of an unset ssthresh.
const INFINITE: u64 = 0x7fff_ffff;

/// Bits of `tcpi_options`.
const OPTIONS: [(&str, u64); 7] = [
    ("TCPI_OPT_TIMESTAMPS", 1),
    ("TCPI_OPT_SACK", 2),
    ("TCPI_OPT_WSCALE", 4),
    ("TCPI_OPT_ECN", 8),
    ("TCPI_OPT_ECN_SEEN", 16),
    ("TCPI_OPT_SYN_DATA", 32),
    ("TCPI_OPT_USEC_TS", 64),
];

/// Returns the constants of snippets and, if there is a connection, its `tcp_info` with Linux's names.
pub fn values(tested: Option<&TestedConnection>, now: Instant) -> BTreeMap<&'static str, u64> {
    let figures = tested.and_then(|tested| Some(figures(tested, tested.machine.tcp()?, now)));
    symbols::all()
        .chain(OPTIONS)
        .chain(figures.into_iter().flatten())
        .collect()
}

fn figures(tested: &TestedConnection, machine: &Connection, now: Instant) -> [(&'static str, u64); 38] {
    let info = machine.info();
    let limited = machine.limited_times(now);
    let accurate = info.accurate_ecn;
    let counter = |of: fn(AccurateEcnInfo) -> u32| accurate.map_or(0, |accurate| u64::from(of(accurate)));
    let micros = Duration::as_micros;
    let millis = |span: Duration| span.as_nanos() / 1_000_000;
    [
        ("tcpi_state", tested.state_number(machine)),
        (
            "tcpi_ca_state",
            match info.congestion_state {
                CongestionState::Open => 0,
                CongestionState::Disorder => 1,
                CongestionState::Cwr => 2,
                CongestionState::Recovery => 3,
                CongestionState::Loss => 4,
            },
        ),
        ("tcpi_snd_cwnd", info.window_packets),
        ("tcpi_snd_ssthresh", info.ssthresh_packets.unwrap_or(INFINITE)),
        ("tcpi_rtt", info.smoothed_rtt.map_or(0, micros)),
        ("tcpi_rttvar", micros(info.rtt_variation)),
        ("tcpi_min_rtt", info.min_rtt.map_or(u64::from(u32::MAX), micros)),
        ("tcpi_rto", micros(info.rto)),
        ("tcpi_backoff", u64::from(info.backoff)),
        ("tcpi_retransmits", u64::from(info.timeouts)),
        ("tcpi_probes", u64::from(info.zero_window_probes)),
        ("tcpi_unacked", info.unacked),
        ("tcpi_sacked", info.sacked),
        ("tcpi_lost", info.lost),
        ("tcpi_retrans", info.retransmitted),
        ("tcpi_total_retrans", info.total_retransmitted),
        ("tcpi_reordering", info.reordering),
        ("tcpi_reord_seen", u64::from(info.reordering_seen)),
        ("tcpi_notsent_bytes", info.bytes_unsent),
        ("tcpi_snd_mss", u64::from(info.segment)),
        ("tcpi_advmss", u64::from(info.announced_mss)),
        ("tcpi_snd_wnd", info.send_window),
        ("tcpi_rcv_wnd", info.receive_window),
        ("tcpi_rcv_mss", u64::from(receive_segment(&info))),
        ("tcpi_bytes_received", info.bytes_received),
        ("tcpi_ato", micros(info.ack_delay)),
        ("tcpi_snd_wscale", u64::from(info.send_scale)),
        ("tcpi_rcv_wscale", u64::from(info.receive_scale)),
        ("tcpi_options", options(machine, &info)),
        (
            "tcpi_delivered_ce",
            accurate.map_or(info.delivered_marked, |accurate| u64::from(accurate.ce_packets)),
        ),
        ("tcpi_delivered_ce_bytes", counter(|accurate| accurate.ce_bytes)),
        ("tcpi_delivered_e0_bytes", counter(|accurate| accurate.ect0_bytes)),
        ("tcpi_delivered_e1_bytes", counter(|accurate| accurate.ect1_bytes)),
        ("tcpi_rwnd_limited", micros(limited.0)),
        ("tcpi_sndbuf_limited", micros(limited.1)),
        ("tcpi_busy_time", micros(tested.busy.until(now))),
        ("tcpi_delivered", info.delivered + delivered_syn(tested, machine)),
        ("tcpi_last_data_recv", millis(now - tested.data_arrived_at)),
    ]
}

/// Range of Linux's first estimate (`TCP_MIN_MSS`, `TCP_MSS_DEFAULT`).
const FIRST_SEGMENT: (u64, u64) = (88, 536);

/// Returns the estimate of the peer's full segments, which Linux starts before the first one (`tcp_initialize_rcv_mss`).
fn receive_segment(info: &Info) -> u32 {
    let first = u64::from(info.announced_mss.min(info.segment)).min(info.receive_window / 2);
    info.receive_segment
        .max(first.clamp(FIRST_SEGMENT.0, FIRST_SEGMENT.1) as u32)
}

/// Linux counts this end's SYN as delivered once it is acknowledged; a SYN with data counts once.
fn delivered_syn(tested: &TestedConnection, machine: &Connection) -> u64 {
    let with_data = machine.is_client() && machine.used_early_data();
    u64::from(tested.connected && !machine.is_half_synchronized() && !with_data)
}

/// Returns the bits of `tcpi_options`.
fn options(machine: &Connection, info: &Info) -> u64 {
    let scaled = info.send_scale > 0 || info.receive_scale > 0;
    let early = machine.used_early_data();
    [
        (info.timestamps, 1),
        (info.sack, 2),
        (scaled, 4),
        (info.ecn, 8),
        (early, 32),
    ]
    .into_iter()
    .map(|(used, bit)| if used { bit } else { 0 })
    .sum()
}
