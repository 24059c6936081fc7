//! Counters and state of a flow's end, from the kernel's `TCP_INFO` (`struct tcp_info` of `linux/tcp.h`).

use experiment::outcome::SendCounters;
use experiment::trace::Probe;
use kernel::TcpInfo;

/// `TCP_INFINITE_SSTHRESH`: no threshold yet.
const NO_THRESHOLD: u64 = 0x7fff_ffff;

/// Counters of the sending direction (`tcpi_data_segs_out`, `tcpi_bytes_sent`, `tcpi_total_retrans`, `tcpi_total_rto`,
/// `tcpi_bytes_retrans`, `tcpi_bytes_acked`, `tcpi_rwnd_limited`, `tcpi_sndbuf_limited`).
pub(super) fn sent(info: &TcpInfo) -> SendCounters {
    SendCounters {
        packets: info.u32_at(156).into(),
        bytes: info.bytes_sent(),
        retransmissions: info.retransmissions().into(),
        timeouts: info.u16_at(240).into(),
        bytes_again: info.u64_at(208),
        acknowledged: info.bytes_acknowledged(),
        receiver_limited_ns: info.u64_at(176) * 1000,
        buffer_limited_ns: info.u64_at(184) * 1000,
    }
}

/// State of the sender: `tcpi_snd_cwnd`, `tcpi_snd_ssthresh`, `tcpi_rtt`, `tcpi_rttvar`, `tcpi_pacing_rate`,
/// `tcpi_delivery_rate`, `tcpi_rwnd_limited`, `tcpi_sndbuf_limited` and `tcpi_ca_state`. The bytes in flight follow the
/// kernel's own formula, `tcpi_unacked - tcpi_sacked - tcpi_lost + tcpi_retrans`. The kernel reports no single RTT samples;
/// its `rttvar` is the mean deviation that RFC 6298 calls RTTVAR.
pub(super) fn probe(info: &TcpInfo) -> Probe {
    let field = |offset: usize| u64::from(info.u32_at(offset));
    let micros = |value: u64| value as f64 / 1e6;
    let bits = |bytes: u64| Some(bytes as f64 * 8.0).filter(|_| bytes > 0 && bytes != u64::MAX);
    let segment = field(16);
    let (rtt, threshold) = (u64::from(info.smoothed_rtt_us()), field(76));
    let left = field(28) + field(32);
    Probe {
        window: Some(field(80) * segment),
        threshold: (threshold < NO_THRESHOLD).then_some(threshold * segment),
        smoothed_rtt: (rtt > 0).then(|| micros(rtt)),
        rtt: None,
        rtt_variation: (rtt > 0).then(|| micros(field(72))),
        pacing_rate: bits(info.u64_at(104)),
        delivery_rate: bits(info.u64_at(160)),
        in_flight: (field(24) + field(36)).saturating_sub(left) * segment,
        retransmissions: Some(info.retransmissions().into()),
        receiver_limited: Some(micros(info.u64_at(176))),
        buffer_limited: Some(micros(info.u64_at(184))),
        controller: Vec::new(),
        state: match info.u8_at(1) {
            0 => "open",
            1 => "disorder",
            2 => "cwr",
            3 => "recovery",
            _ => "loss",
        },
    }
}
