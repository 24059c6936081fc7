//! Resolved link specifications, from which a network is built.

use std::sync::Arc;

use foundation::{Duration, Probability, Rate, Streams};

use crate::config::Outage;
use crate::impairment::{JitterConfig, LossConfig, ReorderConfig};
use crate::medium::{Cell, Wifi};
use crate::nat::Nat;
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
    /// A share of a cell.
    Cell(Arc<Cell>),
    /// A share of a Wi-Fi channel.
    Wifi(Wifi),
}

impl Capacity {
    /// Returns the rate, the mean rate of a trace, or a typical rate on a shared medium ([`Cell::mean_rate`],
    /// [`Wifi::mean_rate`]); `None` if unlimited.
    #[must_use]
    pub fn mean_rate(&self) -> Option<Rate> {
        match self {
            Self::Unlimited => None,
            Self::Rate(rate) => Some(*rate),
            // A trace below 1 bit/s counts as 1 bit/s.
            Self::Trace(trace) => trace.mean_rate().or_else(|| Rate::from_bits_per_second(1)),
            Self::Cell(cell) => cell.mean_rate().or_else(|| Rate::from_bits_per_second(1)),
            Self::Wifi(wifi) => wifi.mean_rate().or_else(|| Rate::from_bits_per_second(1)),
        }
    }

    /// Puts times in place of random starts of traces ([`DeliveryTrace::drawn`]).
    fn draw_start(&mut self, streams: Streams) {
        match self {
            Self::Trace(trace) => *trace = Arc::new(trace.drawn(streams)),
            Self::Cell(cell) => *cell = Arc::new(cell.drawn(streams)),
            Self::Unlimited | Self::Rate(_) | Self::Wifi(_) => {}
        }
    }

    /// Returns whether the time of a packet on the link depends on when it is sent, or on other users of a medium.
    #[must_use]
    pub const fn varies(&self) -> bool {
        matches!(self, Self::Trace(_) | Self::Cell(_) | Self::Wifi(_))
    }

    /// Returns whether the link is a part of a shared medium.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        matches!(self, Self::Cell(_) | Self::Wifi(_))
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
    /// Address translator.
    pub nat: Option<Nat>,
}

impl LinkSpec {
    /// Returns the rate, or the mean rate of a trace, as far as the queue uses it; `None` if unlimited.
    #[must_use]
    pub fn mean_rate(&self) -> Option<Rate> {
        let rates = [self.capacity.mean_rate(), self.queue.shaper()];
        rates.into_iter().flatten().min()
    }

    /// Puts times in place of random starts of traces ([`DeliveryTrace::drawn`]). `streams` are those of the network.
    pub fn draw_start(&mut self, streams: Streams) {
        self.capacity.draw_start(streams);
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
