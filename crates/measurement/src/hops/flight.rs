//! Which probe is sent when, and which one an answer belongs to: no clock and no socket.

use std::collections::VecDeque;

use foundation::{Duration, Instant};

use super::Asked;

/// The most probes that may be on their way at a time.
pub const MOST_SLOTS: usize = 16;

/// A probe to send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its number, from 0.
    pub number: u32,
    /// Its slot, which tells it apart from others that are on their way.
    pub slot: usize,
    /// What it is to be.
    pub asked: Asked,
}

/// A probe that was not answered in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Which it was.
    pub sent: Sent,
}

#[derive(Clone, Copy, Debug, Default)]
enum Slot {
    #[default]
    Free,
    /// Somebody may still answer the probe that was here, without saying which one it was.
    Doubtful(Instant),
    Waiting(Sent, Instant),
}

/// Probes that are on their way, and those that are to follow.
///
/// An answer may quote too little of a probe to say its number (RFC 792 asks for eight bytes of payload alone, which are
/// UDP's header). Then it belongs to whatever waits in its slot; so a slot whose probe was given up stays empty for a
/// while, unless all answers so far said their numbers.
#[derive(Debug)]
pub struct Flight {
    interval: Duration,
    timeout: Duration,
    slots: Vec<Slot>,
    waiting: VecDeque<Asked>,
    next: u32,
    due: Instant,
    all_numbered: bool,
}

impl Flight {
    /// Nothing is asked yet. The window is at least 1 and at most [`MOST_SLOTS`].
    #[must_use]
    pub fn new(now: Instant, interval: Duration, timeout: Duration, window: usize) -> Self {
        Self {
            interval,
            timeout,
            slots: vec![Slot::Free; window.clamp(1, MOST_SLOTS)],
            waiting: VecDeque::new(),
            next: 0,
            due: now,
            all_numbered: true,
        }
    }

    /// Adds probes behind those that wait.
    pub fn ask(&mut self, probes: impl IntoIterator<Item = Asked>) {
        self.waiting.extend(probes);
    }

    /// Forgets probes that were not sent.
    pub fn stop(&mut self) {
        self.waiting.clear();
    }

    /// Whether nothing waits to be sent or answered.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && !self.slots.iter().any(|slot| matches!(slot, Slot::Waiting(..)))
    }

    /// The probe to send now, if one is.
    pub fn poll_send(&mut self, now: Instant) -> Option<Sent> {
        if now < self.due {
            return None;
        }
        let slot = self.slots.iter().position(|slot| match slot {
            Slot::Free => true,
            Slot::Doubtful(until) => *until <= now,
            Slot::Waiting(..) => false,
        })?;
        let asked = self.waiting.pop_front()?;
        let sent = Sent {
            number: self.next,
            slot,
            asked,
        };
        self.next = self.next.wrapping_add(1);
        self.slots[slot] = Slot::Waiting(sent, now + self.timeout);
        self.due = now + self.interval;
        Some(sent)
    }

    /// An answer came at a slot, from a probe with this number where it says one; gives what it is the answer to.
    ///
    /// What is late or of nobody is left aside. An echo's number may have lost its upper half: `mask` says which bits count.
    pub fn answered(&mut self, slot: usize, number: Option<u32>, mask: u32) -> Option<Sent> {
        self.all_numbered &= number.is_some();
        let slot = self.slots.get_mut(slot)?;
        match *slot {
            Slot::Waiting(sent, _) if number.is_none_or(|number| (number ^ sent.number) & mask == 0) => {
                *slot = Slot::Free;
                Some(sent)
            }
            _ => None,
        }
    }

    /// The slot of the probe with this number.
    #[must_use]
    pub fn slot_of(&self, number: u32, mask: u32) -> Option<usize> {
        self.slots
            .iter()
            .position(|slot| matches!(slot, Slot::Waiting(sent, _) if (sent.number ^ number) & mask == 0))
    }

    /// A probe that is given up now, if one is.
    pub fn poll_lost(&mut self, now: Instant) -> Option<Lost> {
        let doubt = if self.all_numbered {
            Duration::ZERO
        } else {
            self.timeout
        };
        self.slots.iter_mut().find_map(|slot| match *slot {
            Slot::Waiting(sent, until) if until <= now => {
                *slot = Slot::Doubtful(now + doubt);
                Some(Lost { sent })
            }
            _ => None,
        })
    }

    /// When there is something to do next; `None` while nothing waits.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let (mut next, mut free) = (None, None);
        for slot in &self.slots {
            let (at, earliest) = match slot {
                Slot::Free => (&mut free, Instant::ZERO),
                Slot::Doubtful(until) => (&mut free, *until),
                Slot::Waiting(_, until) => (&mut next, *until),
            };
            *at = Some(at.map_or(earliest, |known: Instant| known.min(earliest)));
        }
        if let Some(free) = free.filter(|_| !self.waiting.is_empty()) {
            let send = free.max(self.due);
            next = Some(next.map_or(send, |known: Instant| known.min(send)));
        }
        next
    }
}

#[cfg(test)]
#[path = "flight_tests.rs"]
mod tests;
