//! The sender's timers: one of them runs at a time (RFC 6298, section 5; RFC 8985, sections 6.3 and 7.2;
//! RFC 9293, section 3.8.6.1).

use foundation::{Duration, Instant};

use super::Sender;
use crate::statistics::Statistics;

/// No timer is finer than this many milliseconds where it stands for a moment of patience (RFC 8985, section 7.2).
pub(super) const TIMER_GRAIN: Duration = Duration::from_millis(2);
/// Linux probes a window that is shut no sooner than this.
const LEAST_PROBE_INTERVAL: Duration = Duration::from_millis(200);

/// What the timer will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// Retransmission timeout.
    Retransmission,
    /// Tail loss probe.
    TailProbe,
    /// Segments that were only late so far are lost.
    Reordering,
    /// Probe a window that is shut.
    Persist,
}

/// What a timeout means to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutVerdict {
    /// It goes on.
    GoesOn,
    /// The user timeout has passed.
    GivenUp,
}

impl Sender {
    /// When the timer or the pacer wants to be heard.
    #[inline]
    pub fn timeout(&self) -> Instant {
        let timer = self.timer.map_or(Instant::MAX, |(_, at)| at);
        self.paced_until.map_or(timer, |at| timer.min(at))
    }

    /// What is due by `now` happens; what is to leave for it is chosen in `poll`.
    pub fn on_timeout(&mut self, now: Instant, statistics: &mut Statistics) -> TimeoutVerdict {
        self.burst = 0;
        if self.paced_until.is_some_and(|at| at <= now) {
            self.paced_until = None;
        }
        let Some((timer, _)) = self.timer.filter(|&(_, at)| at <= now) else {
            return TimeoutVerdict::GoesOn;
        };
        self.timer = None;
        match timer {
            Timer::Retransmission => return self.on_retransmission_timeout(now, statistics),
            Timer::TailProbe => self.on_tail_probe_timeout(now),
            Timer::Reordering => self.on_reordering_timeout(now),
            Timer::Persist => return self.on_persist_timeout(now),
        }
        TimeoutVerdict::GoesOn
    }

    /// RFC 6298, sections 5.4 to 5.6.
    fn on_retransmission_timeout(&mut self, now: Instant, statistics: &mut Statistics) -> TimeoutVerdict {
        if self.scoreboard.is_empty() {
            return TimeoutVerdict::GoesOn;
        }
        if self.is_given_up(now) {
            return TimeoutVerdict::GivenUp;
        }
        self.enter_loss(now, statistics);
        self.timeouts += 1;
        self.backoff = (self.backoff + 1).min(30);
        self.arm_retransmission(now);
        TimeoutVerdict::GoesOn
    }

    fn is_given_up(&self, now: Instant) -> bool {
        now - self.stalled_since >= self.parameters.user_timeout
    }

    fn arm_retransmission(&mut self, now: Instant) {
        let given_up = self.stalled_since + self.parameters.user_timeout;
        let at = (now + self.rto()).min(given_up.max(now + TIMER_GRAIN));
        self.timer = Some((Timer::Retransmission, at));
    }

    /// The peer keeps its window shut, or something small is held back for long (RFC 9293, section 3.8.6).
    fn on_persist_timeout(&mut self, now: Instant) -> TimeoutVerdict {
        if !self.scoreboard.is_empty() || !self.has_unsent() {
            return TimeoutVerdict::GoesOn;
        }
        if self.zero_window_probes == 0 {
            self.stalled_since = now;
        } else if self.is_given_up(now) {
            return TimeoutVerdict::GivenUp;
        }
        self.zero_window_probes += 1;
        self.backoff = (self.backoff + 1).min(30);
        self.send_window_probe = true;
        self.arm_persist(now);
        TimeoutVerdict::GoesOn
    }

    fn arm_persist(&mut self, now: Instant) {
        let base = self.rtt.timeout().max(LEAST_PROBE_INTERVAL);
        let mut at = now + base.doubled(self.backoff).min(self.parameters.max_rto);
        if self.zero_window_probes > 0 {
            let given_up = self.stalled_since + self.parameters.user_timeout;
            at = at.min(given_up.max(now + TIMER_GRAIN));
        }
        self.timer = Some((Timer::Persist, at));
    }

    /// Nothing is in flight: probes are needed where there is something to send and it may not leave.
    pub(super) fn check_probe_timer(&mut self, now: Instant) {
        let shut = self.has_unsent() && !self.fits_window(self.next_length(0));
        match self.timer {
            Some((Timer::Persist, _)) if !shut => {
                self.timer = None;
                self.backoff = 0;
                self.zero_window_probes = 0;
            }
            Some((Timer::Persist, _)) => self.arm_persist(now),
            _ => self.timer = None,
        }
    }

    /// Nothing may leave and nothing is in flight: whatever holds it back, this ends it.
    pub(super) fn ensure_persist(&mut self, now: Instant) {
        if self.timer.is_none() && self.scoreboard.is_empty() && self.has_unsent() {
            self.arm_persist(now);
        }
    }

    /// RFC 6298, sections 5.2 and 5.3, after an ACK: the timer starts anew, or a probe's in its place.
    pub(super) fn set_timer(&mut self, now: Instant) {
        if !self.schedule_tail_probe(now) {
            self.rearm(now);
        }
    }

    /// The retransmission timer starts anew, or goes on from the first segment's departure where another
    /// timer stood in its place.
    pub(super) fn rearm(&mut self, now: Instant) {
        if self.scoreboard.is_empty() {
            self.timer = None;
            return;
        }
        match self.timer {
            Some((Timer::TailProbe | Timer::Reordering, _)) => {
                let left = self.until_timeout(now).max(Duration::from_millis(1));
                self.timer = Some((Timer::Retransmission, now + left));
            }
            _ => self.arm_retransmission(now),
        }
    }

    /// How long until the first segment in flight times out, zero where it should have.
    pub(super) fn until_timeout(&self, now: Instant) -> Duration {
        let Some(front) = self.scoreboard.front() else {
            return Duration::ZERO;
        };
        (front.sent_at + self.rto()) - now
    }

    /// A segment left. `first`: nothing was in flight before, or it is the first one, sent again.
    #[inline]
    pub(super) fn arm_for_sent(&mut self, now: Instant, first: bool, again: bool) {
        match self.timer {
            Some((Timer::Reordering, _)) => {}
            Some((Timer::TailProbe, _)) if !again => self.rearm(now),
            _ if first => self.arm_retransmission(now),
            None => self.arm_retransmission(now),
            _ => {}
        }
    }

    pub(super) fn set_reordering_timer(&mut self, now: Instant, wait: Duration) {
        self.timer = Some((Timer::Reordering, now + wait + TIMER_GRAIN));
    }

    pub(super) fn is_reordering_timer(&self) -> bool {
        matches!(self.timer, Some((Timer::Reordering, _)))
    }
}
