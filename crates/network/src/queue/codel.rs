//! CoDel, controlled delay: once the queueing delay has exceeded a target for an interval, packets are dropped at an
//! increasing rate until the delay is below the target (Nichols and Jacobson, "Controlling Queue Delay", ACM Queue 2012;
//! RFC 8289).

use foundation::{Duration, Instant, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::discipline::limit_key;
use super::fifo::{Bounds, Fifo};
use crate::link::Count;
use crate::queue::{
    Discipline, DisciplineConfig, QueueActions, QueueContext, QueueLimit, QueuedLink, QueuedPacket,
    Transmitter,
};

/// CoDel: drops packets at dequeue, at an increasing rate while the queueing delay exceeds the target (RFC 8289).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CoDel {
    /// Limit in packets or bytes, the packet in transmission included; default "1000pkt".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<QueueLimit>,
    /// Acceptable standing queueing delay; above "0s", at most interval; default "5ms" (RFC 8289, section 4.3).
    pub target: Duration,
    /// Time above the target before the first drop, about the largest round-trip time; above "0s"; default "100ms" (RFC 8289, section 4.4).
    pub interval: Duration,
    /// Marking of ECN-capable packets instead of dropping; default false.
    pub ecn: bool,
    /// Delay above which every ECN-capable packet is marked, whatever the control law decides; at most the delay of a full queue; default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ce_threshold: Option<Duration>,
}

impl Default for CoDel {
    /// RFC 8289, sections 4.3 and 4.4.
    fn default() -> Self {
        Self {
            limit: None,
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            ecn: false,
            ce_threshold: None,
        }
    }
}

impl DisciplineConfig for CoDel {
    limit_key!();

    fn validate(&self) -> Vec<Problem> {
        let mut problems = QueueLimit::problems(self.limit);
        problems.extend(self.law().validate());
        problems
    }

    fn validate_on(&self, link: &QueuedLink) -> Vec<Problem> {
        self.law().validate_on(link, self.limit())
    }

    fn build(&self, _: &QueueContext) -> Option<Box<dyn Discipline + Send>> {
        Some(Box::new(Queue {
            bounds: Bounds::new(self.limit()),
            law: self.law(),
            fifo: Fifo::default(),
            state: CoDelState::default(),
            largest: 0,
        }))
    }
}

impl CoDel {
    const fn law(&self) -> ControlLaw {
        ControlLaw {
            target: self.target,
            interval: self.interval,
            ecn: self.ecn,
            ce_threshold: self.ce_threshold,
            ect1_only: false,
        }
    }
}

/// The parameters of the control law.
#[derive(Clone, Copy, Debug)]
pub(super) struct ControlLaw {
    pub(super) target: Duration,
    pub(super) interval: Duration,
    pub(super) ecn: bool,
    /// Delay above which packets are marked: all ECN-capable ones, or those with ECT(1).
    pub(super) ce_threshold: Option<Duration>,
    pub(super) ect1_only: bool,
}

impl ControlLaw {
    /// Returns all values out of range.
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
                    "\"{}\" is out of range: at most interval = \"{}\"",
                    self.target, self.interval
                ),
            ));
        }
        problems
    }

    /// Returns a problem if no packet can wait longer than the threshold of marks.
    pub(super) fn validate_on(&self, link: &QueuedLink, limit: QueueLimit) -> Vec<Problem> {
        const KEY: &str = "ce_threshold";
        let problem = self.ce_threshold.and_then(|threshold| match link.rate {
            Some(_) => link.threshold_problem(KEY, threshold, limit),
            None => Some(Problem::new(
                KEY,
                "requires a link with a rate: set rate, trace, cell or wifi",
            )),
        });
        problem.into_iter().collect()
    }

    /// Returns the time of the next drop after `last`, `count` drops into a dropping phase. The drop rate that reduces TCP
    /// throughput linearly grows with the square root of the number of drops (RFC 8289, section 4.1).
    pub(super) fn next_drop(&self, last: u64, count: u32) -> u64 {
        last.saturating_add((self.interval.as_nanos() as f64 / f64::from(count.max(1)).sqrt()) as u64)
    }
}

/// The state of one queue (RFC 8289, section 5.4).
#[derive(Debug, Default)]
pub(super) struct CoDelState {
    /// Time at which the delay has exceeded the target for an interval; `None` while it is below.
    first_above: Option<u64>,
    dropping: bool,
    drop_next: u64,
    /// Packets dropped in this phase, and in the one before.
    count: u32,
    last_count: u32,
}

impl CoDelState {
    /// Returns the next packet to send, marked if its delay exceeds the threshold. `largest` is the size of the largest
    /// packet so far.
    pub(super) fn dequeue(
        &mut self,
        now: u64,
        law: &ControlLaw,
        largest: u32,
        fifo: &mut Fifo,
        actions: &mut dyn QueueActions,
    ) -> Option<QueuedPacket> {
        let packet = self.select(now, law, largest, fifo, actions)?;
        if let Some(threshold) = law.ce_threshold
            && now - packet.since.as_nanos() > threshold.as_nanos()
            && (!law.ect1_only || actions.ecn(&packet).is_scalable())
        {
            actions.mark(&packet);
        }
        Some(packet)
    }

    /// Returns the packet that the control law leaves (RFC 8289, section 5.5).
    fn select(
        &mut self,
        now: u64,
        law: &ControlLaw,
        largest: u32,
        fifo: &mut Fifo,
        actions: &mut dyn QueueActions,
    ) -> Option<QueuedPacket> {
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
                if law.ecn && actions.mark(&packet) {
                    self.drop_next = law.next_drop(self.drop_next, self.count);
                    return Some(packet);
                }
                actions.drop(packet);
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
            let kept = if law.ecn && actions.mark(&packet) {
                Some(packet)
            } else {
                actions.drop(packet);
                self.take(now, law, largest, fifo).map(|(packet, _)| packet)
            };
            self.start_dropping(now, law);
            return kept;
        }
        Some(packet)
    }

    /// Starts a dropping phase, at the previous drop rate if the last phase was recent (RFC 8289, section 5.5).
    fn start_dropping(&mut self, now: u64, law: &ControlLaw) {
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now.saturating_sub(self.drop_next) < 16 * law.interval.as_nanos();
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.dropping = true;
        self.drop_next = law.next_drop(now, self.count);
        self.last_count = self.count;
    }

    /// Returns the first packet, and whether the delay has exceeded the target for an interval. A queue of a single packet
    /// is never too long, however slow the link.
    fn take(
        &mut self,
        now: u64,
        law: &ControlLaw,
        largest: u32,
        fifo: &mut Fifo,
    ) -> Option<(QueuedPacket, bool)> {
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
    law: ControlLaw,
    fifo: Fifo,
    state: CoDelState,
    largest: u32,
}

impl Discipline for Queue {
    fn enqueue(
        &mut self,
        _: Instant,
        arriving: QueuedPacket,
        transmitter: &Transmitter,
        actions: &mut dyn QueueActions,
    ) {
        if !self
            .bounds
            .admit(self.fifo.count() + transmitter.sending, arriving.size())
        {
            return actions.drop(arriving);
        }
        self.largest = self.largest.max(arriving.size());
        self.fifo.push(arriving);
    }

    fn dequeue(&mut self, now: Instant, actions: &mut dyn QueueActions) -> Option<QueuedPacket> {
        self.state
            .dequeue(now.as_nanos(), &self.law, self.largest, &mut self.fifo, actions)
    }

    fn waiting(&self) -> Count {
        self.fifo.count()
    }
}
