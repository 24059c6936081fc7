//! Room for aggregated ACKs in the window (`bbr_update_ack_aggregation` of Linux).

use foundation::{Duration, Instant};

use crate::congestion::arithmetic::bytes_in;

/// Rounds of each of the two windows of aggregated ACKs, and the time whose packets limit the room for them (Linux,
/// `bbr_extra_acked_win_rtts` and `bbr_extra_acked_max_us`).
const AGGREGATION_ROUNDS: u32 = 5;
const AGGREGATION_MOST: Duration = Duration::from_millis(100);
/// Packets of an epoch after which it starts again (Linux, `bbr_ack_epoch_acked_reset_thresh`).
const EPOCH_PACKETS: u64 = 1 << 20;

/// Bytes acknowledged beyond those that the bandwidth explains, as maximum of two windows of rounds (Linux,
/// `bbr_update_ack_aggregation`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    rounds: u32,
    extra: [u64; 2],
    place: usize,
    epoch_started: Instant,
    epoch_acknowledged: u64,
}

impl Aggregation {
    /// Handles an ACK of `bytes` at bandwidth `bw`; `most` is the window.
    pub(super) fn update(
        &mut self,
        now: Instant,
        starts_round: bool,
        bytes: u64,
        bw: u64,
        (segment, most): (u64, u64),
    ) {
        if starts_round {
            self.rounds += 1;
            if self.rounds >= AGGREGATION_ROUNDS {
                self.rounds = 0;
                self.place = 1 - self.place;
                self.extra[self.place] = 0;
            }
        }
        let mut expected = bytes_in(bw, now.saturating_since(self.epoch_started));
        if self.epoch_acknowledged <= expected
            || self.epoch_acknowledged.saturating_add(bytes) >= EPOCH_PACKETS * segment
        {
            self.epoch_acknowledged = 0;
            self.epoch_started = now;
            expected = 0;
        }
        self.epoch_acknowledged += bytes;
        let extra = (self.epoch_acknowledged - expected).min(most);
        self.extra[self.place] = self.extra[self.place].max(extra);
    }

    /// Returns the room for aggregated ACKs in bytes.
    pub(super) fn room(&self, bw: u64) -> u64 {
        self.extra[0]
            .max(self.extra[1])
            .min(bytes_in(bw, AGGREGATION_MOST))
    }
}
