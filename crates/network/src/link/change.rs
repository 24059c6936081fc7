//! Changes of a link while packets are on it.

use foundation::Streams;
use thiserror::Error;

use super::active_queue::ActiveQueue;
use super::link_rate::LinkRate;
use super::{Link, Queue};
use crate::config::LinkSpec;
use crate::impairment::Impairments;
use crate::queue::drop_tail::DropTail;
use crate::queue::{QueueConfig, QueueContext};

/// The queue discipline cannot change while packets wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the queue is not empty: its kind and settings can change only while no packet waits or is being sent"
)]
pub struct QueueInUse;

/// The specification of a link and the source of random streams for its changes.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    spec: LinkSpec,
    streams: Streams,
    /// Number of changes so far.
    changes: u64,
}

impl Origin {
    pub(super) const fn new(spec: LinkSpec, streams: Streams) -> Self {
        Self {
            spec,
            streams,
            changes: 0,
        }
    }

    pub(super) const fn spec(&self) -> &LinkSpec {
        &self.spec
    }
}

impl Link {
    /// Applies `spec` at `now`. Packets already accepted leave as scheduled, and later packets stay behind them. Changed
    /// random impairments draw from new streams for each change.
    pub(crate) fn change(&mut self, now: u64, spec: &LinkSpec) -> Result<(), QueueInUse> {
        let before = self.origin.spec.clone();
        let changes = self.origin.changes + 1;
        let streams = self.origin.streams.component(&format!("change/{changes}"));
        self.change_queue(now, &before, spec, streams)?;
        if before.capacity != spec.capacity {
            let busy = match &self.queue {
                Queue::DropTail(queue) => queue.busy_until(),
                Queue::Active(queue) => queue.busy_until(),
            };
            self.rate = LinkRate::after(&spec.capacity, busy);
        }
        self.impairments = Impairments::changed(self.impairments.take(), &before, spec, streams);
        self.wire.delay = spec.delay.as_nanos();
        self.mtu = spec.mtu.unwrap_or(u32::MAX);
        self.origin.spec = spec.clone();
        self.origin.changes = changes;
        Ok(())
    }

    fn change_queue(
        &mut self,
        now: u64,
        before: &LinkSpec,
        spec: &LinkSpec,
        streams: Streams,
    ) -> Result<(), QueueInUse> {
        if before.queue == spec.queue {
            return Ok(());
        }
        if let (Queue::DropTail(queue), QueueConfig::DropTail(_)) = (&mut self.queue, &spec.queue) {
            queue.set_limit(spec.queue.limit());
            return Ok(());
        }
        if self.length(now).packets > 0 {
            return Err(QueueInUse);
        }
        let context = QueueContext {
            rate: spec.capacity.mean_rate(),
            streams,
        };
        self.queue = Queue::new(&spec.queue, &context);
        Ok(())
    }
}

impl Queue {
    pub(super) fn new(config: &QueueConfig, context: &QueueContext) -> Self {
        match config.discipline(context) {
            Some(discipline) => Self::Active(Box::new(ActiveQueue::new(discipline))),
            None => Self::DropTail(DropTail::new(config.limit())),
        }
    }
}
