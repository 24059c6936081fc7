//! The sender's timers: one of them runs at a time (RFC 6298, section 5; RFC 8985, sections 6.3 and 7.2;
//! RFC 9293, section 3.8.6.1).

use foundation::{Duration, Instant};

use super::Sender;
use crate::statistics::Statistics;

/// Margin that timer granularity adds to a delay (RFC 8985, section 7.2).
pub(super) const TIMER_GRAIN: Duration = Duration::from_millis(2);
/// Minimum interval between zero-window probes (Linux).
const MIN_PROBE_INTERVAL: Duration = Duration::from_millis(200);

/// Purpose of the running timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// Retransmission timeout.
    Retransmission,
    /// Tail loss probe.
    TailProbe,
    /// End of the reordering window: late segments are lost.
    Reordering,
    /// Zero-window probe.
    Persist,
}

/// The retransmission timeout (RFC 6298) and the timer that is running.
#[derive(Debug)]
pub(super) struct Timeout {
    pub timer: Option<(Timer, Instant)>,
    /// Doublings of the timeout.
    pub backoff: u32,
    /// Consecutive timeouts.
    pub consecutive: u32,
    /// Start of the current period without acknowledgements.
    pub stalled_since: Instant,
}

impl Timeout {
    pub const fn new(now: Instant) -> Self {
        Self {
            timer: None,
            backoff: 0,
            consecutive: 0,
            stalled_since: now,
        }
    }
}

impl Sender {
    /// Returns when [`on_timeout`](Self::on_timeout) is due, for the timer or the pacer.
    #[inline]
    pub fn timeout(&self) -> Instant {
        let timer = self.timeout.timer.map_or(Instant::MAX, |(_, at)| at);
        self.burst.paced_until.map_or(timer, |at| timer.min(at))
    }

    /// Stops all timers of a closed connection.
    pub fn stop(&mut self) {
        self.timeout.timer = None;
        self.burst.paced_until = None;
    }

    /// Handles the timers due by `now`; `poll` then returns the segments to send. Returns whether the user timeout has
    /// expired.
    pub fn on_timeout(&mut self, now: Instant, statistics: &mut Statistics) -> bool {
        self.burst.segments = 0;
        if self.burst.paced_until.is_some_and(|at| at <= now) {
            self.burst.paced_until = None;
        }
        let Some((timer, _)) = self.timeout.timer.filter(|&(_, at)| at <= now) else {
            return false;
        };
        self.timeout.timer = None;
        match timer {
            Timer::Retransmission => return self.on_retransmission_timeout(now, statistics),
            Timer::TailProbe => self.on_tail_probe_timeout(now),
            Timer::Reordering => self.on_reordering_timeout(now),
            Timer::Persist => return self.on_persist_timeout(now),
        }
        false
    }

    /// RFC 6298, sections 5.4 to 5.6.
    fn on_retransmission_timeout(&mut self, now: Instant, statistics: &mut Statistics) -> bool {
        if self.scoreboard.is_empty() {
            return false;
        }
        if self.user_timeout_at() <= now {
            return true;
        }
        self.enter_loss(now, statistics);
        self.timeout.consecutive += 1;
        self.timeout.backoff = (self.timeout.backoff + 1).min(30);
        self.arm_retransmission(now);
        false
    }

    fn user_timeout_at(&self) -> Instant {
        self.timeout.stalled_since + self.parameters.user_timeout
    }

    fn arm_retransmission(&mut self, now: Instant) {
        let at = (now + self.rto()).min(self.user_timeout_at().max(now + TIMER_GRAIN));
        self.timeout.timer = Some((Timer::Retransmission, at));
    }

    /// Sends a probe into a closed window, or a small segment withheld for long (RFC 9293, section 3.8.6).
    fn on_persist_timeout(&mut self, now: Instant) -> bool {
        if !self.scoreboard.is_empty() || !self.has_unsent() {
            return false;
        }
        if self.due.window_probes == 0 {
            self.timeout.stalled_since = now;
        } else if self.user_timeout_at() <= now {
            return true;
        }
        self.due.window_probes += 1;
        self.timeout.backoff = (self.timeout.backoff + 1).min(30);
        self.due.window_probe = true;
        self.arm_persist(now);
        false
    }

    fn arm_persist(&mut self, now: Instant) {
        let base = self.rtt.timeout().max(MIN_PROBE_INTERVAL);
        let mut at = now + base.doubled(self.timeout.backoff).min(self.parameters.max_rto);
        if self.due.window_probes > 0 {
            at = at.min(self.user_timeout_at().max(now + TIMER_GRAIN));
        }
        self.timeout.timer = Some((Timer::Persist, at));
    }

    /// Starts or stops zero-window probes when nothing is in flight.
    pub(super) fn check_probe_timer(&mut self, now: Instant) {
        let is_closed = self.has_unsent() && !self.fits_window(self.next_length(0));
        match self.timeout.timer {
            Some((Timer::Persist, _)) if !is_closed => {
                self.timeout.timer = None;
                self.timeout.backoff = 0;
                self.due.window_probes = 0;
            }
            Some((Timer::Persist, _)) => self.arm_persist(now),
            _ => self.timeout.timer = None,
        }
    }

    /// Ensures progress when nothing may leave and nothing is in flight.
    pub(super) fn ensure_persist(&mut self, now: Instant) {
        if self.timeout.timer.is_none() && self.scoreboard.is_empty() && self.has_unsent() {
            self.arm_persist(now);
        }
    }

    /// Restarts the retransmission timer after an ACK, or the timer of a tail loss probe (RFC 6298, sections 5.2 and 5.3).
    pub(super) fn set_timer(&mut self, now: Instant) {
        if !self.schedule_tail_probe(now) {
            self.rearm(now);
        }
    }

    /// Restarts the retransmission timer; after another timer, it counts from the send time of the first segment.
    pub(super) fn rearm(&mut self, now: Instant) {
        if self.scoreboard.is_empty() {
            self.timeout.timer = None;
            return;
        }
        match self.timeout.timer {
            Some((Timer::TailProbe | Timer::Reordering, _)) => {
                let left = self.until_timeout(now).max(Duration::from_millis(1));
                self.timeout.timer = Some((Timer::Retransmission, now + left));
            }
            _ => self.arm_retransmission(now),
        }
    }

    /// Returns the time until the first segment in flight times out; zero if that has passed.
    pub(super) fn until_timeout(&self, now: Instant) -> Duration {
        let Some(front) = self.scoreboard.front() else {
            return Duration::ZERO;
        };
        (front.sent_at + self.rto()) - now
    }

    /// Sets the timer for a new segment, the last one in flight.
    pub(super) fn arm_for_new(&mut self, now: Instant) {
        let first = self.scoreboard.out().packets == 1;
        self.arm_for_sent(now, first, false);
    }

    /// Sets the timer for a sent segment. `first`: it is the first segment in flight; `again`: it is a retransmission.
    #[inline]
    pub(super) fn arm_for_sent(&mut self, now: Instant, first: bool, again: bool) {
        match self.timeout.timer {
            Some((Timer::Reordering, _)) => {}
            Some((Timer::TailProbe, _)) if !again => self.rearm(now),
            _ if first => self.arm_retransmission(now),
            None => self.arm_retransmission(now),
            _ => {}
        }
    }

    pub(super) fn set_reordering_timer(&mut self, now: Instant, wait: Duration) {
        self.timeout.timer = Some((Timer::Reordering, now + wait + TIMER_GRAIN));
    }

    pub(super) fn is_reordering_timer(&self) -> bool {
        matches!(self.timeout.timer, Some((Timer::Reordering, _)))
    }
}
