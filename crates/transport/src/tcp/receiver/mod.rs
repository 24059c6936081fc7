//! The receiving direction: reassembly, acknowledgements and the window. Sequence numbers are positions here.

mod acks;
mod autotuning;
mod reassembly;
mod window;

pub use acks::AckTiming;
pub use autotuning::{Autotuning, TimestampEcho};

use foundation::{Duration, Instant};

use self::acks::AckScheduler;
use self::reassembly::Reassembly;
use self::window::Window;
use super::profile::Parameters;

/// What a data segment turned out to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// New bytes that the application can read now.
    pub readable: bool,
    /// The peer's stream has ended: its FIN and all before it have arrived.
    pub finished: bool,
    /// Nothing in it was new.
    pub duplicate: bool,
}

/// The receiving direction of a connection.
#[derive(Debug)]
pub struct Receiver {
    /// The next position expected (RCV.NXT), and what stands above it.
    reassembly: Reassembly,
    /// The position after the last byte that the application took.
    read: u64,
    /// Where the peer's FIN stands, once it arrived.
    fin: Option<u64>,
    window: Window,
    /// How the window's memory grows, while it may: up to `most_memory`.
    autotuning: Option<Autotuning>,
    most_memory: u64,
    acks: AckScheduler,
    /// RCV.NXT of the last acknowledgement that left.
    acknowledged: u64,
    /// The largest segment seen, as a measure of the peer's full segments.
    segment: u32,
    dsack: bool,
    /// Linux takes what arrives beyond a gap for a reason to offer more, where SACK tells the sender of it.
    grows_beyond_gaps: bool,
}

impl Receiver {
    /// A receiver of a stream whose first byte has position 1.
    pub fn new(parameters: &Parameters, scale: u8) -> Self {
        Self {
            reassembly: Reassembly::new(1),
            read: 1,
            fin: None,
            window: Window::new(parameters, scale),
            autotuning: parameters.receive_autotuning.then(Autotuning::default),
            most_memory: parameters.receive_buffer,
            acks: AckScheduler::new(parameters),
            acknowledged: 1,
            segment: 0,
            dsack: parameters.dsack,
            grows_beyond_gaps: parameters.is_linux() && parameters.sack,
        }
    }

    /// The next position expected.
    #[inline]
    pub const fn next(&self) -> u64 {
        self.reassembly.next()
    }

    /// The position after the highest that may arrive.
    #[inline]
    pub fn edge(&self) -> u64 {
        self.window.edge().max(self.next())
    }

    /// RCV.NXT of the last acknowledgement that left (Last.ACK.sent of RFC 7323).
    pub const fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Bytes to read.
    #[inline]
    pub fn readable(&self) -> u64 {
        self.data_end() - self.read
    }

    /// The position after the last byte in order, the FIN not counted.
    fn data_end(&self) -> u64 {
        let next = self.next();
        next.min(self.fin.unwrap_or(next))
    }

    /// Whether all of the peer's stream arrived, FIN included.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next() > fin)
    }

    /// The application takes up to `bytes`; gives how many. The window may be worth telling anew.
    pub fn read(&mut self, now: Instant, bytes: u64) -> u64 {
        let taken = bytes.min(self.readable());
        self.read += taken;
        if taken > 0
            && let Some(autotuning) = &mut self.autotuning
        {
            let unread = self.reassembly.next().saturating_sub(self.read);
            let beyond = self.reassembly.beyond_gap();
            if let Some(window) = autotuning.on_read(now, self.read, unread, self.segment, beyond) {
                self.grow_memory(window);
            }
        }
        if taken > 0
            && self
                .window
                .is_update_due(self.next(), self.readable(), self.segment)
        {
            self.acks.demand();
        }
        taken
    }

    fn grow_memory(&mut self, window: u64) {
        // An owner that counts the window goes on to ask for the round trip.
        if self.window.grow_memory(window, self.most_memory) && !self.window.is_external() {
            self.autotuning = None;
        }
    }

    /// The receiver's own measure of the round trip, while the buffer is sized by it.
    pub fn round_trip(&self) -> Option<Duration> {
        self.autotuning.as_ref().and_then(Autotuning::round_trip)
    }

    /// What a segment with data shows of the round trip, and how large full segments are.
    #[inline]
    fn measure(&mut self, now: Instant, length: u32, echo: Option<TimestampEcho>) {
        if length > self.segment {
            self.segment = length;
            self.window.set_segment(length);
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

    /// A segment with `length` bytes from `start` arrived, acceptable and maybe with the FIN; `echo`: the timestamp that it
    /// echoes.
    pub fn on_data(
        &mut self,
        now: Instant,
        start: u64,
        length: u32,
        fin: bool,
        rto: Duration,
        echo: Option<TimestampEcho>,
    ) -> Arrival {
        let mut arrival = Arrival::default();
        let before = self.next();
        if length > 0 {
            self.measure(now, length, echo);
            self.acks
                .on_data(now, rto, self.window.size(before), self.segment);
        }
        let whole = start + u64::from(length) + u64::from(fin);
        // What lies beyond the window offered is not taken (RFC 9293, section 3.10.7.4).
        let end = whole.min(self.edge().max(start));
        if fin && end == whole && self.fin.is_none() {
            self.fin = Some(whole - 1);
        }
        let had_gap = self.reassembly.has_gap();
        let new = self.reassembly.insert(start, end, self.dsack);
        let next = self.next();
        arrival.duplicate = new == 0;
        arrival.readable = self.data_end() > before;
        arrival.finished = self.is_finished() && next > before;
        if next > before || (new > 0 && self.grows_beyond_gaps) {
            let beyond = self.reassembly.beyond_gap();
            if beyond > 0
                && let Some(autotuning) = &self.autotuning
            {
                let window = autotuning.on_gap(beyond);
                self.grow_memory(window);
            }
            if self.window.on_progress(self.readable(), length) {
                self.acks.on_window_growth();
            }
        }
        // RFC 5681, section 4.2: at once for duplicates, out of order, and what fills a gap.
        if arrival.duplicate || had_gap || self.reassembly.has_gap() || arrival.finished {
            self.acks.demand();
        } else {
            let waiting = next - self.acknowledged;
            self.acks.schedule(now, waiting, self.segment);
        }
        if arrival.duplicate {
            self.acks.ack_quickly();
        }
        arrival
    }

    /// A segment with data arrived that is not acceptable: `start..end` was received before.
    pub fn on_duplicate(&mut self, start: u64, end: u64) {
        if self.dsack {
            self.reassembly.report_duplicate(start, end.min(self.next()));
        }
        self.acks.ack_quickly();
    }

    /// No acknowledgement is owed: an answer to a SYN has told of all that came.
    pub const fn forget_ack(&mut self) {
        self.acks.stop();
    }

    /// An acknowledgement is owed at once.
    pub fn demand_ack(&mut self) {
        self.acks.demand();
    }

    /// Acknowledgements are not delayed for a while (RFC 3168: congestion is told without delay).
    pub fn ack_quickly(&mut self) {
        self.acks.ack_quickly();
    }

    /// When a delayed acknowledgement is due.
    #[inline]
    pub fn timeout(&self) -> Instant {
        self.acks.timeout()
    }

    /// The connection is gone: nothing is acknowledged any more.
    pub const fn stop(&mut self) {
        self.acks.stop();
    }

    /// A delayed acknowledgement may be due.
    pub fn on_timeout(&mut self, now: Instant, rto: Duration) {
        self.acks.on_timeout(now, rto);
    }

    /// Whether an acknowledgement must leave now.
    #[inline]
    pub const fn owes_ack(&self) -> bool {
        self.acks.is_due()
    }

    /// A segment with the acknowledgement leaves; gives its window, scaled. `data`: it carries data.
    #[inline]
    pub fn on_ack_sent(&mut self, now: Instant, data: bool) -> u16 {
        let packets = (self.next() - self.acknowledged).div_ceil(u64::from(self.segment.max(1)));
        self.acks.on_ack_sent(now, data, packets);
        self.acknowledged = self.next();
        self.window.offer(self.next(), self.readable(), self.segment)
    }

    /// The window as a SYN carries it, which is never scaled (RFC 7323, section 2.2).
    pub fn offer_unscaled(&mut self) -> u16 {
        self.acknowledged = self.next();
        self.window.offer_unscaled(self.next())
    }

    /// There is room for so many bytes, by the count of the connection's owner.
    #[inline]
    pub fn set_window(&mut self, bytes: u64) {
        self.window.set_external(bytes);
    }

    /// Window scaling is settled.
    pub fn set_scale(&mut self, scale: u8) {
        self.window.set_scale(scale);
    }

    /// SACK blocks to report, a DSACK first; at most `room` of them.
    #[inline]
    pub fn sack_blocks(&self, room: usize, report: impl FnMut(u64, u64)) {
        self.reassembly.blocks(room, report);
    }

    /// How many blocks there are to report.
    #[inline]
    pub fn sack_count(&self) -> usize {
        self.reassembly.block_count()
    }

    /// The blocks have been reported: a DSACK is told once (RFC 2883, section 4).
    #[inline]
    pub fn on_sack_sent(&mut self) {
        self.reassembly.forget_duplicate();
    }

    /// Facts for reports.
    pub const fn timing(&self) -> AckTiming {
        self.acks.timing()
    }

    /// The window offered now, in bytes.
    pub fn window(&self) -> u64 {
        self.window.size(self.next())
    }
}
