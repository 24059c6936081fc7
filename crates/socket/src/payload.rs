//! The payload of a received packet.

use std::ops::{Deref, Range};
use std::sync::Arc;

use transport::arq::Payload;

use crate::datagrams::MIN_SHARED;

/// A part of a receive buffer, kept without a copy. It fills the buffer but for a few bytes.
#[derive(Clone, Debug)]
pub struct SharedBytes {
    buffer: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl SharedBytes {
    /// Keeps `range` of `buffer`; `None` if it is too short to keep the whole buffer for it.
    #[must_use]
    pub fn new(buffer: &Arc<Vec<u8>>, range: Range<usize>) -> Option<Self> {
        (range.len() >= MIN_SHARED).then(|| Self {
            buffer: Arc::clone(buffer),
            range,
        })
    }

    /// Returns the given part of these bytes, if it is long enough to be kept.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> Option<Self> {
        let start = self.range.start;
        Self::new(&self.buffer, start + range.start..start + range.end)
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[self.range.clone()]
    }
}

/// Received bytes. In-order bytes are read at once from their datagram. Other bytes are copied into a buffer of their
/// size, unless they fill a whole receive buffer.
#[derive(Debug)]
pub enum ReceivedPayload {
    /// The range within the datagram that is being handled.
    Here(Range<usize>),
    /// A copy.
    Copied(Box<[u8]>),
    /// A whole receive buffer.
    Shared(SharedBytes),
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
            Self::Copied(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

impl Payload for ReceivedPayload {
    fn length(&self) -> u32 {
        let length = match self {
            Self::Here(range) => range.len(),
            Self::Copied(bytes) => bytes.len(),
            Self::Shared(bytes) => bytes.len(),
        };
        u32::try_from(length).unwrap_or(u32::MAX)
    }

    fn split(self, size: u32) -> Vec<Self> {
        let size = size as usize;
        let bytes = match &self {
            Self::Here(range) => {
                return range
                    .clone()
                    .step_by(size)
                    .map(|at| Self::Here(at..range.end.min(at + size)))
                    .collect();
            }
            Self::Copied(bytes) => bytes,
            Self::Shared(bytes) => &**bytes,
        };
        bytes.chunks(size).map(|part| Self::Copied(part.into())).collect()
    }
}
