//! The initial window as a packet train: it leaves at once, and the bottleneck spreads it. The rate at which its ACKs arrive
//! is about the bottleneck's, so Startup can jump there after one round trip instead of doubling.
//!
//! Compressed ACKs, or links that deliver bursts, make this rate too high. So the jump is limited, and paced over the next
//! round trip, whose ACKs show a queue. The draft has no such estimate: the addition is off unless the settings enable it.

use foundation::{Duration, Instant};

use super::{AckSample, Bbr, State, scale};

/// Fewest segments between the first and the last ACK of a train.
const SEGMENTS: u64 = 8;
/// Time in which the train leaves, as for the first packets of a connection (section 5.6.2).
const SPREAD: Duration = Duration::from_millis(1);

/// ACKs of the packets that left together from an empty path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Train {
    /// Bytes delivered when it left.
    prior: u64,
    /// Its first ACK.
    first_at: Option<Instant>,
    /// Bytes of later ACKs, and the time of the last one.
    bytes: u64,
    span: Duration,
}

/// Pacing gain in percent near the rate of the train.
pub(super) const GAIN: u64 = 150;

impl Train {
    /// Records that a packet leaves an empty path, after `delivered` bytes.
    pub(super) fn start(&mut self, delivered: u64) {
        *self = Self {
            prior: delivered,
            ..Self::default()
        };
    }

    pub(super) fn on_acknowledged(&mut self, sample: &AckSample) {
        if sample.prior_delivered != self.prior {
            return;
        }
        match self.first_at {
            None => self.first_at = Some(sample.now),
            Some(first) => {
                self.bytes += sample.acknowledged;
                self.span = sample.now - first;
            }
        }
    }

    /// Returns the rate in bit/s; 0 if unknown.
    fn rate(&self, segment: u64) -> u64 {
        match self.bytes >= SEGMENTS * segment {
            true => scale(self.bytes, 8_000_000_000, self.span.as_nanos().max(1)),
            false => 0,
        }
    }
}

impl Bbr {
    fn may_jump(&self) -> bool {
        self.additions.startup_jump > 0 && self.state == State::Startup && !self.full_pipe.ever
    }

    /// Returns the pacing rate while a train leaves, in bit/s.
    pub(super) fn train_rate(&self) -> Option<u64> {
        let leaves = self.may_jump() && self.train.first_at.is_none();
        leaves.then(|| scale(self.window, 8_000_000_000, SPREAD.as_nanos()).max(self.pacing_rate))
    }

    /// Returns the smallest pacing rate of Startup according to the train, in bit/s.
    pub(super) fn jump_rate(&self) -> u64 {
        match self.min_rtt.value {
            Some(rtt) if self.may_jump() && !self.startup_queue.is_full => {
                let most = self.initial_window.saturating_mul(self.additions.startup_jump);
                let most = scale(most, 8_000_000_000, rtt.as_nanos().max(1));
                self.train.rate(self.segment).min(most)
            }
            _ => 0,
        }
    }

    /// Whether the bandwidth is close to the train's rate: Startup then grows slowly, because less than the usual factor is
    /// missing.
    pub(super) fn is_near_train_rate(&self) -> bool {
        let rate = self.jump_rate();
        rate > 0 && self.max_bw() >= rate / 4 * 3
    }

    /// Returns the smallest window of Startup according to the train.
    pub(super) fn jump_window(&self) -> u64 {
        match self.jump_rate() {
            0 => 0,
            rate => self.inflight_at(rate, 100),
        }
    }
}
