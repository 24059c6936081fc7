//! Media that several users or both directions of a path share. A packet leaves when the medium serves it, so a link on a shared
//! medium has no rate of its own.
//!
//! Each medium is one file with the keys of its table, its specification, and a [`Discipline`] around the queue of the link: the
//! discipline holds each packet until the medium has sent it, and the link itself takes no time.

mod cell;
mod wifi;

use crate::config::{Capacity, LinkSpec};
use crate::packet::HostId;
use crate::queue::{Discipline, QueueContext};

pub use cell::{Cell, CellConfig, CellScheduler};
pub(crate) use wifi::{Channel, Station};
pub use wifi::{Wifi, WifiConfig};

/// The other users of the medium of a link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sharing {
    /// The users of a cell, in the order of the hosts.
    pub(crate) users: Vec<HostId>,
    /// The station on a Wi-Fi channel.
    pub(crate) station: Option<Station>,
}

impl Sharing {
    /// Returns the discipline of a link on a shared medium; `None` for other links.
    pub(crate) fn discipline(
        &self,
        spec: &LinkSpec,
        context: &QueueContext,
    ) -> Option<Box<dyn Discipline + Send>> {
        match &spec.capacity {
            Capacity::Cell(cell) => Some(cell.discipline(&spec.queue, context, &self.users)),
            Capacity::Wifi(wifi) => {
                let station = self.station.clone().unwrap_or_default();
                Some(wifi.discipline(&spec.queue, context, station))
            }
            Capacity::Unlimited | Capacity::Rate(_) | Capacity::Trace(_) => None,
        }
    }
}
