//! The receiving direction: reassembly, acknowledgements and the window. Sequence numbers are positions here.

mod acks;
mod autotuning;
mod reassembly;
mod window;

pub use autotuning::{Autotuning, TimestampEcho};

use foundation::{Duration, Instant};

use self::acks::AckScheduler;
use self::reassembly::Reassembly;
use self::window::Window;
use super::parameters::Parameters;
use crate::rtt::RttEstimator;

/// Effects of a data segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// New data is readable.
    pub readable: bool,
    /// The peer's stream is complete, FIN included.
    pub finished: bool,
    /// Nothing in the segment was new.
    pub duplicate: bool,
}

/// The receiving direction of a connection.
#[derive(Debug)]
pub struct Receiver {
    /// The next expected position (RCV.NXT), and data above it.
    reassembly: Reassembly,
    /// Position after the last byte read.
    read: u64,
    /// Position of the peer's FIN, after its arrival; `u64::MAX` before.
    fin: u64,
    window: Window,
    /// Autotuning of the window's memory, while it is below `max_memory`.
    autotuning: Option<Autotuning>,
    max_memory: u64,
    /// Schedule of ACKs.
    pub acks: AckScheduler,
    /// RCV.NXT of the last ACK sent.
    acknowledged: u64,
    /// Largest segment so far, as an estimate of the peer's full segments, and its maximum.
    segment: u32,
    largest_segment: u16,
    dsack: bool,
    /// Whether data above a gap also opens the window, as in Linux with SACK.
    grows_beyond_gaps: bool,
}

impl Receiver {
    /// Returns a receiver of a stream whose first byte has position 1.
    pub fn new(parameters: &Parameters, scale: u8) -> Self {
        Self {
            reassembly: Reassembly::new(1),
            read: 1,
            fin: u64::MAX,
            window: Window::new(parameters, scale),
            autotuning: parameters.receive_autotuning.then(Autotuning::default),
            max_memory: parameters.receive_buffer,
            acks: AckScheduler::new(parameters),
            acknowledged: 1,
            segment: 0,
            largest_segment: u16::try_from(parameters.mss).unwrap_or(u16::MAX),
            dsack: parameters.dsack,
            grows_beyond_gaps: parameters.is_linux() && parameters.sack,
        }
    }

    /// Returns the next expected position.
    #[inline]
    pub const fn next(&self) -> u64 {
        self.reassembly.next()
    }

    /// Returns the end of the receive window.
    #[inline]
    pub fn edge(&self) -> u64 {
        self.window.edge().max(self.next())
    }

    /// Returns RCV.NXT of the last ACK sent (Last.ACK.sent of RFC 7323).
    pub const fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Returns the unread bytes in order.
    #[inline]
    pub fn readable(&self) -> u64 {
        self.data_end() - self.read
    }

    /// Returns the ranges received above a gap as offsets of the stream, the lowest first.
    pub fn early(&self) -> impl Iterator<Item = (u64, u64)> {
        let fin = self.fin;
        let ranges = self.reassembly.above();
        ranges.map(move |(start, end)| (start - 1, end.min(fin) - 1))
    }

    /// Returns the position after the last byte in order, without the FIN.
    fn data_end(&self) -> u64 {
        self.next().min(self.fin)
    }

    /// Whether the peer's stream is complete, FIN included.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.next() > self.fin
    }

    /// Reads up to `bytes` and returns how many. Schedules a window update if the window opened enough.
    pub fn read(&mut self, now: Instant, bytes: u64) -> u64 {
        let taken = bytes.min(self.readable());
        if taken == 0 {
            return 0;
        }
        self.read += taken;
        if let Some(autotuning) = &mut self.autotuning {
            let unread = self.reassembly.next().saturating_sub(self.read);
            let beyond = self.reassembly.beyond_gap();
            if let Some(window) = autotuning.on_read(now, self.read, unread, self.segment, beyond) {
                self.grow_memory(window);
            }
        }
        if self
            .window
            .is_update_due(self.next(), self.readable(), self.segment)
        {
            self.acks.demand();
        }
        taken
    }

    fn grow_memory(&mut self, window: u64) {
        // With an external window, autotuning continues to measure the round trip.
        if self.window.grow_memory(window, self.max_memory) && !self.window.is_external() {
            self.autotuning = None;
        }
    }

    /// Returns the receiver's estimate of the round trip, while autotuning is active.
    pub fn round_trip(&self) -> Option<Duration> {
        self.autotuning.as_ref().and_then(Autotuning::round_trip)
    }

    /// Whether autotuning is active.
    #[inline]
    pub const fn is_autotuning(&self) -> bool {
        self.autotuning.is_some()
    }

    /// Samples the round trip and the size of full segments from a data segment.
    #[inline]
    fn measure(&mut self, now: Instant, length: u32, echo: Option<TimestampEcho>) {
        if length > self.segment {
            self.segment = length.min(u32::from(self.largest_segment));
            self.window.set_segment(self.segment);
        }
        let unread = self.readable() > 0;
        let next = self.next();
        if let Some(autotuning) = &mut self.autotuning {
            match echo {
                Some(echo) if length >= self.segment => autotuning.on_echo(echo, unread),
                Some(_) => {}
                None => autotuning.on_window(now, next, self.window.size(next)),
            }
        }
    }

    /// Processes an acceptable segment with `length` bytes from `start`; `echo`: its echoed timestamp.
    #[inline]
    pub fn on_data(
        &mut self,
        now: Instant,
        start: u64,
        length: u32,
        fin: bool,
        rtt: &RttEstimator,
        echo: Option<TimestampEcho>,
    ) -> Arrival {
        if length > 0 {
            self.measure(now, length, echo);
            let window = self.window.size(self.next());
            self.acks.on_data(now, rtt.timeout(), window, self.segment);
        }
        let end = start + u64::from(length);
        let is_next = start == self.next() && length > 0 && !fin && end <= self.window.edge().min(self.fin);
        if is_next && self.reassembly.append(end) {
            // The common case: in order, without gaps, within the window.
            self.open_window(length);
            self.acks.schedule(now, end - self.acknowledged, self.segment);
            return Arrival {
                readable: true,
                ..Arrival::default()
            };
        }
        self.reassemble(now, start, length, fin, rtt)
    }

    /// Raises the limit of the window for new data.
    #[inline]
    fn open_window(&mut self, length: u32) {
        if self.window.on_progress(self.readable(), length) {
            self.acks.on_window_growth();
        }
    }

    /// Processes a segment that may overlap gaps, earlier data or the end of the window, or carries the FIN.
    fn reassemble(
        &mut self,
        now: Instant,
        start: u64,
        length: u32,
        fin: bool,
        rtt: &RttEstimator,
    ) -> Arrival {
        let before = self.next();
        let whole = start + u64::from(length) + u64::from(fin);
        let end = self.accepted_end(start, whole, fin);
        // A FIN in place of a byte that has arrived contradicts the stream.
        if fin && end == whole && whole > before && self.fin == u64::MAX {
            self.fin = whole - 1;
        }
        let had_gap = self.reassembly.has_gap();
        let new = self.reassembly.insert(start, end, self.dsack);
        let next = self.next();
        let arrival = Arrival {
            duplicate: new == 0,
            readable: self.data_end() > before,
            finished: self.is_finished() && next > before,
        };
        if next > before || (new > 0 && self.grows_beyond_gaps) {
            let beyond = self.reassembly.beyond_gap();
            if beyond > 0
                && let Some(autotuning) = &self.autotuning
            {
                let window = autotuning.on_gap(beyond);
                self.grow_memory(window);
            }
            self.open_window(length);
        }
        // RFC 5681, section 4.2: acknowledge duplicates, out-of-order data and data that fills a gap at once.
        let has_gap = self.reassembly.has_gap();
        if has_gap && !arrival.duplicate {
            let smoothed = rtt.has_sample().then(|| rtt.smoothed());
            let round_trip = self.round_trip().into_iter().chain(smoothed).min();
            let moved = next > before || !had_gap;
            self.acks
                .schedule_above_gap(now, moved, round_trip.unwrap_or_default());
        } else if arrival.duplicate || had_gap {
            self.acks.demand();
        } else if !arrival.finished {
            let waiting = next - self.acknowledged;
            self.acks.schedule(now, waiting, self.segment);
        }
        if arrival.duplicate {
            self.acks.demand_undelayed();
        }
        arrival
    }

    /// Schedules the ACK of the peer's FIN. `opens_close_wait`: this end may still send.
    pub fn on_fin(&mut self, now: Instant, opens_close_wait: bool) {
        if self.window.is_linux() {
            // Linux clears the blocks (`tcp_fin`).
            self.reassembly.clear_duplicate();
        }
        if self.fin >= self.window.edge() {
            // The FIN exceeds the window.
            self.acks.demand();
            return;
        }
        let waiting = self.next() - self.acknowledged;
        self.acks.on_fin(now, waiting, self.segment, opens_close_wait);
    }

    /// Limits the estimate of the peer's full segments.
    pub fn limit_segment(&mut self, bytes: u16) {
        self.largest_segment = bytes;
    }

    /// Returns the payload bytes that arrived in order.
    pub fn received(&self) -> u64 {
        self.data_end() - 1
    }

    /// Returns the estimate of the peer's full segments; 0 before the first.
    pub const fn segment(&self) -> u32 {
        self.segment
    }

    /// Whether a segment that ends at `end` is dropped because it crosses the end of the window.
    ///
    /// Linux drops such a segment, or accepts all of it if no data is unread (`tcp_sequence`); other stacks accept the part inside
    /// the window. A FIN may exceed the window.
    pub fn rejects_excess(&self, end: u64, fin: bool) -> bool {
        self.window.is_linux() && end - u64::from(fin) > self.edge() && self.readable() > 0
    }

    /// Returns the end of the part of a segment that is accepted, after [`rejects_excess`](Self::rejects_excess). `end`: its end
    /// with the FIN.
    fn accepted_end(&self, start: u64, end: u64, fin: bool) -> u64 {
        // With a closed window, Linux accepts only a FIN without data (`tcp_data_queue`).
        let is_bare_fin = fin && end == start + 1 && start == self.next();
        let is_open = start < self.edge() && self.edge() > self.next();
        if self.window.is_linux() && (is_bare_fin || is_open) {
            end
        } else {
            // Data beyond the window is discarded (RFC 9293, section 3.10.7.4).
            end.min(self.edge().max(start))
        }
    }

    /// Processes an unacceptable segment whose data `start..end` was received earlier.
    pub fn on_duplicate(&mut self, start: u64, end: u64) {
        if self.dsack {
            self.reassembly.report_duplicate(start, end.min(self.next()));
        }
        self.acks.demand_undelayed();
    }

    /// Records a sent ACK and returns its window field, scaled. `data`: the segment carries data.
    #[inline]
    pub fn on_ack_sent(&mut self, now: Instant, data: bool) -> u16 {
        let bytes = self.next() - self.acknowledged;
        self.acks.on_ack_sent(now, data, bytes, self.segment);
        self.acknowledged = self.next();
        self.window.offer(self.next(), self.readable(), self.segment)
    }

    /// Returns the window field of a SYN, which is never scaled (RFC 7323, section 2.2).
    pub fn offer_unscaled(&mut self) -> u16 {
        self.acknowledged = self.next();
        self.window.offer_unscaled(self.next())
    }

    /// Sets the receive window in bytes from the caller's buffer.
    #[inline]
    pub fn set_window(&mut self, bytes: u64) {
        self.window.set_external(bytes);
    }

    /// Sets the negotiated window shift.
    pub fn set_scale(&mut self, scale: u8) {
        self.window.set_scale(scale);
    }

    /// Reports at most `room` SACK blocks, a DSACK first.
    #[inline]
    pub fn sack_blocks(&self, room: usize, report: impl FnMut(u64, u64)) {
        self.reassembly.blocks(room, report);
    }

    /// Returns the number of SACK blocks to report.
    #[inline]
    pub fn sack_count(&self) -> usize {
        self.reassembly.block_count()
    }

    /// Whether the blocks to report include a DSACK.
    pub const fn reports_duplicate(&self) -> bool {
        self.reassembly.reports_duplicate()
    }

    /// Clears the DSACK, which is reported once (RFC 2883, section 4).
    #[inline]
    pub fn on_sack_sent(&mut self) {
        self.reassembly.clear_duplicate();
    }

    /// Returns the advertised window in bytes.
    pub fn window(&self) -> u64 {
        self.window.size(self.next())
    }
}
