//! RACK: loss detection by time (RFC 8985, sections 5 and 6).

use foundation::{Duration, Instant};

use super::scoreboard::Scoreboard;
use super::sent_segment::{Marks, SentSegment};

/// Recoveries for which a wider reordering window persists (RFC 8985, section 6.2, step 4).
const PERSISTENCE: u16 = 16;
/// Maximum window in quarters of the minimum RTT (RFC 8985 limits it only by SRTT; Linux counts in one byte).
const MAX_STEPS: u16 = 255;
/// No round of DSACKs: more bytes than any connection delivers.
const NO_ROUND: u64 = u64::MAX;

/// State of RACK.
#[derive(Clone, Copy, Debug)]
pub struct Rack {
    /// Send time of the newest delivered segment (`RACK.xmit_ts`), and its end.
    newest: Option<(Instant, u64)>,
    /// Its round trip (`RACK.rtt`).
    rtt: Duration,
    /// Whether a segment was delivered since the last loss detection.
    advanced: bool,
    /// `RACK.reo_wnd_mult`, and the recoveries until it returns to one.
    steps: u16,
    persist: u16,
    /// Delivered bytes at which the current round of DSACKs ends (`RACK.dsack_round`); `NO_ROUND` for none.
    dsack_round: u64,
}

impl Rack {
    pub const fn new() -> Self {
        Self {
            newest: None,
            rtt: Duration::ZERO,
            advanced: false,
            steps: 1,
            persist: 0,
            dsack_round: NO_ROUND,
        }
    }

    /// Records the delivery of a segment (RFC 8985, section 6.2, steps 1 and 2). `before`: its marks before the ACK.
    #[inline]
    pub fn on_delivered(
        &mut self,
        now: Instant,
        record: &SentSegment,
        before: Marks,
        min_rtt: Option<Duration>,
    ) {
        let rtt = now - record.sent_at;
        // An ACK faster than the minimum RTT acknowledges an earlier transmission.
        if before.has(Marks::EVER_RETRANSMITTED) && min_rtt.is_none_or(|least| rtt < least) {
            return;
        }
        self.rtt = rtt;
        self.advanced = true;
        if self.newest.is_none_or(|(at, end)| record.was_sent_after(at, end)) {
            self.newest = Some((record.sent_at, record.end()));
        }
    }

    /// Returns the reordering window (RFC 8985, section 6.2, step 4).
    pub fn reordering_window(&self, min_rtt: Duration, smoothed_rtt: Duration) -> Duration {
        (min_rtt * u64::from(self.steps) / 4).min(smoothed_rtt)
    }

    /// Widens the reordering window after a DSACK (RFC 8985, section 6.2, step 4). `prior_delivered`: bytes delivered when
    /// the acknowledged segment was sent; `delivered`: bytes delivered now.
    pub fn on_dsack(&mut self, seen: bool, prior_delivered: Option<u64>, delivered: u64) {
        if prior_delivered.is_some_and(|prior| prior >= self.dsack_round) {
            self.dsack_round = NO_ROUND;
        }
        if seen && self.dsack_round == NO_ROUND {
            self.dsack_round = delivered;
            self.steps = (self.steps + 1).min(MAX_STEPS);
            self.persist = PERSISTENCE;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// Counts a completed recovery.
    pub fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }

    /// Marks segments as lost that were sent well before the newest delivered one, and calls `lost` for each with its
    /// previous state (RFC 8985, section 6.2, step 5). Returns the time until the next segment may be lost.
    pub fn detect(
        &mut self,
        now: Instant,
        window: Duration,
        scoreboard: &mut Scoreboard,
        mut lost: impl FnMut(&SentSegment),
    ) -> Option<Duration> {
        let (newest_at, newest_end) = self.newest?;
        self.advanced = false;
        let limit = self.rtt + window;
        while let Some(number) = scoreboard.oldest_undecided() {
            let record = *scoreboard.get(number)?;
            if record.was_sent_after(newest_at, newest_end)
                || (record.sent_at, record.end()) == (newest_at, newest_end)
            {
                break;
            }
            let age = now - record.sent_at;
            if age < limit {
                return Some(limit - age);
            }
            if scoreboard.mark_lost(number) {
                lost(&record);
            }
        }
        None
    }

    /// Makes the next ACK run loss detection.
    pub const fn request_detection(&mut self) {
        self.advanced = true;
    }

    /// Whether a segment was delivered since the last loss detection.
    pub const fn has_advanced(&self) -> bool {
        self.advanced
    }

    /// Whether a transmission is too recent for a timeout to consider it lost (RFC 8985, section 6.3).
    pub fn is_recent(&self, now: Instant, record: &SentSegment, window: Duration) -> bool {
        now - record.sent_at < self.rtt + window
    }
}
