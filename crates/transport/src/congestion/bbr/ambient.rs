//! Random loss of the path, as opposed to congestion loss.
//!
//! The draft treats every loss as a sign of congestion and slows down in each round trip with a loss. With 1 % of
//! random loss this costs a fifth of the bandwidth, with 5 % nearly all of it. Two observations distinguish such a
//! path from a full queue:
//!
//! - A full queue also delays the packets next to the lost one. Once the round-trip time has risen by more than
//!   noise, the queue is known to have that much room. Losses in a round trip in which most packets took about the
//!   minimum time are not due to a full queue.
//! - A sender that has slowed down to half of the recently measured bandwidth does not fill the queue.
//!
//! Losses in such round trips are attributed to the path, and the model treats losses as congestion only if they
//! exceed that share significantly. The sending rate is increased by the lost share, so that the full bandwidth
//! arrives. Without such evidence (a shallow queue, a standing queue, round-trip times that vary for other reasons)
//! the draft's rule applies unchanged.
//!
//! This addition to the draft is used by the controller `bbr-tolerant` only: `bbr` sets the limit to zero, so that
//! every loss counts as congestion.

use foundation::{Duration, Rate};

use super::two_cycle_max::TwoCycleMax;
use super::{AckSample, Bbr, PPM, State, scale};

/// The queue is known once the round-trip time has risen by a 16th.
const SEEN_DIVISOR: u64 = 16;
/// Three quarters of the known queue must be free.
const FREE_DIVISOR: u64 = 4;
/// In Startup, before a queue was observed: within a 32nd of the minimum round-trip time …
const EMPTY_DIVISOR: u64 = 32;
/// … or within the transmission time of this many packets on the bottleneck, or within half of the queueing delay that
/// suspends Startup: on a busy machine, RTTs vary by more than the rest.
const EMPTY_PACKETS: u64 = 3;
/// Number of segments after which older rounds count half.
const MEMORY: u64 = 4096;
/// Probing cycles without new evidence after which the estimate is discarded.
const FORGET_CYCLES: u32 = 2;
/// Standard deviations of a random loss count within chance.
const SIGNIFICANCE: f64 = 3.0;

/// Losses and deliveries of the current loss round, and of the rounds without congestion.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ambient {
    round_lost: u64,
    round_delivered: u64,
    /// Round-trip samples of the round: all, and those that indicate room in the queue.
    samples: u32,
    samples_with_room: u32,
    /// Most packets of the last round found room.
    had_room: bool,
    /// The sender was slow in this round and in the last one.
    slow: [bool; 2],
    lost: u64,
    delivered: u64,
    /// Share of `lost` in both, in parts per million, limited by the settings.
    ppm: u64,
    cycles_without_evidence: u32,
    /// Maximum round-trip time of this and the last cycle, in ns.
    largest_rtt: TwoCycleMax,
}

impl Ambient {
    pub(super) fn on_lost(&mut self, bytes: u64) {
        self.round_lost += bytes;
    }

    /// Returns the share of packets that the path loses, in parts per million.
    pub(super) const fn ppm(&self) -> u64 {
        self.ppm
    }

    /// Handles the end of a cycle of bandwidth probing.
    pub(super) fn advance_cycle(&mut self) {
        self.largest_rtt.advance();
        self.cycles_without_evidence += 1;
        if self.cycles_without_evidence > FORGET_CYCLES {
            self.forget();
        }
    }

    fn forget(&mut self) {
        (self.lost, self.delivered, self.ppm) = (0, 0, 0);
    }

    /// Returns whether most packets of the current round found room.
    const fn has_room(&self) -> bool {
        self.samples > 0 && self.samples_with_room * 2 >= self.samples
    }

    /// Returns whether losses of the current round cannot be due to a queue filled by this sender. Losses appear one
    /// round trip late, so that the sender must have been slow for two.
    const fn is_innocent(&self) -> bool {
        self.has_room() || self.slow[0] && self.slow[1]
    }

    fn on_acknowledged(&mut self, sample: &AckSample, room_until: Option<Duration>) {
        self.round_delivered += sample.acknowledged;
        if let Some(rtt) = sample.rtt {
            self.samples += 1;
            self.samples_with_room += u32::from(room_until.is_some_and(|until| rtt <= until));
            self.largest_rtt.update(rtt.as_nanos());
        }
    }

    fn finish_round(&mut self, counts: bool, slow: bool, segment: u64, limit_ppm: u64) {
        if counts && self.is_innocent() {
            self.cycles_without_evidence = 0;
            self.lost += self.round_lost;
            self.delivered += self.round_delivered;
            if self.lost + self.delivered > MEMORY * segment {
                self.lost /= 2;
                self.delivered /= 2;
            }
            let all = (self.lost + self.delivered).max(1);
            self.ppm = scale(PPM, self.lost, all).min(limit_ppm);
        }
        self.had_room = self.has_room();
        self.slow = [slow, self.slow[0]];
        (self.round_lost, self.round_delivered) = (0, 0);
        (self.samples, self.samples_with_room) = (0, 0);
    }
}

impl Bbr {
    /// Returns the bytes of `bytes` that may be lost without congestion; 0 without evidence.
    pub(super) fn ambient_loss(&self, bytes: u64) -> u64 {
        self.by_chance(bytes, self.ambient.ppm)
    }

    /// Returns the bytes of `bytes` that may be lost by chance with a mean loss of `ppm`.
    fn by_chance(&self, bytes: u64, ppm: u64) -> u64 {
        if ppm == 0 {
            return 0;
        }
        let expected = ppm as f64 / PPM as f64 * bytes as f64;
        (expected + SIGNIFICANCE * (expected * self.segment as f64).sqrt()) as u64
    }

    /// Returns whether the current loss round lost more than the path does; if the sender cannot be the cause, more
    /// than any path may lose.
    pub(super) fn round_lost_too_much(&self) -> bool {
        let round = &self.ambient;
        let ppm = if round.is_innocent() {
            self.additions.random_loss_limit
        } else {
            round.ppm
        };
        round.round_lost > self.by_chance(round.round_lost + round.round_delivered, ppm)
    }

    /// Returns `rate` increased by the share that the path loses, unless the increase has started to fill the queue.
    pub(super) fn with_ambient_loss(&self, rate: u64) -> u64 {
        if self.ambient.ppm == 0 || !self.ambient.had_room {
            return rate;
        }
        scale(rate, PPM, PPM - self.ambient.ppm)
    }

    pub(super) fn update_ambient_loss(&mut self, sample: &AckSample) {
        let room_until = self.room_until();
        self.ambient.on_acknowledged(sample, room_until);
        if sample.starts_loss_round {
            // Losses appear one round trip late: those of a probe still appear in Down.
            let counts = matches!(self.state, State::Startup | State::Cruise);
            let slow = self.state == State::Cruise && self.bw <= self.max_bw() / 2;
            self.ambient
                .finish_round(counts, slow, self.segment, self.additions.random_loss_limit);
        }
    }

    /// Reviews the estimate after Startup: it remains valid only if a queue was observed since.
    pub(super) fn review_ambient_loss(&mut self) {
        if self.room_until().is_none() {
            self.ambient.forget();
        }
    }

    /// Returns the round-trip time up to which the queue has room; `None` if unknown.
    fn room_until(&self) -> Option<Duration> {
        let least = self.min_rtt.value?;
        if self.state == State::Startup {
            let packets = Rate::from_bits_per_second(self.bw)?.time_for(EMPTY_PACKETS * self.segment);
            let half = self
                .startup_queue_delay()
                .map_or(Duration::ZERO, |queue| queue / 2);
            return Some(least + (least / EMPTY_DIVISOR).max(packets).max(half));
        }
        let seen = Duration::from_nanos(self.ambient.largest_rtt.max()) - least;
        (seen >= least / SEEN_DIVISOR).then(|| least + seen / FREE_DIVISOR)
    }
}
