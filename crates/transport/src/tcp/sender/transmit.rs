//! Selection of the next segment to send: retransmissions first, then new data, subject to the windows, the pacer and
//! Nagle's algorithm.

use foundation::{Instant, Rate};

use super::Sender;
use super::sent_segment::{Marks, SentSegment};
use crate::congestion::Snapshot;
use crate::statistics::Statistics;
use crate::tcp::options::DEFAULT_MSS;
use crate::tcp::state::CongestionState;

/// Segment of the stream to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSegment {
    /// Position of its first byte.
    pub start: u64,
    /// Payload bytes.
    pub length: u32,
    /// Whether it carries the FIN, and PSH.
    pub fin: bool,
    pub push: bool,
    pub retransmission: bool,
    /// Whether it is ECN-capable, and whether it announces a window reduction with CWR (RFC 3168, section 6.1).
    pub ecn_capable: bool,
    pub reduced: bool,
}

/// Maximum bytes of a burst that Linux treats as one train (the length field of IP).
const MAX_TRAIN: u32 = 65_535;

impl Sender {
    /// Returns the next segment to send; `sack_bytes`: bytes of its SACK option.
    #[inline(always)]
    pub fn poll(
        &mut self,
        now: Instant,
        sack_bytes: u32,
        statistics: &mut Statistics,
    ) -> Option<DataSegment> {
        let is_due = self.due.first | self.due.tail_probe | self.due.window_probe;
        if (is_due || self.scoreboard.lost().packets > 0)
            && let Some(segment) = self.poll_due(now, sack_bytes)
        {
            return segment;
        }
        self.poll_new(now, sack_bytes, statistics)
    }

    /// Whether nothing waits to be sent and no burst is to end, as at the receiving end of a one-way transfer.
    #[inline]
    pub const fn has_nothing_to_send(&self) -> bool {
        let is_due = self.due.first | self.due.tail_probe | self.due.window_probe | self.burst.has_new;
        !is_due && self.burst.segments == 0 && !self.has_unsent() && self.scoreboard.lost().packets == 0
    }

    /// Returns the segment due before new data; `None` if new data is next.
    fn poll_due(&mut self, now: Instant, sack_bytes: u32) -> Option<Option<DataSegment>> {
        if self.due.first {
            self.due.first = false;
            let first = self.scoreboard.first_number();
            if self
                .scoreboard
                .front()
                .is_some_and(SentSegment::awaits_retransmission)
            {
                self.cut_at_window(first);
                return Some(self.retransmit(now, first));
            }
        }
        if self.due.tail_probe {
            return Some(self.poll_tail_probe(now, sack_bytes));
        }
        if self.due.window_probe {
            self.due.window_probe = false;
            return Some(Some(self.window_probe(now, sack_bytes)));
        }
        if self.frto.new_data_first {
            return None;
        }
        self.poll_lost(now).map(Some)
    }

    fn poll_lost(&mut self, now: Instant) -> Option<DataSegment> {
        let waiting = self.scoreboard.next_waiting()?;
        self.cut_at_window(waiting);
        // The cut may renumber.
        let number = self.scoreboard.next_waiting()?;
        let record = *self.scoreboard.get(number)?;
        let fits = record.start < self.una + self.peer.window || record.start == self.una;
        if !fits || !self.fits_congestion_window(record.length) || self.is_paced(now, record.length) {
            return None;
        }
        self.retransmit(now, number)
    }

    /// Splits a lost segment across the end of the peer's window there (`tcp_retransmit_skb` of Linux): the data of a SYN left
    /// before the window was known, and a peer may shrink it.
    fn cut_at_window(&mut self, number: u64) {
        let edge = self.una + self.peer.window;
        let crosses =
            |record: &SentSegment| record.start < edge && edge < record.start + u64::from(record.length);
        if self.scoreboard.get(number).is_some_and(crosses) {
            self.scoreboard.resegment(self.segment, edge);
        }
    }

    fn retransmit(&mut self, now: Instant, number: u64) -> Option<DataSegment> {
        let first = number == self.scoreboard.first_number();
        let again = self.scoreboard.retransmit(number, now)?;
        let length = again.length;
        let bytes = u64::from(length);
        let segment = DataSegment {
            start: again.start,
            length,
            fin: again.marks.has(Marks::FIN),
            push: again.marks.has(Marks::PUSH),
            retransmission: true,
            // RFC 3168, section 6.1.5: retransmissions are not ECN-capable. With DCTCP they are (`tcp_ecn_send` of Linux), since
            // its switches drop packets that are not.
            ecn_capable: self.negotiated.ecn && self.parameters.exact_echo,
            reduced: false,
        };
        let snapshot = self.on_sent(now, bytes);
        if let Some(record) = self.scoreboard.snapshot_mut(number) {
            *record = snapshot;
        }
        self.totals.retransmitted += 1;
        let clock = self.clock(now);
        self.note_retransmission(clock);
        self.arm_for_sent(now, first, true);
        Some(segment)
    }

    /// RFC 8985, section 7.3: new data if the peer's window has room, else the last segment.
    fn poll_tail_probe(&mut self, now: Instant, sack_bytes: u32) -> Option<DataSegment> {
        self.due.tail_probe = false;
        let length = self.next_length(sack_bytes);
        if self.has_unsent() && self.fits_window(length) {
            let segment = self.send_new(now, length);
            self.arm_for_new(now);
            self.tail_probe_sent(now, false);
            return Some(segment);
        }
        let last = self.scoreboard.end_number().checked_sub(1)?;
        if self.scoreboard.get(last)?.marks.has(Marks::SACKED) {
            return None;
        }
        let segment = self.retransmit(now, last);
        self.tail_probe_sent(now, true);
        segment
    }

    /// Returns a zero-window probe, or a withheld small segment (RFC 9293, sections 3.8.6.1 and 3.8.6.2.1).
    fn window_probe(&mut self, now: Instant, sack_bytes: u32) -> DataSegment {
        let room = (self.una + self.peer.window).saturating_sub(self.next);
        if room > 0 && self.has_unsent() {
            let fitting = u32::try_from(room).unwrap_or(u32::MAX);
            self.timeout.timer = None;
            (self.timeout.backoff, self.due.window_probes) = (0, 0);
            let mut segment = self.send_new(now, self.next_length(sack_bytes).min(fitting));
            self.arm_for_new(now);
            segment.push = true;
            return segment;
        }
        // An already acknowledged position: the peer answers with its window.
        DataSegment {
            start: self.una - 1,
            length: 0,
            fin: false,
            push: false,
            retransmission: false,
            ecn_capable: false,
            reduced: false,
        }
    }

    fn poll_new(
        &mut self,
        now: Instant,
        sack_bytes: u32,
        statistics: &mut Statistics,
    ) -> Option<DataSegment> {
        if !self.has_unsent() {
            self.limits.set_window_limited(now, false, statistics);
            if self.end_burst(now, false, false) && self.writes.blocked && !self.is_window_limited() {
                // As Linux (`tcp_cwnd_validate`): all buffered data left, and the writer waits for room.
                self.limits.set_buffer_limited(now, statistics);
            }
            return None;
        }
        let length = self.next_length(sack_bytes);
        let ends = self.writes.finishing && self.next + u64::from(length) == self.writes.end;
        // A FIN without data is exempt from the congestion window, as in RFC 5681 and Linux.
        let lone_fin = ends && length == 0;
        if !lone_fin && !self.fits_congestion_window(length) {
            self.limits.set_window_limited(now, false, statistics);
            self.end_burst(now, true, true);
            return None;
        }
        let fits = self.fits_window(length);
        if !fits || self.is_withheld(length) {
            self.limits.set_window_limited(now, !fits, statistics);
            self.end_burst(now, false, true);
            self.ensure_persist(now);
            return None;
        }
        if self.is_paced(now, length) {
            self.limits.set_window_limited(now, false, statistics);
            // In Linux only the window limits, not the pacer (`is_cwnd_limited` in `tcp_write_xmit`).
            self.end_burst(now, !self.parameters.is_linux(), true);
            return None;
        }
        let mut segment = self.send_new(now, length);
        self.burst.has_new = true;
        if !self.is_probe_due_after_burst() {
            self.arm_for_new(now);
        }
        if !segment.push
            && self.parameters.is_linux()
            && self.burst.segments > 1
            && !self.would_follow(sack_bytes)
        {
            // Linux sets PSH at the end of each train.
            segment.push = true;
            self.scoreboard.push_back_mark(Marks::PUSH);
        }
        Some(segment)
    }

    /// Whether another new segment could leave right after this one.
    fn would_follow(&self, sack_bytes: u32) -> bool {
        if !self.has_unsent() || self.burst.segments * self.segment + self.segment > MAX_TRAIN {
            return false;
        }
        let length = self.next_length(sack_bytes);
        self.fits_congestion_window(length) && self.fits_window(length) && !self.is_withheld(length)
    }

    /// Sends a new segment of `length` bytes. The caller sets the timer.
    #[inline(always)]
    pub(super) fn send_new(&mut self, now: Instant, length: u32) -> DataSegment {
        let start = self.next;
        let bytes = u64::from(length);
        let end = start + bytes;
        if self.scoreboard.is_empty() {
            self.restart_after_idle(now);
            self.timeout.stalled_since = now;
        }
        let fin = self.writes.finishing
            && end == self.writes.end
            && end < self.una + self.peer.window.max(bytes + 1);
        // PSH where a write ends, and at least each half of the largest window (RFC 9293, section 3.9.1).
        let record = self.writes.pass_record(end);
        let push = record
            || (start < self.writes.push_at && self.writes.push_at <= end)
            || (length > 0 && end >= self.writes.pushed + (self.peer.largest / 2).max(1));
        let mut marks = Marks::default();
        if push {
            marks.set(Marks::PUSH);
            self.writes.pushed = end;
        }
        if fin {
            marks.set(Marks::FIN);
        }
        if !self.is_full(length) {
            self.writes.small_end = end;
        }
        let snapshot = self.on_sent(now, bytes);
        self.scoreboard.push(SentSegment {
            start,
            sent_at: now,
            snapshot,
            length,
            marks,
        });
        self.next = end + u64::from(fin);
        if self.burst.segments * self.segment + self.segment > MAX_TRAIN {
            self.burst.segments = 0;
        }
        self.burst.segments += 1;
        self.burst.at = now;
        DataSegment {
            start,
            length,
            fin,
            push,
            retransmission: false,
            ecn_capable: self.negotiated.ecn && length > 0,
            reduced: length > 0 && std::mem::take(&mut self.due.reduction),
        }
    }

    /// RFC 5681, section 4.1.
    fn restart_after_idle(&mut self, now: Instant) {
        let idle = now - self.burst.at;
        let rto = self.rtt.timeout();
        if self.parameters.slow_start_after_idle && idle > rto {
            self.controller.on_idle(now, idle, rto);
        }
    }

    /// Reports a sent data segment to the controller, the estimator, the pacer and PRR.
    #[inline(always)]
    fn on_sent(&mut self, now: Instant, bytes: u64) -> Snapshot {
        let in_flight = self.pipe_bytes() + bytes;
        if self.is_pacing() {
            self.pacer.on_sent(now, bytes);
        }
        self.controller.on_sent(now, bytes, in_flight);
        if let Some(prr) = &mut self.prr {
            prr.on_sent();
        }
        self.estimator.on_sent(now, bytes, in_flight)
    }

    /// Whether data or the FIN is unsent.
    #[inline]
    pub const fn has_unsent(&self) -> bool {
        self.next < self.writes.end || (self.writes.finishing && self.next == self.writes.end)
    }

    /// Whether a new segment of `length` bytes may leave at once.
    #[inline]
    pub fn has_room(&mut self, now: Instant, length: u32) -> bool {
        !self.has_unsent()
            && (self.scoreboard.lost().packets == 0 || self.scoreboard.next_waiting().is_none())
            && self.fits_congestion_window(length)
            && self.fits_window(length)
            && !self.is_paced(now, length)
    }

    /// Payload bytes of the next new segment whose header has `sack_bytes` of SACK blocks.
    #[inline]
    pub(super) fn next_length(&self, sack_bytes: u32) -> u32 {
        let most = u64::from(self.segment - sack_bytes.min(self.segment / 2));
        let most = self.bounded_by_window(most);
        (self.writes.limit(self.next).saturating_sub(self.next)).min(most) as u32
    }

    /// Returns the smaller of `most` and half the largest window of the peer (RFC 9293, section 3.8.6.2.1).
    #[inline]
    fn bounded_by_window(&self, most: u64) -> u64 {
        if self.peer.largest >= 2 * most {
            return most;
        }
        let bound = if self.peer.largest > u64::from(DEFAULT_MSS) {
            self.peer.largest / 2
        } else {
            self.peer.largest
        };
        most.min(bound.max(48))
    }

    /// Whether a segment counts as full for Nagle's algorithm. In Linux, the window of the peer bounds full segments
    /// (`tcp_bound_to_half_wnd`).
    #[inline]
    fn is_full(&self, length: u32) -> bool {
        length >= self.segment
            || (self.parameters.is_linux()
                && u64::from(length) >= self.bounded_by_window(u64::from(self.segment)))
    }

    /// Whether the peer's window has room for `length` more bytes.
    #[inline]
    pub(super) fn fits_window(&self, length: u32) -> bool {
        self.next + u64::from(length.max(1)) <= self.una + self.peer.window
    }

    /// Whether the congestion window has room for a segment of `length` bytes.
    #[inline]
    fn fits_congestion_window(&self, length: u32) -> bool {
        let delivered = if !self.parameters.limited_transmit && self.state == CongestionState::Disorder {
            // Without RFC 3042, deliveries reported by duplicate ACKs do not open the window.
            self.scoreboard.sacked().packets + self.duplicates
        } else {
            0
        };
        if self.prr.is_some() || self.parameters.is_linux() {
            return self.pipe() + delivered < self.window_packets();
        }
        let in_flight = self.pipe_bytes() + delivered * u64::from(self.segment);
        in_flight == 0 || in_flight + u64::from(length) <= self.controller.window()
    }

    /// Whether a partial segment waits for more data (RFC 9293, sections 3.7.4, Nagle, and 3.8.6.2.1).
    #[inline]
    fn is_withheld(&self, length: u32) -> bool {
        if self.is_full(length) {
            return false;
        }
        let rest = u64::from(length) == self.writes.end - self.next;
        let must_leave =
            self.writes.finishing || self.next < self.writes.flush_to || self.frto.new_data_first;
        if !rest || must_leave {
            return false;
        }
        self.writes.cork || self.writes.more_to_come || (!self.writes.nodelay && self.is_small_out())
    }

    fn is_small_out(&self) -> bool {
        if self.parameters.is_linux() {
            // Minshall's variant: wait only for another small segment.
            self.writes.small_end > self.una && !self.scoreboard.is_empty()
        } else {
            !self.scoreboard.is_empty()
        }
    }

    /// Whether a pacer spaces the segments.
    #[inline]
    pub const fn is_pacing(&self) -> bool {
        self.controller.pacing_rate().is_some()
    }

    #[inline]
    fn is_paced(&mut self, now: Instant, length: u32) -> bool {
        self.controller
            .pacing_rate()
            .is_some_and(|rate| self.waits_for_pacer(now, rate, length))
    }

    #[inline(never)]
    fn waits_for_pacer(&mut self, now: Instant, rate: Rate, length: u32) -> bool {
        self.burst.paced_until =
            self.pacer
                .next_departure(now, rate, self.controller.bursts(), u64::from(length));
        self.burst.paced_until.is_some()
    }

    /// Ends a burst; returns whether it sent new data. `limited`: the congestion window or the pacer withholds data;
    /// `unsent`: there is unsent data.
    fn end_burst(&mut self, now: Instant, limited: bool, unsent: bool) -> bool {
        let sent = std::mem::take(&mut self.burst.has_new);
        self.burst.segments = 0;
        if !sent && !limited {
            return false;
        }
        if sent && !self.is_reordering_timer() {
            // The timer of a tail loss probe replaces the retransmission timer (RFC 8985, section 7.2).
            self.schedule_tail_probe(now);
        }
        let full = limited || self.pipe() >= self.window_packets();
        // RFC 7661, section 4.3: record whether the window was fully used in this round trip.
        let out = self.scoreboard.out().packets;
        if self.una >= self.usage.until
            || full
            || (!self.usage.limited && out > u64::from(self.usage.most_out))
        {
            self.usage.limited = full;
            self.usage.most_out = out as u32;
            self.usage.until = self.next;
        }
        if !unsent && !full {
            self.estimator.set_application_limited(self.pipe_bytes());
        }
        sent
    }

    /// Whether the congestion window limited the sender recently. In slow start, up to half of it may be unused.
    #[inline]
    pub(super) fn is_window_limited(&self) -> bool {
        self.usage.limited
            || (self.controller.in_slow_start() && self.window_packets() < 2 * u64::from(self.usage.most_out))
    }
}
