//! A connection and its bytes.

use foundation::Instant;
use transport::Machine as _;
use transport::tcp::wire::{Endpoints, encode};
use transport::tcp::{Connection, Segment};

use crate::bytes::Bytes;

/// One end of a connection, with its stream's bytes.
#[derive(Debug)]
pub(crate) struct Stream {
    /// From this end to the peer.
    pub(crate) endpoints: Endpoints,
    pub(crate) connection: Connection,
    /// Written and unacknowledged bytes.
    sent: Bytes,
    /// Received and unread bytes, with gaps.
    arrived: Bytes,
    /// Accepted, and not yet reported to the owner.
    pub(crate) is_new: bool,
    /// In the queue of connections that may have a packet to send.
    pub(crate) is_ready: bool,
    /// The deadline of its timer.
    pub(crate) timeout: Option<Instant>,
    /// Released by its owner: the stack removes it once it is closed.
    pub(crate) is_released: bool,
}

impl Stream {
    pub(crate) fn new(endpoints: Endpoints, connection: Connection, is_new: bool) -> Self {
        Self {
            endpoints,
            connection,
            sent: Bytes::default(),
            arrived: Bytes::default(),
            is_new,
            is_ready: false,
            timeout: None,
            is_released: false,
        }
    }

    /// Number of retransmitted segments.
    pub(crate) fn retransmissions(&self) -> u64 {
        self.connection.statistics().retransmissions
    }

    /// Handles a segment of the connection.
    pub(crate) fn receive(&mut self, now: Instant, segment: Segment, payload: &[u8]) {
        let offset = self.connection.payload_offset(&segment);
        self.connection.handle_frame(now, segment);
        self.keep(offset, payload);
        self.sent.forget_before(self.connection.acknowledged());
    }

    /// Stores the payload at an offset, if the connection accepted it.
    pub(crate) fn keep(&mut self, offset: i64, payload: &[u8]) {
        if self.connection.took_payload() {
            // Drops duplicates before offset 0 and bytes beyond the window.
            let skipped = usize::try_from(-offset.min(0)).unwrap_or(usize::MAX);
            let payload = payload.get(skipped..).unwrap_or_default();
            let offset = offset.max(0) as u64;
            let room = self.connection.receive_limit().saturating_sub(offset);
            let payload = &payload[..payload.len().min(room as usize)];
            self.arrived.put(offset, payload);
        }
    }

    /// Reads received bytes in order into `out`.
    pub(crate) fn read(&mut self, now: Instant, out: &mut [u8]) -> usize {
        let count = self.connection.read(now, out.len() as u64) as usize;
        self.arrived.take(&mut out[..count]);
        count
    }

    /// Writes as many bytes as the send buffer has room for.
    pub(crate) fn write(&mut self, now: Instant, bytes: &[u8], more: bool) -> usize {
        let length = bytes.len() as u64;
        let count = if more {
            self.connection.write_more(now, length)
        } else {
            self.connection.write(now, length)
        } as usize;
        self.sent.append(&bytes[..count]);
        count
    }

    /// Writes the next outgoing packet to `out`; returns false if there is none.
    pub(crate) fn transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        while let Some(outgoing) = self.connection.poll_transmit(now) {
            let fill = |payload: &mut [u8]| {
                // Segments without payload have no stream offset.
                if !payload.is_empty() {
                    self.sent.copy(outgoing.offset, payload);
                }
            };
            if encode(&outgoing.segment, self.endpoints, out, fill).is_ok() {
                return true;
            }
            // A segment that fits no IP packet is dropped, like a lost packet.
        }
        false
    }
}
