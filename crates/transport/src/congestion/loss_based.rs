//! What controllers that take loss for congestion share: slow start, one reduction per congestion
//! episode, the response to a timeout (RFC 5681, RFC 6582). How the window grows in congestion
//! avoidance and shrinks at a loss is their own: [`Avoidance`].

use foundation::{Duration, Instant, Rate};

use super::hystart::{CSS_GROWTH_DIVISOR, HyStart, Verdict};
use super::{Acknowledgement, Controller, Loss};

/// The least window after a loss: two segments (RFC 5681, equation 4).
const LEAST_THRESHOLD: u64 = 2;
/// Growth per ACK in slow start of a sender without pacing, in segments (RFC 9406, section 4.3).
const UNPACED_GROWTH: u64 = 8;

/// Congestion avoidance of one algorithm.
pub(super) trait Avoidance: std::fmt::Debug + Send {
    /// `ack` arrived in congestion avoidance while the window was in use; by how many bytes does
    /// the `window` grow? `bytes` of the ACK are for congestion avoidance, not slow start.
    fn increase(&mut self, ack: &Acknowledgement, bytes: u64, window: u64) -> u64;
    /// An ACK arrived, but the window was not what limited the sender.
    fn on_unused_window(&mut self, now: Instant);
    /// Congestion was met at `window`; the window to go on with.
    fn decrease(&mut self, window: u64) -> u64;
    /// After a timeout the next congestion avoidance starts afresh.
    fn restart(&mut self);
    /// Names and values of the algorithm's own state.
    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64));
}

/// Settings of [`LossBased`].
#[derive(Clone, Copy, Debug)]
pub(super) struct LossBasedSettings {
    /// Packets.
    pub initial_window: u64,
    pub hystart: bool,
    pub pacing: bool,
}

/// A loss-based controller around its rule of congestion avoidance.
#[derive(Debug)]
pub(super) struct LossBased<A> {
    avoidance: A,
    segment: u64,
    window: u64,
    threshold: u64,
    /// Of the first slow start only (RFC 9406, section 4.3); `None` after it or where switched off.
    hystart: Option<HyStart>,
    pacing: bool,
    smoothed_rtt: Duration,
    /// When the window was reduced last: losses of packets from before are of the same episode.
    reduced_at: Option<Instant>,
    /// A timeout happened and nothing sent after it has been acknowledged yet.
    timed_out: bool,
    /// Whether the window limited the sender in this round, in the last one.
    window_limited: [bool; 2],
    /// A round ends with the ACK of a packet that left after this.
    round_started: Instant,
    reductions: u64,
    timeouts: u64,
}

impl<A: Avoidance> LossBased<A> {
    pub(super) fn new(avoidance: A, settings: LossBasedSettings, segment: u64) -> Self {
        Self {
            avoidance,
            segment,
            window: settings.initial_window.saturating_mul(segment),
            threshold: u64::MAX,
            hystart: settings.hystart.then(HyStart::default),
            pacing: settings.pacing,
            smoothed_rtt: Duration::ZERO,
            reduced_at: None,
            timed_out: false,
            window_limited: [false; 2],
            round_started: Instant::ZERO,
            reductions: 0,
            timeouts: 0,
        }
    }

    /// One reduction for all packets that left until now.
    fn reduce(&mut self, now: Instant, sent_at: Instant, in_flight: u64) {
        if self.reduced_at.is_some_and(|reduced| sent_at <= reduced) {
            return;
        }
        self.lower_threshold(in_flight);
        self.window = self.threshold;
        self.reduced_at = Some(now);
        self.reductions += 1;
    }

    /// RFC 5681 reduces what was in flight, not the window, which may be larger than was ever used.
    /// Where the window was in use it is the better measure: a whole number of packets rarely fills it.
    fn lower_threshold(&mut self, in_flight: u64) {
        let used = if self.is_window_limited() {
            self.window
        } else {
            in_flight.min(self.window)
        };
        self.threshold = self.avoidance.decrease(used).max(LEAST_THRESHOLD * self.segment);
        self.hystart = None;
    }

    fn is_window_limited(&self) -> bool {
        self.window_limited[0] || self.window_limited[1]
    }

    /// Grows in slow start; gives the bytes of the ACK that are left for congestion avoidance.
    fn slow_start(&mut self, ack: &Acknowledgement) -> u64 {
        let verdict = self
            .hystart
            .as_mut()
            .map_or(Verdict::SlowStart, |hystart| hystart.on_acknowledged(ack));
        let limit = if self.pacing {
            u64::MAX
        } else {
            UNPACED_GROWTH * self.segment
        };
        let mut growth = ack.bytes.min(limit);
        match verdict {
            Verdict::SlowStart => {}
            Verdict::ConservativeSlowStart => growth /= CSS_GROWTH_DIVISOR,
            Verdict::Exit => {
                self.threshold = self.window;
                self.hystart = None;
                return ack.bytes;
            }
        }
        let room = self.threshold - self.window;
        self.window += growth.min(room);
        growth.saturating_sub(room)
    }
}

impl<A: Avoidance> Controller for LossBased<A> {
    fn on_sent(&mut self, now: Instant, bytes: u64, bytes_in_flight: u64) {
        if bytes_in_flight <= bytes {
            // After a silence, what was used before it says nothing.
            self.window_limited = [false; 2];
            self.round_started = now;
        }
        if let Some(hystart) = &mut self.hystart {
            hystart.on_sent(now);
        }
    }

    fn on_acknowledged(&mut self, ack: &Acknowledgement) {
        self.smoothed_rtt = ack.smoothed_rtt;
        if ack.newest_sent_at > self.round_started {
            self.round_started = ack.now;
            self.window_limited = [false, self.window_limited[0]];
        }
        self.window_limited[0] |= ack.window_limited;
        // Packets from before the reduction say nothing about the window that followed it
        // (RFC 9002, section 7.3.2); one that left at that very moment was sent under the new window.
        if self
            .reduced_at
            .is_some_and(|reduced| ack.newest_sent_at < reduced)
        {
            return;
        }
        self.timed_out = false;
        if !self.is_window_limited() {
            self.avoidance.on_unused_window(ack.now);
            return;
        }
        let mut bytes = ack.bytes;
        if self.window < self.threshold {
            bytes = self.slow_start(ack);
        }
        if bytes > 0 && self.window >= self.threshold {
            let growth = self.avoidance.increase(ack, bytes, self.window);
            self.window = self.window.saturating_add(growth);
        }
    }

    fn on_lost(&mut self, loss: &Loss) {
        self.reduce(loss.now, loss.newest_sent_at, loss.prior_in_flight);
    }

    fn on_timeout(&mut self, now: Instant, bytes_in_flight: u64) {
        // A second timeout in a row has nothing new to say about the threshold (RFC 5681, section 3.1).
        if !self.timed_out {
            self.lower_threshold(bytes_in_flight);
        }
        self.avoidance.restart();
        self.window = self.segment;
        self.reduced_at = Some(now);
        self.timed_out = true;
        self.timeouts += 1;
    }

    fn on_congestion_experienced(&mut self, now: Instant, sent_at: Instant) {
        self.reduce(now, sent_at, self.window);
    }

    fn window(&self) -> u64 {
        self.window
    }

    /// Twice the window a round trip in slow start, which then doubles as without pacing, and 1.25
    /// times in congestion avoidance (RFC 9002, section 7.7), so that the window stays what limits.
    fn pacing_rate(&self) -> Option<Rate> {
        let nanos = u128::from(self.smoothed_rtt.as_nanos());
        if !self.pacing || nanos == 0 {
            return None;
        }
        let quarters: u128 = if self.window < self.threshold { 8 } else { 5 };
        let bits = u128::from(self.window) * quarters * 2_000_000_000 / nanos;
        Rate::from_bits_per_second(u64::try_from(bits).unwrap_or(u64::MAX))
    }

    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("window_bytes", self.window as f64);
        if self.threshold != u64::MAX {
            report("ssthresh_bytes", self.threshold as f64);
        }
        report("reductions", self.reductions as f64);
        report("timeouts", self.timeouts as f64);
        self.avoidance.metrics(report);
    }
}
