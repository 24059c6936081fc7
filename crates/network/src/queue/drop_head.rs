//! The drop-head queue: first in, first out; a full queue drops its oldest packets. The sender detects
//! the loss up to one queueing delay earlier than with drop-tail (Lakshman, Neidhardt and Ott,
//! "The drop from front strategy in TCP and in TCP over ATM", INFOCOM 1996).

use foundation::{Instant, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::discipline::limit_key;
use super::fifo::{Bounds, Fifo};
use crate::link::Count;
use crate::queue::{
    Discipline, DisciplineConfig, QueueActions, QueueContext, QueueLimit, QueuedPacket, Transmitter,
};

/// Drop-head: a full queue drops its oldest packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropHead {
    /// Limit in packets or bytes, the packet in transmission included; default "1000pkt".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<QueueLimit>,
}

impl DisciplineConfig for DropHead {
    limit_key!();

    fn validate(&self) -> Vec<Problem> {
        QueueLimit::problems(self.limit)
    }

    fn build(&self, _: &QueueContext) -> Option<Box<dyn Discipline + Send>> {
        Some(Box::new(Queue {
            bounds: Bounds::new(self.limit()),
            fifo: Fifo::default(),
        }))
    }
}

struct Queue {
    bounds: Bounds,
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
        if !self.bounds.admit(transmitter.sending, arriving.size()) {
            // It would not fit even into an empty queue, so the others stay.
            return actions.drop(arriving);
        }
        while !self
            .bounds
            .admit(self.fifo.count() + transmitter.sending, arriving.size())
        {
            let Some(oldest) = self.fifo.pop() else { break };
            actions.drop(oldest);
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
