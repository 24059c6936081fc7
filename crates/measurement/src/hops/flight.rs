//! Schedule of probes and matching of answers: no clock and no socket.

use std::collections::VecDeque;

use foundation::{Duration, Instant};

use super::ProbeSpec;

/// Maximum number of probes in flight.
pub const MOST_SLOTS: usize = 16;

/// A probe to send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentProbe {
    /// Its number, from 0.
    pub number: u32,
    /// Its slot, unique among the probes in flight.
    pub slot: usize,
    /// Its parameters.
    pub spec: ProbeSpec,
}

/// A probe without an answer in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostProbe {
    /// The probe.
    pub sent: SentProbe,
}

#[derive(Clone, Copy, Debug, Default)]
enum Slot {
    #[default]
    Free,
    /// The probe of this slot timed out, and a late answer without a number may still arrive.
    Doubtful(Instant),
    Waiting(SentProbe, Instant),
}

/// Probes in flight and probes to be sent.
///
/// An answer may quote too little of a probe to include its number (RFC 792 requires eight bytes of payload only,
/// which are UDP's header). Such an answer belongs to the probe in its slot. Therefore the slot of a lost probe stays
/// empty for a while, unless all answers so far included their numbers.
#[derive(Debug)]
pub struct Flight {
    interval: Duration,
    timeout: Duration,
    slots: Vec<Slot>,
    waiting: VecDeque<ProbeSpec>,
    next: u32,
    due: Instant,
    all_numbered: bool,
}

impl Flight {
    /// Creates an empty schedule. `window` is at least 1 and at most [`MOST_SLOTS`].
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

    /// Appends probes.
    pub fn enqueue(&mut self, probes: impl IntoIterator<Item = ProbeSpec>) {
        self.waiting.extend(probes);
    }

    /// Discards probes that were not sent.
    pub fn stop(&mut self) {
        self.waiting.clear();
    }

    /// Whether no probe is queued or in flight.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && !self.slots.iter().any(|slot| matches!(slot, Slot::Waiting(..)))
    }

    /// Returns the probe to send now, if any.
    pub fn poll_send(&mut self, now: Instant) -> Option<SentProbe> {
        if now < self.due {
            return None;
        }
        let slot = self.slots.iter().position(|slot| match slot {
            Slot::Free => true,
            Slot::Doubtful(until) => *until <= now,
            Slot::Waiting(..) => false,
        })?;
        let spec = self.waiting.pop_front()?;
        let sent = SentProbe {
            number: self.next,
            slot,
            spec,
        };
        self.next = self.next.wrapping_add(1);
        self.slots[slot] = Slot::Waiting(sent, now + self.timeout);
        self.due = now + self.interval;
        Some(sent)
    }

    /// Handles an answer for a slot, with the probe's number if it is included; returns the answered probe.
    ///
    /// Late and foreign answers are ignored. An echo may include only a part of the number: `mask` selects the valid
    /// bits.
    pub fn answered(&mut self, slot: usize, number: Option<u32>, mask: u32) -> Option<SentProbe> {
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

    /// Returns the slot of the probe with this number.
    #[must_use]
    pub fn slot_of(&self, number: u32, mask: u32) -> Option<usize> {
        self.slots
            .iter()
            .position(|slot| matches!(slot, Slot::Waiting(sent, _) if (sent.number ^ number) & mask == 0))
    }

    /// Returns a probe that times out now, if any.
    pub fn poll_lost(&mut self, now: Instant) -> Option<LostProbe> {
        let doubt = if self.all_numbered {
            Duration::ZERO
        } else {
            self.timeout
        };
        self.slots.iter_mut().find_map(|slot| match *slot {
            Slot::Waiting(sent, until) if until <= now => {
                *slot = Slot::Doubtful(now + doubt);
                Some(LostProbe { sent })
            }
            _ => None,
        })
    }

    /// Returns when there is something to do next; `None` while nothing is queued or in flight.
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
