//! The drop-head queue: first in, first out, and the oldest make room for what arrives. A sender learns
//! of the drop up to a queue's delay earlier than with drop-tail (Lakshman, Neidhardt and Ott,
//! "The drop from front strategy in TCP and in TCP over ATM", INFOCOM 1996).

use std::collections::VecDeque;

use foundation::{Instant, Problem, Streams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::link::Count;
use crate::queue::QueueLimit;
use crate::queue::discipline::{Discipline, DisciplineConfig, Waiting};

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

    fn build<B: Send + 'static>(&self, _: Streams) -> Box<dyn Discipline<B>> {
        let (max_packets, max_bytes) = self.limit.packets_and_bytes();
        Box::new(Queue {
            max_packets,
            max_bytes,
            packets: VecDeque::new(),
            bytes: 0,
        })
    }
}

struct Queue<B> {
    max_packets: u64,
    max_bytes: u64,
    packets: VecDeque<Waiting<B>>,
    bytes: u64,
}

impl<B: Send> Discipline<B> for Queue<B> {
    fn enqueue(&mut self, _: Instant, arriving: Waiting<B>, sending: Count, dropped: &mut Vec<Waiting<B>>) {
        self.bytes += u64::from(arriving.packet.size);
        self.packets.push_back(arriving);
        while self.packets.len() as u64 + sending.packets > self.max_packets
            || self.bytes + sending.bytes > self.max_bytes
        {
            let Some(oldest) = self.packets.pop_front() else {
                return;
            };
            self.bytes -= u64::from(oldest.packet.size);
            dropped.push(oldest);
        }
    }

    fn dequeue(&mut self, _: Instant, _: &mut Vec<Waiting<B>>) -> Option<Waiting<B>> {
        let next = self.packets.pop_front()?;
        self.bytes -= u64::from(next.packet.size);
        Some(next)
    }

    fn waiting(&self) -> Count {
        Count {
            packets: self.packets.len() as u64,
            bytes: self.bytes,
        }
    }
}
