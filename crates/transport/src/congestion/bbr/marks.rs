//! Response to congestion marks, which the draft leaves open (draft-ietf-ccwg-bbr, section 3.6).

use foundation::{Duration, Instant};

use super::undo::Undo;
use super::{AckSample, Bbr, State, UNBOUNDED};

/// How BBR responds to congestion marks.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum MarkResponse {
    /// A round trip with a mark counts as one with too much loss.
    #[default]
    Loss,
    /// To the share of marked packets, as Google's kernel on routes with low-latency marking (`ecn_low`), if the minimum
    /// round-trip time is at most 5 ms.
    Share,
    /// Not at all, as Google's kernel on other routes.
    None,
}

impl MarkResponse {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Maximum of the minimum round-trip time at which the share counts (`bbr_ecn_max_rtt_us` of google/bbr).
const MAX_RTT: Duration = Duration::from_millis(5);
/// Weight of the last round in the average share (`bbr_ecn_alpha_gain`), and the average's part by which the bound of the
/// bytes in flight shrinks (`bbr_ecn_factor`).
const GAIN: f64 = 1.0 / 16.0;
const FACTOR: f64 = 1.0 / 3.0;
/// Share that ends a probe (`bbr_ecn_thresh`), and in this many rounds Startup (`bbr_full_ecn_cnt`).
const TOO_HIGH: f64 = 0.5;
const STARTUP_ROUNDS: u32 = 2;

/// The share of marked bytes.
#[derive(Clone, Debug)]
pub(super) struct MarkShare {
    response: MarkResponse,
    alpha: f64,
    acknowledged: u64,
    marked: u64,
    startup_rounds: u32,
}

impl MarkShare {
    pub const fn new(response: MarkResponse) -> Self {
        Self {
            response,
            alpha: 1.0,
            acknowledged: 0,
            marked: 0,
            startup_rounds: 0,
        }
    }

    pub const fn count(&mut self, bytes: u64, marked: u64) {
        self.acknowledged += bytes;
        self.marked += marked;
    }

    /// Ends a round. Returns its share of marked bytes.
    fn end_round(&mut self) -> f64 {
        let share = self.marked as f64 / self.acknowledged.max(1) as f64;
        self.alpha += GAIN * (share - self.alpha);
        (self.acknowledged, self.marked) = (0, 0);
        share
    }
}

impl Bbr {
    /// Handles a congestion mark. As a loss, it ends Startup and a probe; otherwise it lowers the short-term bounds.
    pub(super) fn note_mark(&mut self, now: Instant) {
        if self.marks.response != MarkResponse::Loss {
            return;
        }
        self.start_loss_round();
        self.marked_in_round = true;
        match self.state {
            State::Startup => self.full_pipe.ever = true,
            State::Refill | State::Up if self.probe_samples => {
                self.handle_too_high(self.in_flight, false, now)
            }
            _ => {}
        }
        // Marked congestion cannot be spurious: there is nothing to undo.
        self.undo = Undo::default();
    }

    /// Responds to the share of marks at the end of a round.
    pub(super) fn check_mark_share(&mut self, now: Instant, sample: &AckSample) {
        let is_eligible = self.marks.response == MarkResponse::Share
            && self.min_rtt.value.is_some_and(|rtt| rtt <= MAX_RTT);
        if !is_eligible || !sample.starts_round {
            return;
        }
        let share = self.marks.end_round();
        let is_too_high = share >= TOO_HIGH;
        match self.state {
            State::Startup => {
                self.marks.startup_rounds = if is_too_high {
                    self.marks.startup_rounds + 1
                } else {
                    0
                };
                self.full_pipe.ever |= self.marks.startup_rounds >= STARTUP_ROUNDS;
            }
            State::Refill | State::Up => {
                let probe_is_over = is_too_high && self.probe_samples;
                if probe_is_over {
                    self.handle_too_high(self.in_flight, false, now);
                }
            }
            _ if share > 0.0 => {
                if self.inflight_shortterm == UNBOUNDED {
                    self.inflight_shortterm = self.window;
                }
                let kept = 1.0 - FACTOR * self.marks.alpha;
                self.inflight_shortterm = (self.inflight_shortterm as f64 * kept) as u64;
            }
            _ => {}
        }
    }
}
