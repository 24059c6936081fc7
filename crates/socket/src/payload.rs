//! The payload of a received packet.

use std::ops::Range;

use transport::arq::Payload;

/// Received bytes. In-order bytes are read at once from their datagram; only out-of-order bytes are copied, into a
/// buffer of their size.
#[derive(Debug)]
pub enum ReceivedPayload {
    /// The range within the datagram that is being handled.
    Here(Range<usize>),
    /// A copy.
    Kept(Box<[u8]>),
}

impl ReceivedPayload {
    /// Returns the bytes; `datagram` is the one being handled.
    ///
    /// # Panics
    /// If a `Here` payload is read after its datagram is gone.
    #[must_use]
    pub fn bytes<'a>(&'a self, datagram: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Here(range) => &datagram[range.clone()],
            Self::Kept(bytes) => bytes,
        }
    }
}

impl Payload for ReceivedPayload {
    fn length(&self) -> u32 {
        let length = match self {
            Self::Here(range) => range.len(),
            Self::Kept(bytes) => bytes.len(),
        };
        u32::try_from(length).unwrap_or(u32::MAX)
    }

    fn split(self, size: u32) -> Vec<Self> {
        let size = size as usize;
        match self {
            Self::Here(range) => range
                .clone()
                .step_by(size)
                .map(|at| Self::Here(at..range.end.min(at + size)))
                .collect(),
            Self::Kept(bytes) => bytes.chunks(size).map(|part| Self::Kept(part.into())).collect(),
        }
    }
}
