//! Which request is sent when, and which one an answer belongs to: no clock and no socket.

use std::collections::VecDeque;

use foundation::{Duration, Instant};

/// So many windows a flood leaves unanswered at the most.
const MOST_WINDOWS: u32 = 64;

/// How requests follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// One every so often, whether the one before was answered or not.
    Interval(Duration),
    /// The next one as soon as no more than the window is unanswered, but never sooner than `least` after the one before,
    /// and after `most` in any case, which a full window alone puts off.
    Flood {
        /// The bound of the rate.
        least: Duration,
        /// So long an answer is waited for.
        most: Duration,
    },
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Sizes, each of which is asked in every round.
    pub sizes: Vec<u32>,
    /// Rounds.
    pub count: u32,
    /// How requests follow each other.
    pub pace: Pace,
    /// How many may be unanswered at a time; in a flood, how many are kept on their way.
    pub window: u32,
    /// What is not answered for so long is lost.
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

/// What an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// The first one to its request, in time.
    First,
    /// The first one, after its request was given up.
    Late,
    /// Another one to an answered request.
    Duplicate,
    /// To no request that was sent.
    Unknown,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not answered yet.
    Waiting,
    /// Answered in time.
    Answered,
    /// Answered, but too late.
    Late,
    /// Not answered in time.
    Lost,
    /// It could not be sent, or somebody says that it cannot arrive.
    Failed,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    state: State,
}

/// The requests of one measurement.
///
/// Sizes take turns, so that whatever changes meanwhile changes all of them alike.
#[derive(Debug)]
pub struct Plan {
    asked: Asked,
    total: u32,
    sent: Vec<Sent>,
    /// Those that are waited for, oldest first; some may have been answered.
    waiting: VecDeque<u32>,
    unanswered: u32,
    /// When the next request may be sent at the earliest, and when it is sent in any case.
    due: Instant,
    latest: Instant,
    stopped: bool,
}

impl Plan {
    /// The plan of what is asked, beginning now.
    #[must_use]
    pub fn new(now: Instant, asked: Asked) -> Self {
        let total = (asked.sizes.len() as u64 * u64::from(asked.count)).min(u64::from(u32::MAX)) as u32;
        Self {
            total,
            sent: Vec::with_capacity(total as usize),
            waiting: VecDeque::with_capacity(asked.window.min(total) as usize + 1),
            unanswered: 0,
            due: now,
            latest: now,
            stopped: false,
            asked,
        }
    }

    /// How many requests there will have been.
    #[must_use]
    pub const fn total(&self) -> u32 {
        self.total
    }

    /// The request that is to be sent now, if one is. The caller says by [`sent`](Self::sent) when it was.
    pub fn poll_send(&mut self, now: Instant) -> Option<Probe> {
        let number = self.sent.len() as u32;
        if self.stopped || number >= self.total || now < self.due {
            return None;
        }
        if self.is_full() && (now < self.latest || self.is_beyond()) {
            return None;
        }
        let size = self.asked.sizes[number as usize % self.asked.sizes.len()];
        Some(Probe { number, size })
    }

    const fn is_full(&self) -> bool {
        self.unanswered > 0 && self.unanswered >= self.asked.window
    }

    /// Whether even the patience of a flood is at its end: answers must come, or requests be given up.
    const fn is_beyond(&self) -> bool {
        self.unanswered >= self.asked.window.saturating_mul(MOST_WINDOWS)
    }

    /// The next request was sent at this time.
    pub fn sent(&mut self, at: Instant) {
        let number = self.sent.len() as u32;
        self.sent.push(Sent {
            at,
            state: State::Waiting,
        });
        self.waiting.push_back(number);
        self.unanswered += 1;
        match self.asked.pace {
            Pace::Interval(interval) => {
                // A moment's delay is made up for, a long one is not.
                self.due = (self.due + interval).max(at - interval.min(at - Instant::ZERO));
                self.latest = at + self.asked.timeout;
            }
            Pace::Flood { least, most } => (self.due, self.latest) = (at + least, at + most),
        }
    }

    /// An answer to a request came at this time.
    pub fn handle_answer(&mut self, at: Instant, number: u32) -> Match {
        let timeout = self.asked.timeout;
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

    /// A request will not be answered: it did not leave, or somebody says so.
    pub fn handle_failure(&mut self, number: u32) {
        if let Some(sent) = self.sent.get_mut(number as usize)
            && sent.state == State::Waiting
        {
            sent.state = State::Failed;
            self.unanswered -= 1;
            self.forget();
        }
    }

    /// Gives up what has waited too long.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&number) = self.waiting.front() {
            let sent = &mut self.sent[number as usize];
            if sent.state == State::Waiting {
                if now - sent.at <= self.asked.timeout {
                    break;
                }
                sent.state = State::Lost;
                self.unanswered -= 1;
            }
            self.waiting.pop_front();
        }
    }

    /// Takes answered requests off the front of those that are waited for.
    fn forget(&mut self) {
        while let Some(&number) = self.waiting.front()
            && self.sent[number as usize].state != State::Waiting
        {
            self.waiting.pop_front();
        }
    }

    /// When there is something to do again, unless an answer comes: a request to send or to give up.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let oldest = self.waiting.front().map(|&number| {
            // One nanosecond later it has waited too long.
            self.sent[number as usize].at + self.asked.timeout + Duration::from_nanos(1)
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

    /// Sends nothing more.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Whether all has been sent, and answered or given up.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        (self.stopped || self.sent.len() as u32 == self.total) && self.unanswered == 0
    }

    /// The requests that are not answered yet.
    #[must_use]
    pub const fn unanswered(&self) -> u32 {
        self.unanswered
    }

    /// The oldest request that is not answered yet.
    #[must_use]
    pub fn oldest(&self) -> Option<u32> {
        self.waiting.front().copied()
    }

    /// What became of each request.
    pub fn states(&self) -> impl Iterator<Item = State> + '_ {
        self.sent.iter().map(|sent| sent.state)
    }

    /// The latest request whose number ends with these 16 bits: those of ICMP have no more.
    #[must_use]
    pub fn latest_with(&self, low: u16) -> Option<u32> {
        let last = (self.sent.len() as u32).checked_sub(1)?;
        last.checked_sub(u32::from((last as u16).wrapping_sub(low)))
    }
}
