//! The payload of a packet that has arrived.

use std::ops::Range;

use transport::arq::Payload;

/// Bytes that arrived. What comes in order is read at once and never copied to be kept; only what
/// waits for packets before it gets a buffer of its own, of just its size.
#[derive(Debug)]
pub enum Arrived {
    /// Its place in the datagram that is being handled.
    Here(Range<usize>),
    /// A copy.
    Kept(Box<[u8]>),
}

impl Arrived {
    /// The bytes, given the datagram that is being handled.
    ///
    /// # Panics
    /// If a payload that was `Here` is read after its datagram.
    #[must_use]
    pub fn bytes<'a>(&'a self, datagram: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Here(range) => &datagram[range.clone()],
            Self::Kept(bytes) => bytes,
        }
    }
}

impl Payload for Arrived {
    fn length(&self) -> u32 {
        let length = match self {
            Self::Here(range) => range.len(),
            Self::Kept(bytes) => bytes.len(),
        };
        u32::try_from(length).unwrap_or(u32::MAX)
    }
}
