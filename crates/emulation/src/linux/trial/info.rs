//! What the kernel tells of one of its TCP connections (`struct tcp_info` of `linux/tcp.h`).

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

use experiment::outcome::Sent;
use experiment::trace::Probe;
use kernel::mptcp::TcpInfo;

/// Bytes that are asked for: up to `tcpi_total_rto_time` of Linux 6.7 and later. An older kernel gives fewer, and what it
/// does not know stays zero.
const LENGTH: usize = 248;

/// `TCP_INFINITE_SSTHRESH`: there is no threshold yet.
const NO_THRESHOLD: u64 = 0x7fff_ffff;

/// A snapshot of a kernel's connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Info([u8; LENGTH]);

/// Of one subflow of a connection of MPTCP.
impl From<TcpInfo> for Info {
    fn from(subflow: TcpInfo) -> Self {
        Self(*subflow.bytes())
    }
}

impl Info {
    /// The connection as it stands now.
    pub(crate) fn of(socket: &TcpStream) -> io::Result<Self> {
        let mut bytes = [0_u8; LENGTH];
        let mut length = LENGTH as libc::socklen_t;
        // SAFETY: the descriptor is open, and the kernel writes at most `length` bytes into `bytes`.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                bytes.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if result == 0 {
            Ok(Self(bytes))
        } else {
            Err(io::Error::last_os_error())
        }
    }

    fn word(&self, at: usize) -> u64 {
        let bytes = [self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]];
        u64::from(u32::from_ne_bytes(bytes))
    }

    fn long(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.0[at..at + 8]);
        u64::from_ne_bytes(bytes)
    }

    /// Segments that were sent and are not acknowledged (`tcpi_unacked`).
    pub(crate) fn unacknowledged(&self) -> u64 {
        self.word(24)
    }

    /// What the sending direction counts (`tcpi_data_segs_out`, `tcpi_bytes_sent`, `tcpi_total_retrans`,
    /// `tcpi_total_rto`, `tcpi_bytes_retrans`, `tcpi_bytes_acked`).
    pub(crate) fn sent(&self) -> Sent {
        // The SYN counts as a byte.
        let acknowledged = self.long(120).saturating_sub(1);
        Sent {
            packets: self.word(156),
            bytes: self.long(200),
            retransmissions: self.word(100),
            timeouts: u64::from(u16::from_ne_bytes([self.0[240], self.0[241]])),
            bytes_again: self.long(208),
            acknowledged,
            acknowledged_new: acknowledged,
        }
    }

    /// What the sender is doing: `tcpi_snd_cwnd`, `tcpi_snd_ssthresh`, `tcpi_rtt`, `tcpi_rttvar`, `tcpi_pacing_rate`,
    /// `tcpi_delivery_rate`, `tcpi_rwnd_limited`, `tcpi_sndbuf_limited` and `tcpi_ca_state`. In flight is what the kernel
    /// takes for it: `tcpi_unacked - tcpi_sacked - tcpi_lost + tcpi_retrans`. It tells no single sample of the round-trip
    /// time; of `rttvar` it gives the mean deviation that RFC 6298 calls RTTVAR.
    pub(crate) fn probe(&self) -> Probe {
        let segment = self.word(16);
        let micros = |value: u64| value as f64 / 1e6;
        let bits = |bytes: u64| Some(bytes as f64 * 8.0).filter(|_| bytes > 0 && bytes != u64::MAX);
        let (rtt, threshold) = (self.word(68), self.word(76));
        let left = self.word(28) + self.word(32);
        Probe {
            window: Some(self.word(80) * segment),
            threshold: (threshold < NO_THRESHOLD).then_some(threshold * segment),
            smoothed_rtt: (rtt > 0).then(|| micros(rtt)),
            rtt: None,
            rtt_variation: (rtt > 0).then(|| micros(self.word(72))),
            pacing_rate: bits(self.long(104)),
            delivery_rate: bits(self.long(160)),
            in_flight: (self.word(24) + self.word(36)).saturating_sub(left) * segment,
            retransmissions: Some(self.word(100)),
            receiver_limited: Some(micros(self.long(176))),
            buffer_limited: Some(micros(self.long(184))),
            state: match self.0[1] {
                0 => "open",
                1 => "disorder",
                2 => "cwr",
                3 => "recovery",
                _ => "loss",
            },
        }
    }
}
