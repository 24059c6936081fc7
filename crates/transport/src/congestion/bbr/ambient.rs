//! Loss that is not congestion: what the path loses whatever is sent.
//!
//! The draft takes any loss for a hint of congestion, and slows down with every round trip that has
//! one; on a path with 1 % of random loss this costs a fifth of the bandwidth, at 5 % nearly all of it.
//! Two observations tell such a path from a full queue:
//!
//! - A packet that finds the queue full makes those beside it slow. Once the round-trip time has been
//!   seen to rise, by more than noise, the queue is known to have that much room; what is lost in a
//!   round trip in which most packets took about the least time was not lost to a full queue.
//! - A sender that has slowed down to half of what the path has lately carried does not overfill it.
//!
//! What such round trips lose is put down to the path, and the model takes losses for congestion only
//! where they exceed that by more than chance. What the path loses is also sent in addition, so that the
//! bandwidth arrives. Where there is no such evidence (a shallow queue, a standing one, round-trip times
//! that vary for other reasons) the draft's rule applies unchanged.
//!
//! This is an addition to the draft, which only the controller `bbr-tolerant` uses: `bbr` sets the limit to zero, and
//! then every loss counts as congestion.

use foundation::{Duration, Rate};

use super::filters::TwoCycleMax;
use super::{Bbr, PPM, Round, State, scale};

/// The round-trip time must have risen by a 16th for the queue to count as seen.
const SEEN_DIVISOR: u64 = 16;
/// Three quarters of the room seen must be free.
const FREE_DIVISOR: u64 = 4;
/// In Startup, before any queue was seen: within a 32nd of the least round-trip time …
const EMPTY_DIVISOR: u64 = 32;
/// … or as many packets' time on the bottleneck.
const EMPTY_PACKETS: u64 = 3;
/// Older rounds count half each time this many segments have been counted.
const MEMORY: u64 = 4096;
/// Cycles of bandwidth probing after which evidence that does not come again is forgotten.
const FORGET_CYCLES: u32 = 2;
/// Standard deviations of a random loss count that are still chance.
const SIGNIFICANCE: f64 = 3.0;

/// What was lost and delivered in the loss round at hand, and in those that were not congested.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ambient {
    round_lost: u64,
    round_delivered: u64,
    /// Round-trip times of the round: all, and those that show room.
    samples: u32,
    samples_with_room: u32,
    /// Most of the last round's packets found room.
    had_room: bool,
    /// The sender was slow in this round, in the last one.
    slow: [bool; 2],
    lost: u64,
    delivered: u64,
    /// The part of `lost` in both, in parts per million, limited by the settings.
    ppm: u64,
    cycles_without_evidence: u32,
    /// The largest round-trip time of this and the last cycle, in nanoseconds.
    largest_rtt: TwoCycleMax,
}

impl Ambient {
    pub(super) fn on_lost(&mut self, bytes: u64) {
        self.round_lost += bytes;
    }

    /// The part of what is sent that the path loses, in parts per million.
    pub(super) const fn ppm(&self) -> u64 {
        self.ppm
    }

    /// A cycle of bandwidth probing has ended.
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

    /// Whether most packets of the round at hand found room.
    const fn has_room(&self) -> bool {
        self.samples > 0 && self.samples_with_room * 2 >= self.samples
    }

    /// Whether losses of the round at hand cannot come from a queue that this sender has filled. They
    /// show a round trip late, so that a sender must have been slow for two.
    const fn is_innocent(&self) -> bool {
        self.has_room() || self.slow[0] && self.slow[1]
    }

    fn on_acknowledged(&mut self, round: &Round, room_until: Option<Duration>) {
        self.round_delivered += round.acknowledged;
        if let Some(rtt) = round.rtt {
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
    /// How much of `bytes` may be lost without meaning congestion; none, without evidence.
    pub(super) fn ambient_loss(&self, bytes: u64) -> u64 {
        self.by_chance(bytes, self.ambient.ppm)
    }

    /// What may be lost of `bytes` where `ppm` are lost on average.
    fn by_chance(&self, bytes: u64, ppm: u64) -> u64 {
        if ppm == 0 {
            return 0;
        }
        let expected = ppm as f64 / PPM as f64 * bytes as f64;
        (expected + SIGNIFICANCE * (expected * self.segment as f64).sqrt()) as u64
    }

    /// Whether the loss round at hand has lost more than the path does; where it is not the sender's
    /// doing, more than any path may lose.
    pub(super) fn round_lost_too_much(&self) -> bool {
        let round = &self.ambient;
        let ppm = if round.is_innocent() {
            self.random_loss_limit_ppm
        } else {
            round.ppm
        };
        round.round_lost > self.by_chance(round.round_lost + round.round_delivered, ppm)
    }

    /// `rate` and what the path will lose of it, unless that has begun to fill the queue.
    pub(super) fn with_ambient_loss(&self, rate: u64) -> u64 {
        if self.ambient.ppm == 0 || !self.ambient.had_room {
            return rate;
        }
        scale(rate, PPM, PPM - self.ambient.ppm)
    }

    pub(super) fn update_ambient_loss(&mut self, round: &Round) {
        let room_until = self.room_until();
        self.ambient.on_acknowledged(round, room_until);
        if round.loss_round_starts {
            // Losses show a round trip after they happened: those of a probe still show in Down.
            let counts = matches!(self.state, State::Startup | State::Cruise);
            let slow = self.state == State::Cruise && self.bw <= self.max_bw() / 2;
            self.ambient
                .finish_round(counts, slow, self.segment, self.random_loss_limit_ppm);
        }
    }

    /// Startup is over: what it has put down to the path holds only if a queue was seen since.
    pub(super) fn review_ambient_loss(&mut self) {
        if self.room_until().is_none() {
            self.ambient.forget();
        }
    }

    /// The round-trip time up to which the queue has room; `None` where that is not known.
    fn room_until(&self) -> Option<Duration> {
        let least = self.min_rtt.value?;
        if self.state == State::Startup {
            let packets = Rate::from_bits_per_second(self.bw)?.time_for(EMPTY_PACKETS * self.segment);
            return Some(least + (least / EMPTY_DIVISOR).max(packets));
        }
        let seen = Duration::from_nanos(self.ambient.largest_rtt.max()) - least;
        (seen >= least / SEEN_DIVISOR).then(|| least + seen / FREE_DIVISOR)
    }
}
