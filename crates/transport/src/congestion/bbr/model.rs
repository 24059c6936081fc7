//! State of the path: rounds, bandwidth, bandwidth-delay product, ACK aggregation.

use foundation::Rate;

use super::{AGGREGATION_ROUNDS, AckSample, Bbr, Flight, MIN_WINDOW, State};
use crate::congestion::arithmetic::bytes_in;
use crate::congestion::{Acknowledgement, Bursts};

impl Bbr {
    pub(super) fn max_bw(&self) -> u64 {
        self.bandwidth.max()
    }

    pub(super) fn min_window(&self) -> u64 {
        MIN_WINDOW * self.segment
    }

    /// Returns `gain` percent of the bytes that `bandwidth` delivers in the minimum round-trip time.
    #[inline]
    pub(super) fn bdp_at(&self, bandwidth: u64, gain: u64) -> u64 {
        let Some(rtt) = self.min_rtt.value else {
            return self.initial_window;
        };
        bytes_in(bandwidth, rtt).saturating_mul(gain) / 100
    }

    pub(super) fn bdp(&self, gain: u64) -> u64 {
        self.bdp_at(self.bw, gain)
    }

    /// Returns at least the bytes that senders and receivers need for packet trains (section 5.6.4.2).
    pub(super) fn with_quanta(&self, bytes: u64) -> u64 {
        let quantum = Rate::from_bits_per_second(self.pacing_rate)
            .map_or(0, |rate| Bursts::Usual.bytes(rate, self.segment));
        let enough = bytes.max(quantum).max(self.min_window());
        if self.state == State::Up {
            enough.saturating_add(2 * self.segment)
        } else {
            enough
        }
    }

    pub(super) fn inflight_at(&self, bandwidth: u64, gain: u64) -> u64 {
        self.with_quanta(self.bdp_at(bandwidth, gain))
    }

    pub(super) fn inflight(&self, gain: u64) -> u64 {
        self.inflight_at(self.bw, gain)
    }

    pub(super) fn target_inflight(&self) -> u64 {
        self.bdp(100).min(self.window)
    }

    pub(super) fn is_window_limited(&self) -> bool {
        self.window_limited[0] || self.window_limited[1]
    }

    /// Converts an ACK to a sample and counts rounds.
    pub(super) fn observe(&mut self, ack: &Acknowledgement) -> Option<AckSample> {
        let rate_sample = ack.rate_sample?;
        let limited = rate_sample.application_limited || rate_sample.prior_delivered < self.limited_until;
        // An ACK sooner than the path allows belongs to an earlier transmission of the same packet: its bytes count,
        // but it gives no measurement.
        let least = self.min_rtt.value.unwrap_or_default();
        let genuine = ack.now - ack.newest_sent_at >= ack.rtt.map_or(least, |rtt| rtt.min(least));
        let starts_round = genuine && rate_sample.prior_delivered >= self.round_end;
        if starts_round {
            self.start_round();
            self.round_count += 1;
            self.rounds_since_probe += 1;
            self.window_limited = [false, self.window_limited[0]];
        }
        let rate = rate_sample
            .rate()
            .filter(|_| genuine)
            .map_or(0, Rate::bits_per_second);
        if rate > 0 && (rate >= self.max_bw() || !limited) {
            self.bandwidth.update(rate);
        }
        Some(AckSample {
            now: ack.now,
            // A zero sample is due to a coarse clock and would make the model collapse.
            rtt: ack.rtt.filter(|rtt| !rtt.is_zero()),
            acknowledged: ack.bytes,
            rate,
            delivered: rate_sample.delivered,
            prior_delivered: rate_sample.prior_delivered,
            application_limited: limited,
            flight: Flight {
                in_flight: rate_sample.in_flight_at_send,
                lost: rate_sample.lost,
            },
            starts_round,
            starts_loss_round: false,
        })
    }

    /// Updates the bytes that arrive at once beyond the bandwidth (section 5.5.9).
    pub(super) fn update_aggregation(&mut self, sample: &AckSample) {
        let expected = bytes_in(self.bw, sample.now - self.aggregation_started);
        let mut excess = self.aggregation_delivered + sample.acknowledged;
        if self.aggregation_delivered <= expected {
            self.aggregation_started = sample.now;
            self.aggregation_delivered = 0;
            excess = sample.acknowledged;
        } else {
            excess -= expected;
        }
        self.aggregation_delivered += sample.acknowledged;
        let rounds = if self.full_pipe.ever {
            AGGREGATION_ROUNDS
        } else {
            1
        };
        self.aggregated = self
            .aggregation
            .update(self.round_count, excess.min(self.window), rounds);
    }
}
