//! The sending direction: the written stream, the segments in flight, the peer's window, and congestion control.
//! Sequence numbers are stream positions here ([`super::sequence`]).

mod ack;
mod buffer;
mod cached_controller;
mod info;
mod limits;
mod parts;
mod prr;
mod rack;
mod recovery;
mod scoreboard;
mod sent_segment;
mod snapshot;
mod syn_data;
mod timers;
mod tlp;
mod transmit;
mod undo;

pub use ack::{AckInfo, AckValidity, MarkReport};
pub use snapshot::SenderSnapshot;
pub use transmit::DataSegment;

use std::sync::Arc;

use foundation::{Duration, Instant};

use self::buffer::SendBuffer;
use self::cached_controller::CachedController;
use self::limits::LimitClock;
use self::parts::{Burst, Due, Frto, Negotiated, PeerWindow, Reordering, Totals, WindowUsage, Writes};
use self::prr::Prr;
use self::rack::Rack;
use self::scoreboard::Scoreboard;
use self::timers::Timeout;
use self::tlp::TailLossProbe;
use self::undo::Undo;
use super::config::Recovery;
use super::parameters::Parameters;
use super::state::CongestionState;
use crate::congestion::{Controller, Estimator, Pacer, Siblings};
use crate::rtt::{RttEstimator, Rule};
use crate::statistics::Statistics;

/// Duplicate ACKs that indicate a loss (RFC 5681, section 3.2; RFC 6675, section 2).
const DUPLICATE_THRESHOLD: u64 = 3;

/// The sending direction of a connection.
#[derive(Debug)]
pub struct Sender {
    parameters: Arc<Parameters>,
    controller: CachedController,
    estimator: Estimator,
    pacer: Pacer,
    scoreboard: Scoreboard,
    buffer: SendBuffer,
    /// Lowest position not acknowledged, and next one to send.
    una: u64,
    next: u64,
    writes: Writes,
    limits: LimitClock,
    /// Payload bytes of a full segment.
    segment: u32,
    peer: PeerWindow,
    rtt: RttEstimator,
    /// Position whose acknowledgement ends the current round trip of the RTT variance.
    rtt_round: u64,
    timeout: Timeout,
    state: CongestionState,
    /// Position whose acknowledgement ends the current recovery (RecoveryPoint of RFC 6675).
    recovery_point: u64,
    prr: Option<Box<Prr>>,
    undo: Option<Undo>,
    /// Timestamp clock at the first retransmission of the current recovery.
    first_retransmission_clock: Option<u32>,
    rack: Rack,
    reordering: Reordering,
    negotiated: Negotiated,
    /// Without SACK: number of duplicate ACKs, each for the arrival of one segment (RFC 6582).
    duplicates: u64,
    tail_probe: Option<Box<TailLossProbe>>,
    frto: Frto,
    due: Due,
    burst: Burst,
    usage: WindowUsage,
    totals: Totals,
}

/// Parameters negotiated by the handshake.
#[derive(Clone, Copy, Debug)]
pub struct HandshakeResult {
    /// Payload bytes of a full segment.
    pub segment: u32,
    /// Whether SACK, timestamps and ECN are in use.
    pub sack: bool,
    pub timestamps: bool,
    pub ecn: bool,
    /// Offset of the timestamp clock from the time in ms.
    pub clock_offset: u32,
    /// The peer's window, and the position of the segment that advertised it.
    pub window: u64,
    pub window_from: u64,
}

impl Sender {
    /// Returns a sender before the handshake, whose stream starts at position 1.
    pub fn new(
        now: Instant,
        parameters: Arc<Parameters>,
        controller: Box<dyn Controller>,
        start: HandshakeResult,
    ) -> Self {
        let rule = if parameters.is_linux() {
            Rule::VarianceFloor
        } else {
            // RFC 6298, section 2.3: G of a clock in ms, or of a finer one that a smaller minimum requires.
            Rule::Rfc6298 {
                granularity: Duration::from_millis(1).min(parameters.min_rto),
            }
        };
        let rtt = RttEstimator::with(
            rule,
            parameters.min_rto,
            parameters.initial_rto,
            parameters.max_rto,
        );
        let buffer = SendBuffer::new(&parameters, start.segment, controller.buffered_windows());
        Self {
            controller: CachedController::new(controller, start.segment),
            estimator: Estimator::new(),
            pacer: Pacer::new(),
            scoreboard: Scoreboard::default(),
            buffer,
            una: 1,
            next: 1,
            writes: Writes::new(!parameters.nagle),
            limits: LimitClock::default(),
            segment: start.segment,
            peer: PeerWindow::new(&start),
            rtt,
            rtt_round: 0,
            timeout: Timeout::new(now),
            state: CongestionState::Open,
            recovery_point: 1,
            prr: None,
            undo: None,
            first_retransmission_clock: None,
            rack: Rack::new(),
            reordering: Reordering {
                extent: DUPLICATE_THRESHOLD as u32,
                events: 0,
            },
            negotiated: Negotiated::new(&start, parameters.recovery),
            duplicates: 0,
            tail_probe: None,
            frto: Frto::default(),
            due: Due::default(),
            burst: Burst::new(now),
            usage: WindowUsage::default(),
            totals: Totals::default(),
            parameters,
        }
    }

    /// Applies the result of the handshake. `controller`: a new controller if the segment size or initial window changed.
    pub fn establish(
        &mut self,
        now: Instant,
        start: HandshakeResult,
        controller: Option<Box<dyn Controller>>,
    ) {
        if let Some(controller) = controller {
            self.controller = CachedController::new(controller, start.segment);
        }
        self.segment = start.segment;
        self.buffer.set_segment(start.segment);
        self.negotiated = Negotiated {
            clock_offset: self.negotiated.clock_offset,
            ..Negotiated::new(&start, self.parameters.recovery)
        };
        self.peer = PeerWindow::new(&start);
        self.timeout.stalled_since = now;
        self.burst.at = now;
    }

    /// Sets the window of the peer's SYN, which is not scaled.
    pub fn set_unscaled_window(&mut self, window: u64) {
        self.peer.window = window;
        self.peer.largest = self.peer.largest.max(window);
    }

    /// Sets the timeout before the first sample (RFC 6298, section 5.7).
    pub fn set_initial_timeout(&mut self, timeout: Duration) {
        self.rtt.set_initial(timeout.min(self.parameters.max_rto));
    }

    /// Returns the payload bytes of a full segment.
    pub const fn segment(&self) -> u32 {
        self.segment
    }

    /// Appends up to `bytes` to the stream and returns how many the send buffer had room for.
    /// `more`: further writes follow, so a partial segment waits (`MSG_MORE`).
    pub fn write(&mut self, bytes: u64, more: bool) -> u64 {
        debug_assert!(!self.writes.finishing, "written after the end");
        let taken = bytes.min(self.room());
        self.writes.end += taken;
        self.writes.blocked = taken < bytes;
        self.writes.more_to_come = more;
        if taken > 0 && !more {
            self.writes.push_at = self.writes.end;
        }
        self.burst.segments = 0;
        taken
    }

    /// Ends a record at the last byte written: no segment spans its end.
    pub fn end_record(&mut self) {
        if self.next < self.writes.end {
            self.writes.end_record();
        }
    }

    /// Returns the free bytes of the send buffer.
    #[inline]
    pub const fn room(&self) -> u64 {
        self.buffer.room(self.unacknowledged())
    }

    /// Returns the unacknowledged bytes as charged to the send buffer.
    #[inline]
    const fn unacknowledged(&self) -> u64 {
        let bytes = self.writes.end.saturating_sub(self.una);
        self.buffer.charged(bytes, self.scoreboard.sacked().packets)
    }

    /// Whether the last write was partial, and its writer was not woken since.
    #[inline]
    pub const fn is_write_blocked(&self) -> bool {
        self.writes.blocked
    }

    /// Wakes a blocked writer after an acknowledgement, if there is room; returns whether it did.
    #[inline]
    pub fn wakes_writer(&mut self, now: Instant, statistics: &mut Statistics) -> bool {
        if !self.writes.blocked || !self.has_room_for_writer() {
            return false;
        }
        self.writes.blocked = false;
        self.limits.wake_writer(now, statistics);
        true
    }

    /// Returns whether the buffer has enough room to wake a blocked writer. Grows the buffer if it, rather than the
    /// congestion window, limits the sender (`tcp_should_expand_sndbuf`).
    fn has_room_for_writer(&mut self) -> bool {
        if self.buffer.may_grow() {
            let sendable = (self.una + self.peer.window)
                .min(self.writes.end)
                .saturating_sub(self.next);
            let window = self.window_packets();
            if self.pipe() + sendable.div_ceil(u64::from(self.segment)) < window {
                self.buffer.expand(window, self.controller.buffered_windows());
            }
        }
        if self.parameters.is_linux() {
            return self.buffer.wakes_writer(self.unacknowledged());
        }
        self.room() > 0
    }

    /// Closes the stream after the written data.
    pub fn finish(&mut self) {
        self.writes.finishing = true;
        self.writes.push_at = self.writes.end;
        self.burst.segments = 0;
    }

    /// Whether the application closed the stream.
    pub const fn is_finishing(&self) -> bool {
        self.writes.finishing
    }

    /// Whether the FIN was acknowledged.
    pub const fn fin_acknowledged(&self) -> bool {
        self.una > self.writes.end
    }

    /// Returns the lowest unacknowledged position.
    #[inline]
    pub const fn una(&self) -> u64 {
        self.una
    }

    /// Returns the next position to send.
    #[inline]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Returns the acknowledged bytes of the stream, without the FIN.
    #[inline]
    pub const fn bytes_acknowledged(&self) -> u64 {
        let end = if self.una < self.writes.end {
            self.una
        } else {
            self.writes.end
        };
        end - 1
    }

    /// Whether nothing is in flight and no loss recovery is in progress.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.scoreboard.is_empty() && self.state == CongestionState::Open
    }

    /// Returns the number of consecutive timeouts.
    #[inline]
    pub const fn timeouts_in_a_row(&self) -> u32 {
        self.timeout.consecutive
    }

    /// Returns the total number of segments considered lost.
    #[inline]
    pub const fn segments_lost(&self) -> u64 {
        self.totals.lost as u64
    }

    /// Passes the windows of the sibling subflows to the controller.
    #[inline]
    pub fn update_siblings(&mut self, siblings: &Siblings<'_>) {
        self.controller.on_siblings(siblings);
    }

    /// Returns the congestion window in bytes.
    #[inline]
    pub const fn window_bytes(&self) -> u64 {
        self.controller.window()
    }

    pub fn controller(&self) -> &dyn Controller {
        &*self.controller
    }

    /// Replaces the congestion controller by one that starts now.
    pub fn set_controller(&mut self, controller: Box<dyn Controller>) {
        self.controller = CachedController::new(controller, self.segment);
    }

    pub const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Returns the timestamp clock in ms (RFC 7323, section 5.4: ticks of 1 ms to 1 s).
    #[inline]
    pub const fn clock(&self, now: Instant) -> u32 {
        ((now.as_nanos() / 1_000_000) as u32).wrapping_add(self.negotiated.clock_offset)
    }

    /// Disables or enables Nagle's algorithm (`TCP_NODELAY`).
    pub fn set_nodelay(&mut self, nodelay: bool) {
        self.writes.nodelay = nodelay;
        self.burst.segments = 0;
        if nodelay {
            self.writes.more_to_come = false;
            self.writes.flush_to = self.writes.end;
        }
    }

    /// Delays partial segments while set (`TCP_CORK`).
    pub fn set_cork(&mut self, cork: bool) {
        self.writes.cork = cork;
        self.burst.segments = 0;
    }

    pub fn set_minimum_timeout(&mut self, timeout: Duration) {
        Arc::make_mut(&mut self.parameters).min_rto = timeout;
        self.rtt.set_floor(timeout);
    }

    pub fn set_user_timeout(&mut self, timeout: Duration) {
        Arc::make_mut(&mut self.parameters).user_timeout = timeout;
    }

    pub fn set_send_buffer(&mut self, bytes: u64) {
        self.buffer.set_size(bytes);
    }

    /// Reduces full segments to `segment` payload bytes for a smaller path MTU (RFC 1191, section 6.5).
    pub fn shrink_segment(&mut self, segment: u32) {
        if segment < self.segment {
            self.segment = segment;
            self.buffer.set_segment(segment);
            self.scoreboard.resegment(segment, u64::MAX);
            self.burst.segments = 0;
            self.retransmit_without_reduction();
        }
    }

    /// Retransmits lost segments until all data is acknowledged. Their loss is no congestion.
    pub(super) fn retransmit_without_reduction(&mut self) {
        if self.scoreboard.lost().packets > 0 && self.state < CongestionState::Recovery {
            self.state = CongestionState::Loss;
            self.recovery_point = self.next;
            self.undo = None;
            self.prr = None;
            self.frto.checking = false;
        }
    }

    /// Returns the times in which the receive window and the send buffer limited the sender.
    pub fn limited_times(&self, now: Instant, statistics: &Statistics) -> (Duration, Duration) {
        self.limits.times(now, statistics)
    }

    /// Returns the congestion window in segments.
    #[inline]
    pub fn window_packets(&self) -> u64 {
        match &self.prr {
            Some(prr) => prr.window(),
            None => self.controller.packets(),
        }
    }

    /// Returns the estimated segments in flight (pipe of RFC 6675, in segments).
    #[inline]
    fn pipe(&self) -> u64 {
        let scoreboard = &self.scoreboard;
        let gone = scoreboard.sacked().packets + scoreboard.lost().packets + self.duplicates;
        (scoreboard.out().packets + scoreboard.retransmitted().packets).saturating_sub(gone)
    }

    /// Returns the estimated payload bytes in flight.
    #[inline]
    pub fn pipe_bytes(&self) -> u64 {
        self.scoreboard
            .pipe_bytes()
            .saturating_sub(self.duplicates * u64::from(self.segment))
    }

    /// Returns the retransmission timeout, back-off included.
    #[inline]
    pub fn rto(&self) -> Duration {
        let timeout = match self.timeout.backoff {
            0 => self.rtt.timeout(),
            backoff => self.rtt.timeout().doubled(backoff),
        };
        timeout.min(self.parameters.max_rto)
    }

    fn is_rack(&self) -> bool {
        self.negotiated.sack && self.parameters.recovery == Recovery::RackTlp
    }
}
