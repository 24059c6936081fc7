//! Startup and Drain: find the bandwidth by doubling, then drain the queue that this filled (draft-ietf-ccwg-bbr,
//! sections 5.3.1 and 5.3.2).

use foundation::Duration;

use super::{AckSample, Bbr, PPM, State, scale};

/// Minimum ACKs with losses in a round to end Startup (BBRStartupFullLossCnt).
const LOSS_EVENTS: u32 = 6;
/// Maximum number of rounds of Drain.
const DRAIN_ROUNDS: u64 = 3;

/// Successive RTT samples that show a queue, so that a burst does not count.
const QUEUE_SAMPLES: u32 = 4;
/// Smallest queueing delay that counts (RFC 9406, section 4.3: MIN_RTT_THRESH).
const LEAST_QUEUE: Duration = Duration::from_millis(4);

/// Detection of a standing queue in Startup, as in HyStart++ (RFC 9406).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QueueDetector {
    samples: u32,
    /// The last samples found a queue, so the bandwidth estimate is that of the bottleneck or close to it.
    pub is_full: bool,
}

impl QueueDetector {
    fn update(&mut self, rtt: Duration, limit: Duration) {
        self.samples = if rtt > limit { self.samples + 1 } else { 0 };
        self.is_full = self.samples >= QUEUE_SAMPLES;
    }
}

impl Bbr {
    /// Suspends the growth of Startup while there is a queue: until the draft's conditions end Startup, or the queue is
    /// gone.
    fn check_startup_queue(&mut self, sample: &AckSample) {
        if let (Some(rtt), Some(least), Some(queue)) =
            (sample.rtt, self.min_rtt.value, self.startup_queue_delay())
        {
            self.startup_queue.update(rtt, least + queue);
        }
    }

    /// Returns the queueing delay that suspends the growth of Startup; `None` if the settings have none.
    pub(super) fn startup_queue_delay(&self) -> Option<Duration> {
        let share = self.additions.startup_queue;
        let least = self.min_rtt.value.filter(|_| share > 0)?;
        Some(Duration::from_nanos(scale(least.as_nanos(), share, PPM)).max(LEAST_QUEUE))
    }

    pub(super) fn enter_startup(&mut self) {
        self.state = State::Startup;
    }

    pub(super) fn check_startup_and_drain(&mut self, sample: &AckSample) {
        self.full_pipe
            .check(sample.starts_round && !sample.application_limited, sample.rate);
        if self.state == State::Startup {
            self.check_startup_queue(sample);
            self.check_startup_loss(sample);
            if self.full_pipe.ever {
                self.state = State::Drain;
                self.drain_started = self.round_count;
                self.review_ambient_loss();
            }
        }
        if sample.starts_loss_round {
            self.loss_events = 0;
        }
        if self.state == State::Drain
            && (self.in_flight <= self.inflight(100) || self.round_count > self.drain_started + DRAIN_ROUNDS)
        {
            self.enter_probe_bandwidth(sample.now);
        }
    }

    /// Ends Startup after many losses in a whole round (section 5.3.1.3).
    fn check_startup_loss(&mut self, sample: &AckSample) {
        if sample.starts_loss_round && self.loss_events >= LOSS_EVENTS && self.is_too_high(sample.flight) {
            self.full_pipe.ever = true;
            self.undo.ended = Some(State::Startup);
            self.inflight_longterm = self.bdp(100).max(self.inflight_latest);
        }
    }
}
