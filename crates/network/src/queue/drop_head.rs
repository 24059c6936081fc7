//! The drop-head queue: first in, first out, and the oldest make room for what arrives. A sender learns
//! of the drop up to a queue's delay earlier than with drop-tail (Lakshman, Neidhardt and Ott,
//! "The drop from front strategy in TCP and in TCP over ATM", INFOCOM 1996).

use std::collections::VecDeque;

use foundation::{Instant, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::link::Count;
use crate::queue::{Discipline, DisciplineConfig, Line, Place, QueueLimit, Verdicts, Waiting};

/// First in, first out; the oldest waiting packets make room for what arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropHead {
    /// How much it holds, the packet that is being sent included; default "1000pkt".
    #[serde(default)]
    pub limit: QueueLimit,
}

impl DisciplineConfig for DropHead {
    fn validate(&self) -> Vec<Problem> {
        let within = |problem: Problem| problem.within("limit");
        self.limit.validate().into_iter().map(within).collect()
    }

    fn build(&self, _: &Place) -> Box<dyn Discipline + Send> {
        let (max_packets, max_bytes) = self.limit.packets_and_bytes();
        Box::new(Queue {
            max_packets,
            max_bytes,
            packets: VecDeque::new(),
            bytes: 0,
        })
    }
}

struct Queue {
    max_packets: u64,
    max_bytes: u64,
    packets: VecDeque<Waiting>,
    bytes: u64,
}

impl Discipline for Queue {
    fn enqueue(&mut self, _: Instant, arriving: Waiting, line: &Line, verdicts: &mut dyn Verdicts) {
        let room = Count {
            packets: self.max_packets.saturating_sub(line.sending.packets),
            bytes: self.max_bytes.saturating_sub(line.sending.bytes),
        };
        let size = u64::from(arriving.size());
        if room.packets == 0 || size > room.bytes {
            // It would not fit if all others were gone, so they stay.
            verdicts.drop(arriving);
            return;
        }
        while self.packets.len() as u64 >= room.packets || self.bytes + size > room.bytes {
            let Some(oldest) = self.packets.pop_front() else {
                break;
            };
            self.bytes -= u64::from(oldest.size());
            verdicts.drop(oldest);
        }
        self.bytes += size;
        self.packets.push_back(arriving);
    }

    fn dequeue(&mut self, _: Instant, _: &mut dyn Verdicts) -> Option<Waiting> {
        let next = self.packets.pop_front()?;
        self.bytes -= u64::from(next.size());
        Some(next)
    }

    fn waiting(&self) -> Count {
        Count {
            packets: self.packets.len() as u64,
            bytes: self.bytes,
        }
    }
}
