//! A connection and its bytes.

use foundation::Instant;
use transport::Machine as _;
use transport::tcp::wire::{Endpoints, encode};
use transport::tcp::{Connection, Segment};

use crate::bytes::Bytes;

/// One end of a connection, with the bytes that its machine only names.
#[derive(Debug)]
pub(crate) struct Stream {
    /// From this end to the peer.
    pub(crate) endpoints: Endpoints,
    pub(crate) connection: Connection,
    /// What was written and not acknowledged.
    sent: Bytes,
    /// What has arrived and was not read, with gaps.
    arrived: Bytes,
    /// It was accepted, and nobody has been told of it yet.
    pub(crate) is_new: bool,
    /// It stands in the queue of those that may have something to send.
    pub(crate) is_ready: bool,
    /// When its timer is set for.
    pub(crate) timeout: Option<Instant>,
    /// Nobody will ask for it any more: once it is closed it is forgotten.
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

    /// A segment of the connection arrived.
    pub(crate) fn receive(&mut self, now: Instant, segment: Segment, payload: &[u8]) {
        let offset = self.connection.payload_offset(&segment);
        self.connection.handle_frame(now, segment);
        self.keep(offset, payload);
        self.sent.forget_before(self.connection.acknowledged());
    }

    /// Keeps the payload at an offset, as far as the connection has taken it.
    pub(crate) fn keep(&mut self, offset: i64, payload: &[u8]) {
        if self.connection.took_payload() {
            // What came again before the first byte is left out, and so is what lies beyond the window.
            let skipped = usize::try_from(-offset.min(0)).unwrap_or(usize::MAX);
            let payload = payload.get(skipped..).unwrap_or_default();
            let offset = offset.max(0) as u64;
            let room = self.connection.receive_limit().saturating_sub(offset);
            let payload = &payload[..payload.len().min(room as usize)];
            self.arrived.put(offset, payload);
        }
    }

    /// Takes what has arrived in order, as much as `out` has room for.
    pub(crate) fn read(&mut self, now: Instant, out: &mut [u8]) -> usize {
        let count = self.connection.read(now, out.len() as u64) as usize;
        self.arrived.take(&mut out[..count]);
        count
    }

    /// Appends to the stream what the send buffer has room for.
    pub(crate) fn write(&mut self, now: Instant, bytes: &[u8]) -> usize {
        let count = self.connection.write(now, bytes.len() as u64) as usize;
        self.sent.append(&bytes[..count]);
        count
    }

    /// Writes the next packet into `out`, if one leaves now.
    pub(crate) fn transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        while let Some(outgoing) = self.connection.poll_transmit(now) {
            let fill = |payload: &mut [u8]| {
                // A segment without payload names no place in the stream.
                if !payload.is_empty() {
                    self.sent.copy(outgoing.offset, payload);
                }
            };
            if encode(&outgoing.segment, self.endpoints, out, fill).is_ok() {
                return true;
            }
            // A segment that no IP packet holds is lost, as it would be on the way.
        }
        false
    }
}
