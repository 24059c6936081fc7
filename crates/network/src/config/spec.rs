//! A link as the network is built from it: everything decided, nothing left to look up.

use std::sync::Arc;

use foundation::{Duration, Probability, Rate};

use crate::impairment::{JitterConfig, LossConfig, ReorderConfig};
use crate::queue::QueueConfig;
use crate::trace::DeliveryTrace;

/// How fast a link sends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Capacity {
    /// A packet has left as soon as it joins; no queue ever builds.
    #[default]
    Unlimited,
    /// Bits leave one after another at this rate.
    Rate(Rate),
    /// Bytes leave when a recorded trace lets them.
    Trace(Arc<DeliveryTrace>),
}

impl Capacity {
    /// The rate, of a recorded one the mean; `None` where there is no limit.
    #[must_use]
    pub fn mean_rate(&self) -> Option<Rate> {
        match self {
            Self::Unlimited => None,
            Self::Rate(rate) => Some(*rate),
            // A trace of less than 1 bit/s is as slow as can be.
            Self::Trace(trace) => trace.mean_rate().or_else(|| Rate::from_bits_per_second(1)),
        }
    }
}

/// One link in one direction. The default is infinitely fast, without delay, and perfect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkSpec {
    /// How fast it sends.
    pub capacity: Capacity,
    /// From the moment that a packet has been sent to its arrival at the far end.
    pub delay: Duration,
    /// How the delay varies.
    pub jitter: Option<JitterConfig>,
    /// Which packets are lost.
    pub loss: Option<LossConfig>,
    /// Which packets are held back.
    pub reorder: Option<ReorderConfig>,
    /// Probability that a packet is sent twice.
    pub duplicate: Option<Probability>,
    /// Probability that a bit of a packet is flipped.
    pub corrupt: Option<Probability>,
    /// What waits while the link is busy.
    pub queue: QueueConfig,
    /// The largest packet in bytes; `None` for any.
    pub mtu: Option<u32>,
}

/// A path between two hosts: a link in either direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathSpec {
    /// From host 0 to host 1.
    pub forward: LinkSpec,
    /// From host 1 to host 0.
    pub reverse: LinkSpec,
}
