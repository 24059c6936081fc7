//! CoDel, controlled delay: packets that have waited above a target for an interval are dropped one by one, ever faster
//! until the wait is below it again (Nichols and Jacobson, "Controlling Queue Delay", ACM Queue 2012; RFC 8289).

use foundation::{Duration, Instant, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fifo::{Bounds, Fifo};
use crate::link::Count;
use crate::queue::{Discipline, DisciplineConfig, Line, Place, QueueLimit, Verdicts, Waiting};

/// Controlled delay: packets are dropped as they leave, ever faster while they have waited too long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CoDel {
    /// How much it holds, the packet that is being sent included; default "1000pkt".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "QueueLimit")]
    pub limit: Option<QueueLimit>,
    /// Wait that is accepted as standing; default "5ms".
    pub target: Duration,
    /// How long packets wait above the target until the first is dropped, about the longest round-trip time; default "100ms".
    pub interval: Duration,
    /// Marks packets of ECN-capable transports instead of dropping them; default false.
    pub ecn: bool,
}

impl Default for CoDel {
    /// RFC 8289, sections 4.3 and 4.4.
    fn default() -> Self {
        Self {
            limit: None,
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            ecn: false,
        }
    }
}

impl DisciplineConfig for CoDel {
    fn validate(&self) -> Vec<Problem> {
        let mut problems = QueueLimit::problems(self.limit);
        problems.extend(self.law().validate());
        problems
    }

    fn build(&self, _: &Place) -> Box<dyn Discipline + Send> {
        Box::new(Queue {
            bounds: Bounds::new(self.limit.unwrap_or(Self::LIMIT)),
            law: self.law(),
            fifo: Fifo::default(),
            control: Control::default(),
            largest: 0,
        })
    }
}

impl CoDel {
    const fn law(&self) -> Law {
        Law {
            target: self.target,
            interval: self.interval,
            ecn: self.ecn,
        }
    }
}

/// The figures of the control law.
#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    pub(super) target: Duration,
    pub(super) interval: Duration,
    pub(super) ecn: bool,
}

impl Law {
    /// What is out of range.
    pub(super) fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (key, span) in [("target", self.target), ("interval", self.interval)] {
            if span.is_zero() {
                problems.push(Problem::new(key, format!("\"{span}\" is out of range: above 0")));
            }
        }
        if self.target > self.interval {
            problems.push(Problem::new(
                "target",
                format!(
                    "\"{}\" is out of range: at most the interval, which is \"{}\"",
                    self.target, self.interval
                ),
            ));
        }
        problems
    }

    /// When the next packet is dropped after `last`, `count` packets into a row of drops (RFC 8289, section 4.1: the rate
    /// of drops that makes a TCP's throughput fall in a straight line grows with the root of their number).
    fn next_drop(&self, last: u64, count: u32) -> u64 {
        last.saturating_add((self.interval.as_nanos() as f64 / f64::from(count.max(1)).sqrt()) as u64)
    }
}

/// One queue's state (RFC 8289, section 5.4).
#[derive(Debug, Default)]
pub(super) struct Control {
    /// When the wait will have been above the target for an interval; `None` while it is below.
    first_above: Option<u64>,
    dropping: bool,
    drop_next: u64,
    /// Packets dropped in this row, and in the one before.
    count: u32,
    last_count: u32,
}

impl Control {
    /// The next packet to send (RFC 8289, section 5.5). `largest` is the size of the largest packet seen.
    pub(super) fn dequeue(
        &mut self,
        now: u64,
        law: &Law,
        largest: u32,
        fifo: &mut Fifo,
        verdicts: &mut dyn Verdicts,
    ) -> Option<Waiting> {
        let Some((mut packet, mut above)) = self.take(now, law, largest, fifo) else {
            self.dropping = false;
            return None;
        };
        if self.dropping {
            if !above {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                if law.ecn && verdicts.mark(&packet) {
                    self.drop_next = law.next_drop(self.drop_next, self.count);
                    return Some(packet);
                }
                verdicts.drop(packet);
                let Some(next) = self.take(now, law, largest, fifo) else {
                    self.dropping = false;
                    return None;
                };
                (packet, above) = next;
                if above {
                    self.drop_next = law.next_drop(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if above {
            let kept = if law.ecn && verdicts.mark(&packet) {
                Some(packet)
            } else {
                verdicts.drop(packet);
                self.take(now, law, largest, fifo).map(|(packet, _)| packet)
            };
            self.begin_row(now, law);
            return kept;
        }
        Some(packet)
    }

    /// Begins a row of drops: at the rate that was right before, where that is not long ago (RFC 8289, section 5.5).
    fn begin_row(&mut self, now: u64, law: &Law) {
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now.saturating_sub(self.drop_next) < 16 * law.interval.as_nanos();
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.dropping = true;
        self.drop_next = law.next_drop(now, self.count);
        self.last_count = self.count;
    }

    /// The first packet, and whether the wait has been above the target for an interval. A queue of a single packet
    /// is never too long, however slow the link.
    fn take(&mut self, now: u64, law: &Law, largest: u32, fifo: &mut Fifo) -> Option<(Waiting, bool)> {
        let Some(packet) = fifo.pop() else {
            self.first_above = None;
            return None;
        };
        let wait = now - packet.since.as_nanos();
        if wait < law.target.as_nanos() || fifo.count().bytes <= u64::from(largest) {
            self.first_above = None;
            return Some((packet, false));
        }
        let first_above = *self
            .first_above
            .get_or_insert(now.saturating_add(law.interval.as_nanos()));
        Some((packet, now >= first_above))
    }
}

struct Queue {
    bounds: Bounds,
    law: Law,
    fifo: Fifo,
    control: Control,
    largest: u32,
}

impl Discipline for Queue {
    fn enqueue(&mut self, _: Instant, arriving: Waiting, line: &Line, verdicts: &mut dyn Verdicts) {
        if !self
            .bounds
            .admit(self.fifo.count() + line.sending, arriving.size())
        {
            return verdicts.drop(arriving);
        }
        self.largest = self.largest.max(arriving.size());
        self.fifo.push(arriving);
    }

    fn dequeue(&mut self, now: Instant, verdicts: &mut dyn Verdicts) -> Option<Waiting> {
        self.control
            .dequeue(now.as_nanos(), &self.law, self.largest, &mut self.fifo, verdicts)
    }

    fn waiting(&self) -> Count {
        self.fifo.count()
    }
}
