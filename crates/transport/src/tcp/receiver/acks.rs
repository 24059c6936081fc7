//! When acknowledgements leave: at once, or a little later with more to acknowledge
//! (RFC 1122 section 4.2.3.2, RFC 5681 section 4.2).

use foundation::{Duration, Instant};

use crate::tcp::profile::Parameters;

/// RFC 9293, section 3.8.6.3: an ACK is never delayed by more than half a second; Linux stops at 200 ms.
const MAX_DELAY: Duration = Duration::from_millis(200);
/// Linux acknowledges up to so many of the first segments at once.
const MOST_QUICK: u32 = 16;

/// What is known of the peer's rhythm, for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckTiming {
    /// How long an ACK would be delayed now.
    pub delay: Duration,
    /// Segments still acknowledged at once.
    pub quick: u32,
}

/// The delay of acknowledgements.
#[derive(Debug)]
pub struct AckScheduler {
    /// An acknowledgement is due now.
    due: bool,
    /// When a delayed one is due; `Instant::MAX` for none.
    at: Instant,
    base: Duration,
    adaptive: bool,
    every: u64,
    quick_acks: bool,
    /// The delay now: between half and five times `base` where it adapts.
    delay: Duration,
    quick: u32,
    /// Data flows both ways: an ACK rides on the answer.
    interactive: bool,
    received_at: Option<Instant>,
}

impl AckScheduler {
    pub fn new(parameters: &Parameters) -> Self {
        Self {
            due: false,
            at: Instant::MAX,
            base: parameters.delayed_ack,
            adaptive: parameters.adaptive_delay,
            every: u64::from(parameters.ack_every),
            quick_acks: parameters.quick_acks,
            delay: parameters.delayed_ack,
            quick: 0,
            interactive: false,
            received_at: None,
        }
    }

    /// A data segment arrived. The delay follows the gaps between segments, so that it covers the next one.
    #[inline]
    pub fn on_data(&mut self, now: Instant, rto: Duration, window: u64, segment: u32) {
        let last = self.received_at.replace(now);
        if !self.quick_acks && !self.adaptive {
            return;
        }
        let Some(last) = last else {
            self.start_quick(window, segment);
            return;
        };
        if !self.adaptive {
            return;
        }
        let gap = now - last;
        if gap <= self.base / 2 {
            self.delay = self.delay / 2 + self.base / 2;
        } else if gap < self.delay {
            self.delay = (self.delay / 2 + gap).min(rto);
        } else if gap > rto {
            // After a silence the peer may be in slow start again.
            self.start_quick(window, segment);
        }
    }

    /// The window grew: the sender hears of that at once (Linux: `tcp_grow_window`).
    #[inline]
    pub const fn on_window_growth(&mut self) {
        if self.quick_acks {
            self.quick |= 1;
        }
    }

    fn start_quick(&mut self, window: u64, segment: u32) {
        if self.quick_acks {
            let half = window / (2 * u64::from(segment.max(1)));
            self.quick = self
                .quick
                .max(u32::try_from(half).unwrap_or(MOST_QUICK).clamp(2, MOST_QUICK));
        }
    }

    /// The next acknowledgements leave at once: the peer needs to hear of something.
    pub fn ack_quickly(&mut self) {
        self.due = true;
        if self.quick_acks {
            self.quick = self.quick.max(2);
            self.interactive = false;
            self.delay = self.base;
        }
    }

    /// An acknowledgement is due now.
    #[inline]
    pub fn demand(&mut self) {
        self.due = true;
    }

    /// `waiting` positions wait to be acknowledged; a full segment has `segment` bytes.
    #[inline]
    pub fn schedule(&mut self, now: Instant, waiting: u64, segment: u32) {
        let quick = self.quick > 0 && !self.interactive;
        // RFC 5681, section 4.2: at least every second full segment.
        if self.base.is_zero() || quick || waiting > (self.every - 1) * u64::from(segment) {
            self.due = true;
            return;
        }
        let most = if self.adaptive { MAX_DELAY } else { Duration::MAX };
        self.at = self.at.min(now + self.delay.min(most));
    }

    /// When a delayed acknowledgement is due.
    #[inline]
    pub fn timeout(&self) -> Instant {
        if self.due { Instant::MAX } else { self.at }
    }

    /// Nothing is acknowledged any more.
    pub const fn stop(&mut self) {
        self.due = false;
        self.at = Instant::MAX;
    }

    /// The delay may be over.
    pub fn on_timeout(&mut self, now: Instant, rto: Duration) {
        if self.at > now {
            return;
        }
        self.due = true;
        if self.adaptive {
            if self.interactive {
                self.interactive = false;
                self.delay = self.base;
            } else {
                self.delay = (self.delay * 2).min(rto);
            }
        }
    }

    /// Whether an acknowledgement is due now.
    #[inline]
    pub const fn is_due(&self) -> bool {
        self.due
    }

    /// An acknowledgement of `packets` segments left. `data`: it rode on data.
    #[inline]
    pub fn on_ack_sent(&mut self, now: Instant, data: bool, packets: u64) {
        self.due = false;
        self.at = Instant::MAX;
        let packets = u32::try_from(packets).unwrap_or(u32::MAX);
        self.quick = self.quick.saturating_sub(packets);
        // An answer soon after a question: this conversation goes to and fro.
        if data && self.adaptive && self.received_at.is_some_and(|at| now - at < self.delay) {
            self.interactive = true;
        }
    }

    /// Facts for reports.
    pub const fn timing(&self) -> AckTiming {
        AckTiming {
            delay: self.delay,
            quick: self.quick,
        }
    }
}
