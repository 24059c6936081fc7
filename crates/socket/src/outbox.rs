//! Outgoing frames of one peer, gathered into trains of equal datagrams.

use std::io;

use foundation::Ecn;

use crate::datagrams::{Datagrams, MAX_TRAIN, Peer};

/// Most datagrams in a train (Linux: `UDP_MAX_SEGMENTS` was 64 before it was doubled).
const MAX_SEGMENTS: usize = 64;

/// A train under construction.
#[derive(Debug)]
pub struct Outbox {
    to: Peer,
    bytes: Vec<u8>,
    segment: usize,
    count: usize,
    /// A shorter datagram ends a train.
    ended: bool,
    ecn: Ecn,
}

impl Outbox {
    /// Returns an empty outbox for this peer.
    #[must_use]
    pub const fn new(to: Peer) -> Self {
        Self {
            to,
            bytes: Vec::new(),
            segment: 0,
            count: 0,
            ended: false,
            ecn: Ecn::NotEct,
        }
    }

    /// Returns the code point of the train.
    #[must_use]
    pub const fn ecn(&self) -> Ecn {
        self.ecn
    }

    /// Sets the code point of the train, including the datagrams that wait.
    pub const fn mark(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }

    /// Returns the peer.
    #[must_use]
    pub const fn peer(&self) -> Peer {
        self.to
    }

    /// Returns the number of waiting datagrams.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Sends to a different peer from now on.
    pub const fn move_to(&mut self, to: Peer) {
        self.to = to;
    }

    /// Discards the train.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
        self.ended = false;
    }

    /// Sends the train to a different peer, which becomes the outbox's peer.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub fn send_to(&mut self, to: Peer, socket: &Datagrams) -> io::Result<()> {
        self.to = to;
        self.flush(socket)
    }

    /// Whether nothing waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether a datagram of `length` bytes can join the train.
    #[must_use]
    pub const fn fits(&self, length: usize) -> bool {
        self.count == 0
            || (!self.ended
                && length <= self.segment
                && self.count < MAX_SEGMENTS
                && self.bytes.len() + length <= MAX_TRAIN)
    }

    /// Adds a datagram that [`fits`](Self::fits); `write` appends it.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.bytes.len();
        write(&mut self.bytes);
        let length = self.bytes.len() - before;
        if self.count == 0 {
            self.segment = length;
        }
        self.ended = length < self.segment;
        self.count += 1;
    }

    /// Sends the train, if there is one. It stays if there is no room for it now; any other error discards it, as a
    /// network would.
    ///
    /// # Errors
    /// As [`Datagrams::send`].
    pub fn flush(&mut self, socket: &Datagrams) -> io::Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        let result = socket.send_marked(self.to, &self.bytes, self.segment, self.ecn);
        if !result
            .as_ref()
            .is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock)
        {
            self.clear();
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outbox(lengths: &[usize]) -> Outbox {
        let mut outbox = Outbox::new(Peer::new(([127, 0, 0, 1], 9).into()));
        for &length in lengths {
            assert!(outbox.fits(length));
            outbox.push(|bytes| bytes.resize(bytes.len() + length, 0));
        }
        outbox
    }

    #[test]
    fn a_shorter_datagram_ends_a_train() {
        assert!(outbox(&[]).fits(65_507));
        assert!(outbox(&[100, 100]).fits(100));
        assert!(outbox(&[100, 100]).fits(7));
        assert!(!outbox(&[100]).fits(101));
        assert!(!outbox(&[100, 7]).fits(7));
        assert!(!outbox(&[1; MAX_SEGMENTS]).fits(1));
        assert!(!outbox(&[1400; 46]).fits(1400));
    }
}
