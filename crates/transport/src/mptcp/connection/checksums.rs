//! Wrong checksums: MP_FAIL and infinite mappings (RFC 8684, section 3.7).
//!
//! A connection has no bytes: the codec reports whether the checksum of a mapping is correct. Data with a wrong one is not used. With
//! other subflows, its subflow is reset with MP_FAIL, and the peer sends the data on another one. The only subflow of a connection
//! that never had another continues as plain TCP: MP_FAIL in an ACK requests the data from the failed mapping on, which follows an
//! infinite mapping. Payload before that mapping is discarded.

use foundation::Instant;

use super::{Connection, Mode};
use crate::mptcp::segment::{Checksum, Mapping, MptcpOption, Segment};
use crate::tcp::Flags;

/// State of a connection after a wrong checksum.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Failure {
    /// Start of the peer's mapping that failed, until the infinite mapping arrives.
    waits_from: Option<u64>,
    /// MP_FAIL of this position has to be sent.
    due: Option<u64>,
    /// Infinite mappings of both directions.
    incoming: Option<Infinite>,
    outgoing: Option<Infinite>,
}

/// An infinite mapping: the stream from `offset` on is the data from `data` on.
#[derive(Clone, Copy, Debug)]
struct Infinite {
    offset: u64,
    data: u64,
}

impl Infinite {
    /// Returns the data position of an offset; `None` before the mapping.
    fn position(self, offset: u64) -> Option<u64> {
        Some(self.data + offset.checked_sub(self.offset)?)
    }
}

impl Failure {
    /// Whether payload without a mapping is discarded.
    pub const fn discards(&self) -> bool {
        self.waits_from.is_some()
    }

    /// Returns the data position of an offset of the peer's stream in plain TCP; `None` for payload to discard.
    pub fn incoming_position(&self, offset: u64) -> Option<u64> {
        self.incoming.map_or(Some(offset + 1), |map| map.position(offset))
    }

    /// Returns the offset at which the peer's infinite mapping starts, if it has one.
    pub fn incoming_start(&self) -> Option<u64> {
        self.incoming.map(|map| map.offset)
    }

    /// Whether this end sent an infinite mapping.
    pub const fn has_outgoing(&self) -> bool {
        self.outgoing.is_some()
    }

    /// Returns the data position of an offset of this end's stream in plain TCP: that of the infinite mapping's start before it.
    pub fn outgoing_position(&self, offset: u64) -> u64 {
        match self.outgoing {
            None => offset + 1,
            Some(map) => map.position(offset).unwrap_or(map.data),
        }
    }

    /// Returns the option of a segment of plain TCP after a failure: the infinite mapping with its first payload, or a due MP_FAIL.
    pub fn take_option(
        &mut self,
        offset: u64,
        length: u32,
        option: impl Fn(Mapping) -> MptcpOption,
    ) -> MptcpOption {
        match self.outgoing {
            Some(map) if length > 0 && offset == map.offset => option(Mapping {
                data: map.data,
                subflow: (offset as u32).wrapping_add(1),
                length: 0,
            }),
            _ => self.take_due(length),
        }
    }

    /// Returns the due MP_FAIL for a segment without payload.
    pub fn take_due(&mut self, length: u32) -> MptcpOption {
        match self.due.take_if(|_| length == 0) {
            Some(data) => MptcpOption::Fail { data },
            None => MptcpOption::None,
        }
    }
}

impl Connection {
    /// Handles the mapping of a segment with payload as far as checksums and infinite mappings require. Returns whether it may be
    /// used.
    #[inline]
    pub(super) fn checks_mapping(
        &mut self,
        now: Instant,
        index: usize,
        (mapping, checksum): (Mapping, Checksum),
        start: u64,
    ) -> bool {
        if mapping.length == 0 {
            self.on_infinite_mapping(mapping, start);
            return false;
        }
        if self.failure.discards() {
            self.request_data(index);
            return false;
        }
        if !self.checksums || checksum == Checksum::Correct {
            return true;
        }
        self.on_wrong_checksum(now, index, mapping.data);
        false
    }

    fn on_wrong_checksum(&mut self, now: Instant, index: usize, data: u64) {
        if self.has_not_joined() {
            // Later mappings of this subflow follow the failed one.
            self.failure.waits_from = Some(self.incoming.next());
            self.request_data(index);
            return;
        }
        let subflow = &mut self.subflows[index];
        subflow.failed = Some(data);
        subflow.tcp.abort(now);
        self.dirty |= 1 << index;
        self.on_subflow_closed(now, index, None);
    }

    /// Requests the data from the failed mapping on by MP_FAIL.
    fn request_data(&mut self, index: usize) {
        self.failure.due = self.failure.waits_from;
        self.subflows[index].tcp.demand_acknowledgement();
        self.dirty |= 1 << index;
    }

    /// Handles an infinite mapping, which starts at `start` of the peer's stream.
    fn on_infinite_mapping(&mut self, mapping: Mapping, start: u64) {
        // A gap before it would never be filled.
        let is_contiguous = (1..=self.incoming.next()).contains(&mapping.data);
        if !self.has_not_joined() || self.mode != Mode::Multipath || !is_contiguous {
            return;
        }
        self.failure.incoming = Some(Infinite {
            offset: start,
            data: mapping.data,
        });
        (self.failure.waits_from, self.failure.due) = (None, None);
        self.fall_back();
    }

    /// Handles MP_FAIL. With a reset, the data of the subflow goes to others, as after every reset.
    pub(super) fn on_failed(&mut self, now: Instant, index: usize, data: u64, segment: &Segment) {
        if segment.tcp.has(Flags::RST) || self.mode != Mode::Multipath {
            return;
        }
        let is_sent = (self.outgoing.una..self.outgoing.next).contains(&data);
        if !self.has_not_joined() || !is_sent {
            return;
        }
        let (bytes, _) = self.outgoing.restart_at(data);
        let map = Infinite {
            offset: self.subflows[index].written,
            data,
        };
        self.failure.outgoing = Some(map);
        // The other direction falls back too.
        self.failure.due = Some(self.incoming.next());
        self.subflows[index].tcp.demand_acknowledgement();
        self.fall_back();
        self.on_acknowledged(now, bytes);
    }
}
