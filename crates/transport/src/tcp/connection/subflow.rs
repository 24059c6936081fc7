//! What the owner of several connections, which are parts of one (RFC 8684), asks of each and tells it.

use foundation::{Duration, Instant};

use super::{Connection, State};
use crate::congestion::Siblings;
use crate::rtt::RttEstimator;
use crate::tcp::segment::Segment;

impl Connection {
    /// The owner counts the receive window: every segment that leaves offers so many bytes from what was received in
    /// order (RFC 8684, section 3.3.1), or what was offered before where that is more.
    #[inline]
    pub fn set_window(&mut self, bytes: u64) {
        self.receiver.set_window(bytes);
    }

    /// Whether a segment of `bytes` that was written now would leave at once: nothing else waits, and the windows and the
    /// pacer have room for it.
    #[inline]
    pub fn has_room(&mut self, now: Instant, bytes: u32) -> bool {
        matches!(self.state, State::Established | State::CloseWait) && self.sender.has_room(now, bytes)
    }

    /// Whether bytes were written that have never left.
    #[inline]
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        self.sender.has_unsent()
    }

    /// An acknowledgement leaves at the next poll, with or without payload.
    #[inline]
    pub fn demand_acknowledgement(&mut self) {
        if self.is_synchronized() {
            self.receiver.demand_ack();
        }
    }

    /// Bytes of the stream that the peer has acknowledged.
    #[inline]
    #[must_use]
    pub const fn bytes_acknowledged(&self) -> u64 {
        self.sender.bytes_acknowledged()
    }

    /// Payload bytes of a full segment.
    #[inline]
    #[must_use]
    pub const fn segment_size(&self) -> u32 {
        self.sender.segment()
    }

    /// The congestion window in bytes.
    #[inline]
    #[must_use]
    pub fn window_bytes(&self) -> u64 {
        self.sender.controller().window()
    }

    /// Payload bytes in flight, as far as is known.
    #[inline]
    #[must_use]
    pub fn bytes_in_flight(&self) -> u64 {
        self.sender.pipe_bytes()
    }

    /// Has the loss of the last segments probed for now, by one who knows that an acknowledgement is late: a tail loss probe
    /// (RFC 8985, section 7) before its time. Gives whether one leaves.
    pub fn probe_tail(&mut self) -> bool {
        self.sender.probe_tail()
    }

    /// Timeouts in a row, without an acknowledgement between them.
    #[inline]
    #[must_use]
    pub const fn timeouts_in_a_row(&self) -> u32 {
        self.sender.timeouts_in_a_row()
    }

    /// Segments that were ever taken for lost.
    #[inline]
    #[must_use]
    pub const fn segments_lost(&self) -> u64 {
        self.sender.segments_lost()
    }

    /// Segments will arrive out of order: only more than `segments` duplicate acknowledgements say that one is lost.
    pub fn expect_reordering(&mut self, segments: u32) {
        self.sender.expect_reordering(u64::from(segments));
    }

    /// The round-trip times.
    #[inline]
    #[must_use]
    pub const fn round_trips(&self) -> &RttEstimator {
        self.sender.rtt()
    }

    /// The round trip as the receiving direction measures it; `None` before the first measure, and where the receive buffer
    /// does not grow.
    #[must_use]
    pub fn receive_round_trip(&self) -> Option<Duration> {
        self.receiver.round_trip()
    }

    /// The retransmission timeout, back-off included.
    #[must_use]
    pub fn retransmission_timeout(&self) -> Duration {
        self.sender.retransmission_timeout()
    }

    /// The congestion window shrinks as after a mark of congestion (RFC 3168), at most once a round trip and not while losses
    /// are repaired, which has made it shrink.
    pub fn reduce_window(&mut self, now: Instant) {
        self.sender.reduce_window(now);
    }

    /// The window that a segment of the peer offers, in bytes (RFC 7323, section 2.3).
    #[inline]
    #[must_use]
    pub fn window_of(&self, segment: &Segment) -> u64 {
        let scale = if segment.has(super::super::Flags::SYN) {
            0
        } else {
            self.peer_scale
        };
        u64::from(segment.window) << scale
    }

    /// The congestion controller hears of those of the other parts.
    #[inline]
    pub fn update_siblings(&mut self, siblings: &Siblings<'_>) {
        self.sender.update_siblings(siblings);
    }
}
