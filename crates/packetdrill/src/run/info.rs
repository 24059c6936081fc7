//! The figures of `tcp_info` that snippets read.

use foundation::{Duration, Instant};
use transport::tcp::{CongestionState, Info};

use super::link::Link;
use super::symbols;
use crate::code::{Fault, Names, Value};

/// The figures of a connection at one time.
#[derive(Debug)]
pub struct Figures<'a> {
    /// The connection, if there is one.
    pub link: Option<&'a Link>,
    /// When.
    pub now: Instant,
}

/// `TCP_INFINITE_SSTHRESH`: what Linux calls a threshold that has not been set.
const INFINITE: u64 = 0x7fff_ffff;

/// Bits of `tcpi_options`.
const OPTIONS: [(&str, i128); 7] = [
    ("TCPI_OPT_TIMESTAMPS", 1),
    ("TCPI_OPT_SACK", 2),
    ("TCPI_OPT_WSCALE", 4),
    ("TCPI_OPT_ECN", 8),
    ("TCPI_OPT_ECN_SEEN", 16),
    ("TCPI_OPT_SYN_DATA", 32),
    ("TCPI_OPT_USEC_TS", 64),
];

impl Names for Figures<'_> {
    fn get(&self, name: &str) -> Result<Option<Value>, Fault> {
        if let Some((_, bit)) = OPTIONS.iter().find(|(known, _)| *known == name) {
            return Ok(Some(Value::Integer(*bit)));
        }
        let Some(figure) = name.strip_prefix("tcpi_") else {
            return Ok(symbols::value(name).map(|value| Value::Integer(i128::from(value))));
        };
        let unsupported = || Fault::Unsupported(format!("the figure tcpi_{figure}"));
        let Some(link) = self.link else {
            return Err(Fault::Unsupported(format!("tcpi_{figure} without a connection")));
        };
        let value = self.figure(link, figure).ok_or_else(unsupported)?;
        Ok(Some(Value::Integer(i128::from(value))))
    }
}

impl Figures<'_> {
    /// A figure by its name without the prefix; `None` where it is not kept.
    fn figure(&self, link: &Link, figure: &str) -> Option<u64> {
        let info = link.machine.info();
        let micros = Duration::as_micros;
        let millis = |span: Duration| span.as_nanos() / 1_000_000;
        Some(match figure {
            "state" => link.state_number(),
            "ca_state" => match info.congestion_state {
                CongestionState::Open => 0,
                CongestionState::Disorder => 1,
                CongestionState::Cwr => 2,
                CongestionState::Recovery => 3,
                CongestionState::Loss => 4,
            },
            "snd_cwnd" => info.window_packets,
            "snd_ssthresh" => info.ssthresh_packets.unwrap_or(INFINITE),
            "rtt" => info.smoothed_rtt.map_or(0, micros),
            "rttvar" => micros(info.rtt_variation),
            "min_rtt" => info.min_rtt.map_or(u64::from(u32::MAX), micros),
            "rto" => micros(info.rto),
            "backoff" => u64::from(info.backoff),
            "retransmits" => u64::from(info.timeouts),
            "probes" => u64::from(info.zero_window_probes),
            "unacked" => info.unacked,
            "sacked" => info.sacked,
            "lost" => info.lost,
            "retrans" => info.retransmitted,
            "total_retrans" => info.total_retransmitted,
            "reordering" => info.reordering,
            "reord_seen" => u64::from(info.reordering_seen),
            "notsent_bytes" => info.bytes_unsent,
            "snd_mss" => u64::from(info.segment),
            "advmss" => u64::from(info.announced_mss),
            "snd_wnd" => info.send_window,
            "rcv_wnd" => info.receive_window,
            "ato" => micros(info.ack_delay),
            "snd_wscale" => u64::from(info.send_scale),
            "rcv_wscale" => u64::from(info.receive_scale),
            "options" => options(&info),
            "last_data_recv" => millis(self.now - link.data_arrived_at),
            _ => return None,
        })
    }
}

/// The bits of `tcpi_options`.
fn options(info: &Info) -> u64 {
    let scaled = info.send_scale > 0 || info.receive_scale > 0;
    [(info.timestamps, 1), (info.sack, 2), (scaled, 4), (info.ecn, 8)]
        .into_iter()
        .map(|(used, bit)| if used { bit } else { 0 })
        .sum()
}
