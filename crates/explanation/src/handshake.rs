//! The handshake of a connection as captured.

use foundation::{Duration, Instant};

/// Times of a handshake.
#[derive(Clone, Copy, Debug, Default)]
pub struct Handshake {
    /// The first SYN, and the last one before the answer.
    pub syns: Option<(Instant, Instant)>,
    /// Retransmitted SYNs.
    pub repeated: u32,
    /// The SYN-ACK.
    pub answer: Option<Instant>,
    /// The ACK of it.
    pub established: Option<Instant>,
}

impl Handshake {
    /// Returns the RTT between the capture and the server, and that between the capture and the client.
    #[must_use]
    pub fn round_trips(&self) -> Option<(Duration, Duration)> {
        let ((_, syn), answer, end) = (self.syns?, self.answer?, self.established?);
        Some((answer.saturating_since(syn), end.saturating_since(answer)))
    }

    /// Returns the start, the end, and the retransmitted SYNs.
    #[must_use]
    pub fn span(&self) -> Option<(Instant, Instant)> {
        Some((self.syns?.0, self.established.or(self.answer)?))
    }
}
