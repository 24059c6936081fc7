//! RACK: losses found by time (RFC 8985, sections 5 and 6).

use foundation::{Duration, Instant};

use super::scoreboard::Scoreboard;
use super::sent_segment::Marks;
use super::sent_segment::SentSegment;

/// RFC 8985, section 6.2, step 4: a widened window is kept for so many recoveries.
const PERSISTENCE: u32 = 16;
/// The widest window, in quarters of the least round trip (RFC 8985 leaves the bound to SRTT; Linux's counter has a byte).
const MOST_STEPS: u32 = 255;

/// State of RACK.
#[derive(Clone, Copy, Debug)]
pub struct Rack {
    /// When the newest segment known to have arrived had left (`RACK.xmit_ts`), and its end.
    newest: Option<(Instant, u64)>,
    /// Its round trip (`RACK.rtt`).
    rtt: Duration,
    /// Whether an ACK told of a newer one since losses were looked for.
    advanced: bool,
    /// `RACK.reo_wnd_mult`, and recoveries left before it falls back to one.
    steps: u32,
    persist: u32,
    /// Data delivered at which the current round of DSACKs ends (`RACK.dsack_round`).
    dsack_round: Option<u64>,
}

/// What decides how long to wait for segments that may only be late.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// Reordering was seen on this connection.
    pub reordering_seen: bool,
    /// In recovery or after a timeout.
    pub in_recovery: bool,
    /// As many segments are selectively acknowledged as duplicate ACKs make a loss.
    pub threshold_reached: bool,
    /// Least and smoothed round trip.
    pub min_rtt: Duration,
    pub smoothed: Duration,
}

impl Rack {
    pub const fn new() -> Self {
        Self {
            newest: None,
            rtt: Duration::ZERO,
            advanced: false,
            steps: 1,
            persist: 0,
            dsack_round: None,
        }
    }

    /// RFC 8985, section 6.2, steps 1 and 2: a segment is newly known to have arrived.
    #[inline]
    pub fn on_delivered(
        &mut self,
        now: Instant,
        record: &SentSegment,
        before: Marks,
        min_rtt: Option<Duration>,
    ) {
        let rtt = now - record.sent_at;
        // An ACK sooner than any round trip is one of an earlier transmission.
        if before.has(Marks::EVER_RETRANSMITTED) && min_rtt.is_none_or(|least| rtt < least) {
            return;
        }
        self.rtt = rtt;
        self.advanced = true;
        if self.newest.is_none_or(|(at, end)| record.left_after(at, end)) {
            self.newest = Some((record.sent_at, record.end()));
        }
    }

    /// RFC 8985, section 6.2, step 4: how long a segment may be late.
    pub fn reordering_window(&self, tolerance: &Tolerance) -> Duration {
        if !tolerance.reordering_seen && (tolerance.in_recovery || tolerance.threshold_reached) {
            return Duration::ZERO;
        }
        (tolerance.min_rtt * u64::from(self.steps) / 4).min(tolerance.smoothed)
    }

    /// RFC 8985, section 6.2, step 4: DSACKs say that the window was too small. `prior_delivered` is what had
    /// been delivered when the packet that this ACK answers left, `delivered` what has been now.
    pub fn on_dsack(&mut self, seen: bool, prior_delivered: Option<u64>, delivered: u64) {
        if let (Some(round), Some(prior)) = (self.dsack_round, prior_delivered)
            && prior >= round
        {
            self.dsack_round = None;
        }
        if seen && self.dsack_round.is_none() {
            self.dsack_round = Some(delivered);
            self.steps = (self.steps + 1).min(MOST_STEPS);
            self.persist = PERSISTENCE;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// A recovery has ended.
    pub fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }

    /// RFC 8985, section 6.2, step 5: takes for lost what left well before the newest arrival, and gives how
    /// long until the next segment may be taken for lost. Calls `lost` for each with its state before.
    pub fn detect(
        &mut self,
        now: Instant,
        window: Duration,
        scoreboard: &mut Scoreboard,
        mut lost: impl FnMut(&SentSegment),
    ) -> Option<Duration> {
        let (newest_at, newest_end) = self.newest?;
        self.advanced = false;
        let patience = self.rtt + window;
        while let Some(number) = scoreboard.oldest_undecided() {
            let record = *scoreboard.get(number)?;
            if record.left_after(newest_at, newest_end)
                || (record.sent_at, record.end()) == (newest_at, newest_end)
            {
                break;
            }
            let waited = now - record.sent_at;
            if waited < patience {
                return Some(patience - waited);
            }
            if scoreboard.mark_lost(number) {
                lost(&record);
            }
        }
        None
    }

    /// Losses are to be looked for again.
    pub const fn touch(&mut self) {
        self.advanced = true;
    }

    /// Whether an ACK told of a newer arrival since losses were last looked for.
    pub const fn has_advanced(&self) -> bool {
        self.advanced
    }

    /// How long a transmission has before a timeout takes it for lost too (RFC 8985, section 6.3).
    pub fn is_recent(&self, now: Instant, record: &SentSegment, window: Duration) -> bool {
        now - record.sent_at < self.rtt + window
    }
}
