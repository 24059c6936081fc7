//! A link that is changed while packets are on it.

use foundation::Streams;
use thiserror::Error;

use super::held::Held;
use super::pace::Pace;
use super::{Link, Queue};
use crate::config::LinkSpec;
use crate::impairment::Impairments;
use crate::queue::drop_tail::DropTail;
use crate::queue::{Place, QueueConfig};

/// A queue of another kind has nowhere to put the packets that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "packets wait in the queue or are being sent: one of another kind takes its place only while it is empty"
)]
pub struct QueueInUse;

/// What a link was asked to be, for who changes it.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    spec: LinkSpec,
    streams: Streams,
    /// How often it was changed.
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
    /// Makes the link what `spec` says from `now` on. What has been given to it leaves as it would have; packets that
    /// come after keep behind those. What is asked by chance and has changed draws from streams of its own for each change.
    pub(crate) fn change(&mut self, now: u64, spec: &LinkSpec) -> Result<(), QueueInUse> {
        let before = self.origin.spec.clone();
        let changes = self.origin.changes + 1;
        let streams = self.origin.streams.component(&format!("change/{changes}"));
        self.change_queue(now, &before, spec, streams)?;
        if before.capacity != spec.capacity {
            let busy = match &self.queue {
                Queue::DropTail(queue) => queue.busy_until(),
                Queue::Held(held) => held.busy_until(),
            };
            self.pace = Pace::after(&spec.capacity, busy);
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
        if let (Queue::DropTail(queue), QueueConfig::DropTail(config)) = (&mut self.queue, &spec.queue) {
            queue.set_limit(config.limit());
            return Ok(());
        }
        if self.length(now).packets > 0 {
            return Err(QueueInUse);
        }
        let place = Place {
            rate: spec.capacity.mean_rate(),
            streams,
        };
        self.queue = Queue::new(&spec.queue, &place);
        Ok(())
    }
}

impl Queue {
    pub(super) fn new(config: &QueueConfig, place: &Place) -> Self {
        match config.discipline(place) {
            Ok(discipline) => Self::Held(Box::new(Held::new(discipline))),
            Err(config) => Self::DropTail(DropTail::new(config.limit())),
        }
    }
}
