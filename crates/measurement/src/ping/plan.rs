//! Schedule of requests and matching of answers: no clock and no socket.

use std::collections::VecDeque;

use foundation::{Duration, Instant};
use serde::Serialize;

/// Maximum number of unanswered requests of a flood, in windows.
const MOST_WINDOWS: u32 = 64;

/// How requests follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// At a fixed interval, whether earlier requests were answered or not.
    Interval(Duration),
    /// As fast as the window allows: the next request follows when fewer than a window are unanswered, but never
    /// sooner than `least` after the last one. After `most` it is sent anyway, up to a limit.
    Flood {
        /// Minimum time between requests.
        least: Duration,
        /// Maximum wait for an answer.
        most: Duration,
    },
}

/// Parameters of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Payload sizes; each round sends one request of each.
    pub sizes: Vec<u32>,
    /// Rounds.
    pub count: u32,
    /// Schedule of requests.
    pub pace: Pace,
    /// Maximum number of unanswered requests; in a flood, requests kept in flight.
    pub window: u32,
    /// A request without a reply for this long is lost.
    pub timeout: Duration,
}

/// A request to send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Its number, from 0.
    pub number: u32,
    /// Bytes of its payload.
    pub size: u32,
}

/// Relation of an answer to its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// The first one, in time.
    First,
    /// The first one, after the timeout.
    Late,
    /// A further answer.
    Duplicate,
    /// An answer to no sent request.
    Unknown,
}

/// State of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Not answered yet.
    #[default]
    Waiting,
    /// Answered in time.
    Answered,
    /// Answered, but too late.
    Late,
    /// Not answered in time.
    Lost,
    /// It could not be sent, or an error reports that it cannot arrive.
    Failed,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    state: State,
}

/// The requests of one measurement.
///
/// Sizes alternate, so that changes of the path affect all of them alike.
#[derive(Debug)]
pub struct Plan {
    schedule: Schedule,
    total: u32,
    sent: Vec<Sent>,
    /// Unanswered requests, oldest first; some may have been answered.
    waiting: VecDeque<u32>,
    unanswered: u32,
    /// When the next request may be sent at the earliest, and when it is sent in any case.
    due: Instant,
    latest: Instant,
    stopped: bool,
}

impl Plan {
    /// Creates a plan that starts now.
    #[must_use]
    pub fn new(now: Instant, schedule: Schedule) -> Self {
        let total = (schedule.sizes.len() as u64 * u64::from(schedule.count)).min(u64::from(u32::MAX)) as u32;
        Self {
            total,
            sent: Vec::with_capacity(total as usize),
            waiting: VecDeque::with_capacity(schedule.window.min(total) as usize + 1),
            unanswered: 0,
            due: now,
            latest: now,
            stopped: false,
            schedule,
        }
    }

    /// Returns the total number of requests.
    #[must_use]
    pub const fn total(&self) -> u32 {
        self.total
    }

    /// Returns the request to send now, if any. The caller reports by [`sent`](Self::sent) when it was sent.
    pub fn poll_send(&mut self, now: Instant) -> Option<Probe> {
        let number = self.sent.len() as u32;
        if self.stopped || number >= self.total || now < self.due {
            return None;
        }
        if self.is_full() && (now < self.latest || self.is_beyond()) {
            return None;
        }
        let size = self.schedule.sizes[number as usize % self.schedule.sizes.len()];
        Some(Probe { number, size })
    }

    const fn is_full(&self) -> bool {
        self.unanswered > 0 && self.unanswered >= self.schedule.window
    }

    /// Whether even a flood must wait for answers or timeouts.
    const fn is_beyond(&self) -> bool {
        self.unanswered >= self.schedule.window.saturating_mul(MOST_WINDOWS)
    }

    /// Records when the next request was sent.
    pub fn sent(&mut self, at: Instant) {
        let number = self.sent.len() as u32;
        self.sent.push(Sent {
            at,
            state: State::Waiting,
        });
        self.waiting.push_back(number);
        self.unanswered += 1;
        match self.schedule.pace {
            Pace::Interval(interval) => {
                // Small delays are caught up with, large ones are not.
                self.due = (self.due + interval).max(at - interval.min(at - Instant::ZERO));
                self.latest = at + self.schedule.timeout;
            }
            Pace::Flood { least, most } => (self.due, self.latest) = (at + least, at + most),
        }
    }

    /// Handles an answer.
    pub fn handle_answer(&mut self, at: Instant, number: u32) -> Match {
        let timeout = self.schedule.timeout;
        let Some(sent) = self.sent.get_mut(number as usize) else {
            return Match::Unknown;
        };
        match sent.state {
            State::Waiting => {
                self.unanswered -= 1;
                let in_time = at - sent.at <= timeout;
                sent.state = if in_time { State::Answered } else { State::Late };
                self.forget();
                if in_time { Match::First } else { Match::Late }
            }
            State::Lost => {
                sent.state = State::Late;
                Match::Late
            }
            State::Answered | State::Late => Match::Duplicate,
            State::Failed => Match::Unknown,
        }
    }

    /// Handles a request that cannot be answered: it did not leave, or an error was reported.
    pub fn handle_failure(&mut self, number: u32) {
        if let Some(sent) = self.sent.get_mut(number as usize)
            && sent.state == State::Waiting
        {
            sent.state = State::Failed;
            self.unanswered -= 1;
            self.forget();
        }
    }

    /// Gives up requests that have timed out.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&number) = self.waiting.front() {
            let sent = &mut self.sent[number as usize];
            if sent.state == State::Waiting {
                if now - sent.at <= self.schedule.timeout {
                    break;
                }
                sent.state = State::Lost;
                self.unanswered -= 1;
            }
            self.waiting.pop_front();
        }
    }

    /// Drops answered requests from the front of the unanswered ones.
    fn forget(&mut self) {
        while let Some(&number) = self.waiting.front()
            && self.sent[number as usize].state != State::Waiting
        {
            self.waiting.pop_front();
        }
    }

    /// Returns when the next request or timeout is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let oldest = self.waiting.front().map(|&number| {
            // One nanosecond later the request has timed out.
            self.sent[number as usize].at + self.schedule.timeout + Duration::from_nanos(1)
        });
        let has_more = !self.stopped && (self.sent.len() as u32) < self.total;
        let next = match (self.is_full(), self.is_beyond()) {
            (true, true) => None,
            (true, false) => Some(self.due.max(self.latest)),
            _ => Some(self.due),
        };
        let next = next.filter(|_| has_more);
        [oldest, next].into_iter().flatten().min()
    }

    /// Stops sending.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Whether all requests are sent, and answered or given up.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        (self.stopped || self.sent.len() as u32 == self.total) && self.unanswered == 0
    }

    /// Returns the number of unanswered requests.
    #[must_use]
    pub const fn unanswered(&self) -> u32 {
        self.unanswered
    }

    /// Returns the oldest unanswered request.
    #[must_use]
    pub fn oldest(&self) -> Option<u32> {
        self.waiting.front().copied()
    }

    /// Returns the state of each request.
    pub fn states(&self) -> impl Iterator<Item = State> + '_ {
        self.sent.iter().map(|sent| sent.state)
    }

    /// Returns the latest request whose number has these low 16 bits, the size of ICMP's sequence number.
    #[must_use]
    pub fn latest_with(&self, low: u16) -> Option<u32> {
        let last = (self.sent.len() as u32).checked_sub(1)?;
        last.checked_sub(u32::from((last as u16).wrapping_sub(low)))
    }
}
