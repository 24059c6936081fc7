//! The kernel's counters and estimates of one TCP connection (`TCP_INFO`, `tcp(7)`; `struct tcp_info` of `linux/tcp.h`).

use std::io;
use std::os::fd::AsFd;

use foundation::Duration;

use crate::socket_options::read_option;

/// Bytes of `struct tcp_info` up to `tcpi_total_rto_time` of Linux 6.7. Older kernels return fewer; the rest stays zero.
pub(crate) const LENGTH: usize = 248;

/// `TCPI_OPT_SYN_DATA`.
const SYN_DATA: u8 = 32;

/// A snapshot of a plain TCP connection or of one MPTCP subflow. Fields that the kernel does not report are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct TcpInfo([u8; LENGTH]);

impl TcpInfo {
    pub(crate) const EMPTY: Self = Self([0; LENGTH]);

    /// Reads the state of a socket's connection.
    ///
    /// # Errors
    /// The error of `getsockopt(2)`.
    pub fn of_socket(socket: &impl AsFd) -> io::Result<Self> {
        let mut info = Self::EMPTY;
        // SAFETY: an array of bytes.
        unsafe { read_option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info.0) }?;
        Ok(info)
    }

    /// Parses a `struct tcp_info`, as `sock_diag(7)` returns it.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut info = Self::EMPTY;
        let length = bytes.len().min(LENGTH);
        info.0[..length].copy_from_slice(&bytes[..length]);
        info
    }

    /// The byte at this offset of the structure.
    #[must_use]
    pub const fn u8_at(&self, offset: usize) -> u8 {
        self.0[offset]
    }

    /// The 16-bit field at this offset.
    #[must_use]
    pub fn u16_at(&self, offset: usize) -> u16 {
        u16::from_ne_bytes([self.0[offset], self.0[offset + 1]])
    }

    /// The 32-bit field at this offset.
    #[must_use]
    pub fn u32_at(&self, offset: usize) -> u32 {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.0[offset..offset + 4]);
        u32::from_ne_bytes(bytes)
    }

    /// The 64-bit field at this offset.
    #[must_use]
    pub fn u64_at(&self, offset: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.0[offset..offset + 8]);
        u64::from_ne_bytes(bytes)
    }

    /// Smoothed round-trip time in microseconds (`tcpi_rtt`); 0 before the first sample.
    #[must_use]
    pub fn smoothed_rtt_us(&self) -> u32 {
        self.u32_at(68)
    }

    /// Minimum round-trip time in microseconds (`tcpi_min_rtt`); `None` before the first sample.
    #[must_use]
    pub fn min_rtt_us(&self) -> Option<u32> {
        Some(self.u32_at(148)).filter(|&rtt| rtt != 0 && rtt != u32::MAX)
    }

    /// Payload bytes sent, retransmissions included (`tcpi_bytes_sent`).
    #[must_use]
    pub fn bytes_sent(&self) -> u64 {
        self.u64_at(200)
    }

    /// Payload bytes acknowledged, without the sequence number of the SYN (`tcpi_bytes_acked`).
    #[must_use]
    pub fn bytes_acknowledged(&self) -> u64 {
        self.u64_at(120).saturating_sub(1)
    }

    /// Payload bytes received (`tcpi_bytes_received`).
    #[must_use]
    pub fn bytes_received(&self) -> u64 {
        self.u64_at(128)
    }

    /// Retransmitted segments (`tcpi_total_retrans`).
    #[must_use]
    pub fn retransmissions(&self) -> u32 {
        self.u32_at(100)
    }

    /// Segments sent and not acknowledged (`tcpi_unacked`).
    #[must_use]
    pub fn unacknowledged(&self) -> u32 {
        self.u32_at(24)
    }

    /// Whether the SYN carried data that its acknowledgement covered (RFC 7413).
    #[must_use]
    pub const fn syn_data(&self) -> bool {
        self.u8_at(5) & SYN_DATA != 0
    }

    /// The round-trip time of the handshake, right after it. `None` after a retransmission of the SYN, because the answer may
    /// belong to either copy.
    #[must_use]
    pub fn handshake_rtt(&self) -> Option<Duration> {
        let micros = self.smoothed_rtt_us();
        (self.retransmissions() == 0 && micros > 0).then(|| Duration::from_micros(micros.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_new_connection_reports_its_handshake_rtt() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let start = std::time::Instant::now();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let took = Duration::from(start.elapsed());
        let info = TcpInfo::of_socket(&stream).unwrap();
        assert!(!info.syn_data());
        if let Some(handshake) = info.handshake_rtt() {
            assert!(handshake <= took + Duration::from_micros(1), "{handshake} {took}");
        }
    }

    #[test]
    fn missing_fields_are_zero() {
        let info = TcpInfo::from_bytes(&[0xff; 60]);
        assert_eq!((info.u32_at(56), info.u32_at(60)), (u32::MAX, 0));
        assert_eq!(info.handshake_rtt(), None);
    }
}
