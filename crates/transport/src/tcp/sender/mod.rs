//! The sending direction: the stream that was written, the segments in flight, the peer's window, and
//! congestion control. Sequence numbers are positions here ([`super::sequence`]).

mod ack;
mod buffer;
mod prr;
mod rack;
mod recovery;
mod report;
mod scoreboard;
mod sent_segment;
mod syn_data;
mod timers;
mod tlp;
mod transmit;
mod undo;

pub use ack::{AckInfo, AckValidity};
pub use timers::TimeoutVerdict;
pub use transmit::DataSegment;

use foundation::{Duration, Instant};

use self::buffer::SendBuffer;
use self::prr::Prr;
use self::rack::Rack;
use self::scoreboard::Scoreboard;
use self::timers::Timer;
use self::tlp::TailLossProbe;
use self::undo::Undo;
use super::config::Recovery;
use super::profile::Parameters;
use crate::congestion::{Controller, Estimator, Pacer, Siblings};
use crate::rtt::{RttEstimator, Rule};

/// RFC 5681, section 3.2; RFC 6675, section 2: so many duplicates are a loss.
const DUPLICATE_THRESHOLD: u64 = 3;

/// State of congestion control, as Linux's `tcp_info` names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CongestionState {
    /// Nothing unusual.
    #[default]
    Open,
    /// Duplicate or selective acknowledgements arrived: loss or reordering.
    Disorder,
    /// The window is being reduced for congestion experienced (ECN).
    Cwr,
    /// Fast recovery: lost segments are being sent again.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

impl CongestionState {
    /// The word for it in traces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Disorder => "disorder",
            Self::Cwr => "cwr",
            Self::Recovery => "recovery",
            Self::Loss => "loss",
        }
    }
}

/// The sending direction of a connection.
#[derive(Debug)]
pub struct Sender {
    parameters: Parameters,
    controller: Box<dyn Controller>,
    /// The segment size that the controller counts in.
    control_segment: u64,
    estimator: Estimator,
    pacer: Pacer,
    scoreboard: Scoreboard,
    buffer: SendBuffer,
    /// Lowest position not acknowledged, and next one to send.
    una: u64,
    next: u64,
    /// The position after the last byte written.
    written: u64,
    finishing: bool,
    /// Most payload bytes a segment takes.
    segment: u32,
    /// The peer's window from `una`, the largest ever, and the segment that told of it (RFC 9293, SND.WL1).
    window: u64,
    largest_window: u64,
    window_from: u64,
    rtt: RttEstimator,
    /// A round trip for the variance of round trips ends with the acknowledgement of this.
    rtt_round: u64,
    /// Doublings of the timeout.
    backoff: u32,
    /// Timeouts in a row.
    timeouts: u32,
    timer: Option<(Timer, Instant)>,
    /// Since when nothing was acknowledged that is in flight.
    stalled_since: Instant,
    state: CongestionState,
    /// An episode ends when this is acknowledged (RFC 6675's RecoveryPoint).
    recovery_point: u64,
    prr: Option<Prr>,
    undo: Option<Undo>,
    /// The timestamp clock at the first retransmission of the episode.
    first_retransmission_clock: Option<u32>,
    rack: Rack,
    /// Segments of reordering to expect, and how often reordering was seen.
    reordering: u64,
    reordering_seen: u32,
    use_sack: bool,
    use_timestamps: bool,
    clock_offset: u32,
    /// Without SACK: duplicate ACKs, each the arrival of a segment somewhere (RFC 6582).
    duplicates: u64,
    tail_probe: Option<TailLossProbe>,
    /// A timeout may be spurious: RFC 5682's algorithm runs; and new data goes before lost data.
    frto: bool,
    new_data_first: bool,
    /// Must leave whatever the window says: the first segment, a tail loss probe, a window probe.
    send_first: bool,
    send_tail_probe: bool,
    send_window_probe: bool,
    zero_window_probes: u32,
    nodelay: bool,
    cork: bool,
    /// The application said that it will write on; what was written before is to leave all the same.
    more_to_come: bool,
    flush_to: u64,
    /// The end of the last segment that was not full (Minshall's variant of Nagle's algorithm).
    small_end: u64,
    /// Where the last write ended that wants its bytes pushed, and where PSH was last set.
    push_at: u64,
    pushed: u64,
    paced_until: Option<Instant>,
    /// Segments that left since the last call from outside, and whether new data was among them.
    burst: u32,
    sent_new: bool,
    sent_at: Instant,
    /// Whether the window held data back, the most segments out since, and where this stops to count.
    limited: bool,
    most_out: u64,
    usage_until: u64,
    /// Whether ECN is in use, and a reduction is to be told to the peer (CWR).
    ecn: bool,
    announce_reduction: bool,
    /// Segments delivered, by ACKs that echoed congestion, taken for lost and sent again, ever.
    delivered: u64,
    delivered_marked: u64,
    lost_total: u64,
    retransmitted_total: u64,
}

/// What the handshake settled.
#[derive(Clone, Copy, Debug)]
pub struct HandshakeResult {
    /// Payload bytes of a full segment.
    pub segment: u32,
    /// SACK, timestamps and ECN in use.
    pub sack: bool,
    pub timestamps: bool,
    pub ecn: bool,
    /// What the timestamp clock adds to the time in ms.
    pub clock_offset: u32,
    /// The peer's window, and the position of the segment that told of it.
    pub window: u64,
    pub window_from: u64,
}

impl Sender {
    /// A sender whose stream begins at position 1, before the handshake is done.
    pub fn new(
        now: Instant,
        parameters: Parameters,
        controller: Box<dyn Controller>,
        start: HandshakeResult,
    ) -> Self {
        let rule = if parameters.is_linux() {
            Rule::VarianceFloor
        } else {
            // RFC 6298, section 2.3: G of a clock in ms.
            Rule::Rfc6298 {
                granularity: Duration::from_millis(1),
            }
        };
        let rtt = RttEstimator::with(
            rule,
            parameters.min_rto,
            parameters.initial_rto,
            parameters.max_rto,
        );
        Self {
            controller,
            control_segment: u64::from(start.segment),
            estimator: Estimator::new(),
            pacer: Pacer::new(),
            scoreboard: Scoreboard::default(),
            buffer: SendBuffer::new(&parameters, start.segment),
            una: 1,
            next: 1,
            written: 1,
            finishing: false,
            segment: start.segment,
            window: start.window,
            largest_window: start.window,
            window_from: start.window_from,
            rtt,
            rtt_round: 0,
            backoff: 0,
            timeouts: 0,
            timer: None,
            stalled_since: now,
            state: CongestionState::Open,
            recovery_point: 1,
            prr: None,
            undo: None,
            first_retransmission_clock: None,
            rack: Rack::new(),
            reordering: DUPLICATE_THRESHOLD,
            reordering_seen: 0,
            use_sack: start.sack && parameters.recovery != Recovery::Newreno,
            use_timestamps: start.timestamps,
            clock_offset: start.clock_offset,
            duplicates: 0,
            tail_probe: None,
            frto: false,
            new_data_first: false,
            send_first: false,
            send_tail_probe: false,
            send_window_probe: false,
            zero_window_probes: 0,
            nodelay: !parameters.nagle,
            cork: false,
            more_to_come: false,
            flush_to: 0,
            small_end: 0,
            push_at: 0,
            pushed: 1,
            paced_until: None,
            burst: 0,
            sent_new: false,
            sent_at: now,
            limited: false,
            most_out: 0,
            usage_until: 0,
            ecn: start.ecn,
            announce_reduction: false,
            delivered: 0,
            delivered_marked: 0,
            lost_total: 0,
            retransmitted_total: 0,
            parameters,
        }
    }

    /// The handshake is done: what it settled, and a controller for segments of that size.
    pub fn establish(
        &mut self,
        now: Instant,
        start: HandshakeResult,
        controller: Option<Box<dyn Controller>>,
    ) {
        if let Some(controller) = controller {
            self.controller = controller;
            self.control_segment = u64::from(start.segment);
        }
        self.segment = start.segment;
        self.buffer.set_segment(start.segment);
        self.use_sack = start.sack && self.parameters.recovery != Recovery::Newreno;
        self.use_timestamps = start.timestamps;
        self.ecn = start.ecn;
        self.window = start.window;
        self.largest_window = start.window;
        self.window_from = start.window_from;
        self.stalled_since = now;
        self.sent_at = now;
    }

    /// The window of the peer's SYN, which is not scaled.
    pub fn set_unscaled_window(&mut self, window: u64) {
        self.window = window;
        self.largest_window = self.largest_window.max(window);
    }

    /// The timeout before the first sample (RFC 6298, section 5.7).
    pub fn set_initial_timeout(&mut self, timeout: Duration) {
        self.rtt.set_initial(timeout.min(self.parameters.max_rto));
    }

    /// Payload bytes of a full segment.
    pub const fn segment(&self) -> u32 {
        self.segment
    }

    /// Appends to the stream what the send buffer has room for, and gives how much that was.
    /// `more`: the application will write on, and asks not to send a segment that is not full (`MSG_MORE`).
    pub fn write(&mut self, bytes: u64, more: bool) -> u64 {
        debug_assert!(!self.finishing, "written after the end");
        let taken = bytes.min(self.room());
        self.written += taken;
        self.more_to_come = more;
        if taken > 0 && !more {
            self.push_at = self.written;
        }
        self.burst = 0;
        taken
    }

    /// Bytes that the send buffer has room for.
    #[inline]
    pub const fn room(&self) -> u64 {
        self.buffer.room(self.unacknowledged())
    }

    /// Bytes written and not acknowledged, as they count for the send buffer.
    #[inline]
    const fn unacknowledged(&self) -> u64 {
        let bytes = self.written.saturating_sub(self.una);
        self.buffer.charged(bytes, self.scoreboard.sacked().packets)
    }

    /// After an acknowledgement, where a writer waits for room: whether it is worth waking. Where the congestion window is
    /// not full, though everything leaves that may, the buffer is what limits, and grows (`tcp_should_expand_sndbuf`).
    pub fn should_wake_writer(&mut self) -> bool {
        if self.buffer.may_grow() {
            let leaves = (self.una + self.window)
                .min(self.written)
                .saturating_sub(self.next);
            let window = self.window_packets();
            if self.pipe() + leaves.div_ceil(u64::from(self.segment)) < window {
                self.buffer.expand(window);
            }
        }
        if self.parameters.is_linux() {
            return self.buffer.wakes_writer(self.unacknowledged());
        }
        self.room() > 0
    }

    /// The stream ends after what was written.
    pub fn finish(&mut self) {
        self.finishing = true;
        self.push_at = self.written;
        self.burst = 0;
    }

    /// Whether the stream's end was announced by the application.
    pub const fn is_finishing(&self) -> bool {
        self.finishing
    }

    /// Whether the FIN was acknowledged.
    pub const fn fin_acknowledged(&self) -> bool {
        self.una > self.written
    }

    /// Lowest position that is not acknowledged.
    #[inline]
    pub const fn una(&self) -> u64 {
        self.una
    }

    /// The next position to send.
    #[inline]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Bytes of the stream that are acknowledged, the FIN not counted.
    #[inline]
    pub const fn bytes_acknowledged(&self) -> u64 {
        let end = if self.una < self.written {
            self.una
        } else {
            self.written
        };
        end - 1
    }

    /// Timeouts since something was last acknowledged.
    #[inline]
    pub const fn timeouts_in_a_row(&self) -> u32 {
        self.timeouts
    }

    /// Segments that were ever taken for lost.
    #[inline]
    pub const fn segments_lost(&self) -> u64 {
        self.lost_total
    }

    /// The retransmission timeout, back-off included.
    pub fn retransmission_timeout(&self) -> Duration {
        self.rto()
    }

    /// The controller hears of the windows beside its own.
    #[inline]
    pub fn update_siblings(&mut self, siblings: &Siblings<'_>) {
        self.controller.on_siblings(siblings);
    }

    /// The controller.
    pub fn controller(&self) -> &dyn Controller {
        &*self.controller
    }

    /// The round-trip times.
    pub const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// The timestamp clock: milliseconds (RFC 7323, section 5.4: 1 ms to 1 s a tick).
    #[inline]
    pub const fn clock(&self, now: Instant) -> u32 {
        ((now.as_nanos() / 1_000_000) as u32).wrapping_add(self.clock_offset)
    }

    /// Small segments need not wait (`TCP_NODELAY`).
    pub fn set_nodelay(&mut self, nodelay: bool) {
        self.nodelay = nodelay;
        self.burst = 0;
        if nodelay {
            self.more_to_come = false;
            self.flush_to = self.written;
        }
    }

    /// Nothing but full segments leaves (`TCP_CORK`).
    pub fn set_cork(&mut self, cork: bool) {
        self.cork = cork;
        self.burst = 0;
    }

    /// Data unacknowledged for so long ends the connection.
    pub fn set_user_timeout(&mut self, timeout: Duration) {
        self.parameters.user_timeout = timeout;
    }

    /// The send buffer has so many bytes of memory from now on.
    pub fn set_send_buffer(&mut self, bytes: u64) {
        self.buffer.set_size(bytes);
    }

    /// The path takes segments of at most `segment` payload bytes (RFC 1191, section 6.5).
    pub fn shrink_segment(&mut self, segment: u32) {
        if segment < self.segment {
            self.segment = segment;
            self.buffer.set_segment(segment);
            self.scoreboard.resegment(segment);
            self.burst = 0;
            if self.scoreboard.lost().packets > 0 && self.state < CongestionState::Recovery {
                // Sent again until all is repaired, but not for congestion: no reduction.
                self.state = CongestionState::Loss;
                self.recovery_point = self.next;
                self.undo = None;
                self.prr = None;
                self.frto = false;
            }
        }
    }

    /// Segments that may be in flight.
    #[inline]
    pub fn window_packets(&self) -> u64 {
        match &self.prr {
            Some(prr) => prr.window(),
            None => (self.controller.window() / self.control_segment).max(1),
        }
    }

    /// Segments in flight as far as is known (RFC 6675's pipe, in segments).
    #[inline]
    fn pipe(&self) -> u64 {
        let scoreboard = &self.scoreboard;
        let gone = scoreboard.sacked().packets + scoreboard.lost().packets + self.duplicates;
        (scoreboard.out().packets + scoreboard.retransmitted().packets).saturating_sub(gone)
    }

    /// Payload bytes in flight as far as is known.
    #[inline]
    pub fn pipe_bytes(&self) -> u64 {
        self.scoreboard
            .pipe_bytes()
            .saturating_sub(self.duplicates * u64::from(self.segment))
    }

    /// Whether the retransmission timeout has been backed off, and the timeout now.
    #[inline]
    fn rto(&self) -> Duration {
        self.rtt
            .timeout()
            .doubled(self.backoff)
            .min(self.parameters.max_rto)
    }

    fn is_rack(&self) -> bool {
        self.use_sack && self.parameters.recovery == Recovery::RackTlp
    }
}
