//! Step marking: drop-tail that marks ECN-capable packets above a threshold, as switches do for DCTCP (Alizadeh et al., "Data
//! Center TCP (DCTCP)", SIGCOMM 2010, section 3.1; RFC 8257, section 3.1).

use foundation::{Instant, Problem, omit_unset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::discipline::limit_key;
use super::fifo::{Bounds, Fifo};
use crate::link::Count;
use crate::queue::{
    Discipline, DisciplineConfig, QueueActions, QueueContext, QueueLimit, QueuedPacket, Transmitter,
};

omit_unset! {
    /// Step: drop-tail that marks arriving ECN-capable packets while the queue is longer than a threshold (DCTCP, SIGCOMM 2010).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct Step {
        /// Limit in packets or bytes, the packet in transmission included; default "1000pkt".
        pub limit: Option<QueueLimit>,
        /// Queue length above which arriving ECN-capable packets are marked (K), the arriving packet and the one in transmission included; at least "1pkt" or "1B", below limit; default "65pkt" (SIGCOMM 2010, for 10 Gbit/s), or half of a limit below 130 packets.
        pub threshold: Option<QueueLimit>,
    }
}

/// Packets. SIGCOMM 2010, section 3.5: 65 at 10 Gbit/s, 20 at 1 Gbit/s.
const THRESHOLD: u64 = 65;

/// Returns whether no queue within `limit` exceeds `threshold`. Packets and bytes are not comparable.
fn is_out_of_reach(threshold: QueueLimit, limit: QueueLimit) -> bool {
    match (threshold, limit) {
        (QueueLimit::Packets(threshold), QueueLimit::Packets(limit)) => threshold >= limit,
        (QueueLimit::Bytes(threshold), QueueLimit::Bytes(limit)) => threshold >= limit,
        _ => false,
    }
}

impl Step {
    fn threshold(&self) -> QueueLimit {
        let fitting = match self.limit() {
            QueueLimit::Packets(limit) => limit / 2,
            QueueLimit::Bytes(_) => u64::MAX,
        };
        let default = QueueLimit::Packets(THRESHOLD.min(fitting));
        self.threshold.unwrap_or(default)
    }
}

impl DisciplineConfig for Step {
    limit_key!();

    fn validate(&self) -> Vec<Problem> {
        let mut problems = QueueLimit::problems(self.limit);
        let Some(threshold) = self.threshold else {
            return problems;
        };
        let (limit, least) = (self.limit(), threshold.packets_and_bytes());
        if least.0 == 0 || least.1 == 0 {
            let message = format!("\"{threshold}\" is out of range: at least \"1pkt\" or \"1B\"");
            problems.push(Problem::new("threshold", message));
        } else if problems.is_empty() && is_out_of_reach(threshold, limit) {
            let message = format!("\"{threshold}\" is out of range: below limit = \"{limit}\"");
            problems.push(Problem::new("threshold", message));
        }
        problems
    }

    fn build(&self, _: &QueueContext) -> Option<Box<dyn Discipline + Send>> {
        Some(Box::new(Queue {
            bounds: Bounds::new(self.limit()),
            unmarked: Bounds::new(self.threshold()),
            fifo: Fifo::default(),
        }))
    }
}

struct Queue {
    bounds: Bounds,
    /// Queue lengths at which packets join without a mark.
    unmarked: Bounds,
    fifo: Fifo,
}

impl Discipline for Queue {
    fn enqueue(
        &mut self,
        _: Instant,
        arriving: QueuedPacket,
        transmitter: &Transmitter,
        actions: &mut dyn QueueActions,
    ) {
        let length = self.fifo.count() + transmitter.sending;
        if !self.bounds.admit(length, arriving.size()) {
            return actions.drop(arriving);
        }
        if !self.unmarked.admit(length, arriving.size()) {
            // Packets that are not ECN-capable join without a mark.
            actions.mark(&arriving);
        }
        self.fifo.push(arriving);
    }

    fn dequeue(&mut self, _: Instant, _: &mut dyn QueueActions) -> Option<QueuedPacket> {
        self.fifo.pop()
    }

    fn waiting(&self) -> Count {
        self.fifo.count()
    }
}
