//! Resolved link specifications, from which a network is built.

use std::sync::Arc;

use foundation::{Duration, Probability, Rate};

use crate::config::Outage;
use crate::impairment::{JitterConfig, LossConfig, ReorderConfig};
use crate::queue::QueueConfig;
use crate::trace::DeliveryTrace;

/// The capacity of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Capacity {
    /// Unlimited: packets leave immediately and no queue builds up.
    #[default]
    Unlimited,
    /// A constant rate.
    Rate(Rate),
    /// The opportunities of a recorded trace.
    Trace(Arc<DeliveryTrace>),
}

impl Capacity {
    /// Returns the rate, or the mean rate of a trace; `None` if unlimited.
    #[must_use]
    pub fn mean_rate(&self) -> Option<Rate> {
        match self {
            Self::Unlimited => None,
            Self::Rate(rate) => Some(*rate),
            // A trace below 1 bit/s counts as 1 bit/s.
            Self::Trace(trace) => trace.mean_rate().or_else(|| Rate::from_bits_per_second(1)),
        }
    }
}

/// One link in one direction. The default has unlimited capacity, no delay and no impairments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkSpec {
    /// Capacity.
    pub capacity: Capacity,
    /// Propagation delay: from the end of transmission to arrival at the far end.
    pub delay: Duration,
    /// Delay variation.
    pub jitter: Option<JitterConfig>,
    /// Loss model.
    pub loss: Option<LossConfig>,
    /// Reordering.
    pub reorder: Option<ReorderConfig>,
    /// Probability of duplication.
    pub duplicate: Option<Probability>,
    /// Probability of a bit error in a packet.
    pub corrupt: Option<Probability>,
    /// Queue.
    pub queue: QueueConfig,
    /// MTU in bytes; `None` if unlimited.
    pub mtu: Option<u32>,
    /// Times in which the link is down, in order.
    pub down: Vec<Outage>,
}

impl LinkSpec {
    /// Returns the rate, or the mean rate of a trace, as far as the queue uses it; `None` if unlimited.
    #[must_use]
    pub fn mean_rate(&self) -> Option<Rate> {
        let rates = [self.capacity.mean_rate(), self.queue.shaper()];
        rates.into_iter().flatten().min()
    }
}

/// A path between two hosts: a link in each direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathSpec {
    /// From host 0 to host 1.
    pub forward: LinkSpec,
    /// From host 1 to host 0.
    pub reverse: LinkSpec,
}
