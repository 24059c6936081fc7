//! Interface for multipath TCP, whose subflows are connections (RFC 8684).

use std::sync::Arc;

use foundation::{Duration, Instant};

use super::Connection;
use crate::congestion::Siblings;
use crate::rtt::RttEstimator;
use crate::tcp::parameters::ReservedOptions;
use crate::tcp::segment::{Flags, Segment};
use crate::tcp::state::State;

impl Connection {
    /// Sets the receive window in bytes from the caller's shared buffer (RFC 8684, section 3.3.1). Segments advertise it,
    /// or the previously advertised window where that ends later.
    #[inline]
    pub fn set_window(&mut self, bytes: u64) {
        self.receiver.set_window(bytes);
    }

    /// Whether a segment of `bytes` written now would leave at once: no other data waits, and the windows and the pacer
    /// allow it.
    #[inline]
    pub fn has_room(&mut self, now: Instant, bytes: u32) -> bool {
        matches!(self.state, State::Established | State::CloseWait) && self.sender.has_room(now, bytes)
    }

    /// Whether a pacer spaces the segments.
    #[inline]
    #[must_use]
    pub const fn is_pacing(&self) -> bool {
        self.sender.is_pacing()
    }

    /// Whether written bytes are unsent.
    #[inline]
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        self.sender.has_unsent()
    }

    /// Returns the bytes of the caller's options to TCP. Segments get longer only if the handshake is in progress.
    pub fn release_options(&mut self) {
        Arc::make_mut(&mut self.parameters).reserved = ReservedOptions::default();
    }

    /// Requests an ACK at the next poll, with or without payload.
    #[inline]
    pub fn demand_acknowledgement(&mut self) {
        if self.is_synchronized() {
            self.receiver.acks.demand();
        }
    }

    /// Returns the acknowledged bytes of the stream.
    #[inline]
    #[must_use]
    pub const fn bytes_acknowledged(&self) -> u64 {
        self.sender.bytes_acknowledged()
    }

    /// Returns the payload bytes of a full segment.
    #[inline]
    #[must_use]
    pub const fn segment_size(&self) -> u32 {
        self.sender.segment()
    }

    /// Returns the congestion window in bytes.
    #[inline]
    #[must_use]
    pub fn window_bytes(&self) -> u64 {
        self.sender.window_bytes()
    }

    /// Returns the estimated payload bytes in flight.
    #[inline]
    #[must_use]
    pub fn bytes_in_flight(&self) -> u64 {
        self.sender.pipe_bytes()
    }

    /// Whether nothing is in flight and no loss recovery is in progress.
    #[inline]
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.sender.is_idle()
    }

    /// Sends a tail loss probe (RFC 8985, section 7) before its timer, because an acknowledgement is late. Returns whether
    /// a probe leaves.
    pub fn probe_tail(&mut self) -> bool {
        self.sender.probe_tail()
    }

    /// Returns the number of consecutive timeouts without an acknowledgement.
    #[inline]
    #[must_use]
    pub const fn timeouts_in_a_row(&self) -> u32 {
        self.sender.timeouts_in_a_row()
    }

    /// Returns the total number of segments considered lost.
    #[inline]
    #[must_use]
    pub const fn segments_lost(&self) -> u64 {
        self.sender.segments_lost()
    }

    /// Raises the reordering tolerance: more than `segments` duplicate ACKs are required to detect a loss.
    pub fn expect_reordering(&mut self, segments: u32) {
        self.sender.expect_reordering(u64::from(segments));
    }

    /// Returns the round-trip time estimator.
    #[inline]
    #[must_use]
    pub const fn round_trips(&self) -> &RttEstimator {
        self.sender.rtt()
    }

    /// Returns the receiver's estimate of the round-trip time; `None` before the first sample and without autotuning.
    #[must_use]
    pub fn receive_round_trip(&self) -> Option<Duration> {
        self.receiver.round_trip()
    }

    /// Returns the retransmission timeout, back-off included.
    #[must_use]
    pub fn retransmission_timeout(&self) -> Duration {
        self.sender.rto()
    }

    /// Reduces the congestion window as for a congestion mark (RFC 3168): at most once per round trip, and not during loss
    /// recovery.
    pub fn reduce_window(&mut self, now: Instant) {
        self.sender.reduce_window(now);
    }

    /// Returns the window that a segment of the peer advertises, in bytes (RFC 7323, section 2.3).
    #[inline]
    #[must_use]
    pub fn window_of(&self, segment: &Segment) -> u64 {
        let scale = if segment.has(Flags::SYN) {
            0
        } else {
            self.peer_scale
        };
        u64::from(segment.window) << scale
    }

    /// Passes the windows of the other subflows to the congestion controller.
    #[inline]
    pub fn update_siblings(&mut self, siblings: &Siblings<'_>) {
        self.sender.update_siblings(siblings);
    }
}
