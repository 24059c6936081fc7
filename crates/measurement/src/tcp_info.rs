//! What the kernel says of a connection (`TCP_INFO`, `tcp(7)`, `linux/tcp.h`).

use std::os::fd::BorrowedFd;

use foundation::Duration;

use crate::system;

/// The figures that measurements ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// The smoothed round-trip time; right after the handshake, the one of the SYN. To the microsecond.
    pub rtt: Duration,
    /// Segments that were sent again.
    pub retransmissions: u32,
    /// Whether data on the SYN was acknowledged with it (RFC 7413).
    pub syn_data: bool,
}

/// `TCPI_OPT_SYN_DATA`.
const SYN_DATA: u8 = 32;

impl TcpInfo {
    /// Of a socket; `None` where the kernel does not say.
    #[must_use]
    pub fn of(socket: BorrowedFd<'_>) -> Option<Self> {
        let mut bytes = [0; 128];
        Self::read(system::option(socket, libc::SOL_TCP, libc::TCP_INFO, &mut bytes).ok()?)
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        Some(Self {
            rtt: Duration::from_micros(word(68)?.into()),
            retransmissions: word(100)?,
            syn_data: bytes.get(5)? & SYN_DATA != 0,
        })
    }

    /// The round trip of the handshake; `None` where the SYN was sent again, so that it cannot be told which one was
    /// answered.
    #[must_use]
    pub fn handshake(&self) -> Option<Duration> {
        (self.retransmissions == 0 && !self.rtt.is_zero()).then_some(self.rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    #[test]
    fn a_fresh_connection_has_the_round_trip_of_its_handshake() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let begun = std::time::Instant::now();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let took = Duration::from(begun.elapsed());
        let info = TcpInfo::of(stream.as_fd()).unwrap();
        assert!(!info.syn_data);
        if let Some(handshake) = info.handshake() {
            assert!(handshake <= took + Duration::from_micros(1), "{handshake} {took}");
        }
    }

    #[test]
    fn a_short_answer_of_an_old_kernel_is_none() {
        assert_eq!(TcpInfo::read(&[0; 60]), None);
    }
}
