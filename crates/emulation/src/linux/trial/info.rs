//! What the kernel tells of one of its TCP connections (`struct tcp_info` of `linux/tcp.h`).

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

use experiment::outcome::Sent;

/// Bytes that are asked for: up to `tcpi_total_rto_time` of Linux 6.7 and later. An older kernel gives fewer, and what it
/// does not know stays zero.
const LENGTH: usize = 248;

/// A snapshot of a kernel's connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Info([u8; LENGTH]);

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

    /// Smoothed round-trip time in nanoseconds (`tcpi_rtt` is in microseconds), 0 before the first sample.
    pub(crate) fn smoothed_rtt(&self) -> u64 {
        self.word(68) * 1000
    }

    /// Segments that were sent and are not acknowledged (`tcpi_unacked`).
    pub(crate) fn unacknowledged(&self) -> u64 {
        self.word(24)
    }

    /// What the sending direction counts (`tcpi_data_segs_out`, `tcpi_bytes_sent`, `tcpi_total_retrans`,
    /// `tcpi_total_rto`, `tcpi_bytes_acked`).
    pub(crate) fn sent(&self) -> Sent {
        Sent {
            packets: self.word(156),
            bytes: self.long(200),
            retransmissions: self.word(100),
            timeouts: u64::from(u16::from_ne_bytes([self.0[240], self.0[241]])),
            // The SYN counts as a byte.
            acknowledged: self.long(120).saturating_sub(1),
        }
    }
}
