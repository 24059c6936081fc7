//! The drop-head queue: first in, first out, and the oldest make room for what arrives. A sender learns
//! of the drop up to a queue's delay earlier than with drop-tail (Lakshman, Neidhardt and Ott,
//! "The drop from front strategy in TCP and in TCP over ATM", INFOCOM 1996).

use foundation::{Instant, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fifo::{Bounds, Fifo};
use crate::link::Count;
use crate::queue::{Discipline, DisciplineConfig, Line, Place, QueueLimit, Verdicts, Waiting};

/// First in, first out; the oldest waiting packets make room for what arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropHead {
    /// How much it holds, the packet that is being sent included; default "1000pkt".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "QueueLimit")]
    pub limit: Option<QueueLimit>,
}

impl DisciplineConfig for DropHead {
    fn validate(&self) -> Vec<Problem> {
        QueueLimit::problems(self.limit)
    }

    fn build(&self, _: &Place) -> Box<dyn Discipline + Send> {
        Box::new(Queue {
            bounds: Bounds::new(self.limit.unwrap_or(Self::LIMIT)),
            fifo: Fifo::default(),
        })
    }
}

struct Queue {
    bounds: Bounds,
    fifo: Fifo,
}

impl Discipline for Queue {
    fn enqueue(&mut self, _: Instant, arriving: Waiting, line: &Line, verdicts: &mut dyn Verdicts) {
        if !self.bounds.admit(line.sending, arriving.size()) {
            // It would not fit if all others were gone, so they stay.
            return verdicts.drop(arriving);
        }
        while !self
            .bounds
            .admit(self.fifo.count() + line.sending, arriving.size())
        {
            let Some(oldest) = self.fifo.pop() else { break };
            verdicts.drop(oldest);
        }
        self.fifo.push(arriving);
    }

    fn dequeue(&mut self, _: Instant, _: &mut dyn Verdicts) -> Option<Waiting> {
        self.fifo.pop()
    }

    fn waiting(&self) -> Count {
        self.fifo.count()
    }
}
