//! Observation of packets inside a network. A network without an observer has no cost for it.

use foundation::Instant;

use crate::packet::{LinkId, PacketRef, RouteId};

/// The reason why a link dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DropReason {
    /// The loss model dropped it.
    Loss,
    /// The queue was full, or its discipline dropped it.
    Queue,
    /// It is larger than the link's MTU.
    Mtu,
    /// The caller requested the loss ([`Network::lose`](crate::Network::lose)).
    Requested,
    /// The link was down.
    Outage,
    /// The address translator has no mapping for it, or its destination does not accept its source port.
    Nat,
}

impl DropReason {
    /// Returns the name used in traces and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Queue => "queue",
            Self::Mtu => "mtu",
            Self::Requested => "request",
            Self::Outage => "outage",
            Self::Nat => "nat",
        }
    }
}

/// When a link sends a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// When the packet joined the queue.
    pub joined: Instant,
    /// Start of transmission: the packet leaves the queue.
    pub start: Instant,
    /// End of transmission.
    pub end: Instant,
    /// Arrival at the far end.
    pub arrival: Instant,
}

/// Receives the events of packets inside a network, in order of time. By default every method does nothing.
///
/// The observer is a type parameter of the network, so `()` is compiled away.
pub trait Observer<B> {
    /// Whether the network calls this observer at all.
    const ENABLED: bool = true;

    /// The packet reached the near end of a link, before any decision of that link.
    #[inline]
    fn entered(&mut self, at: Instant, link: LinkId, packet: PacketRef<'_, B>) {
        let _ = (at, link, packet);
    }

    /// The times of the packet's transmission are known. With drop-tail that is when the packet joins the queue, otherwise when
    /// it leaves the queue.
    #[inline]
    fn scheduled(&mut self, at: Instant, link: LinkId, times: Transmission, packet: PacketRef<'_, B>) {
        let _ = (at, link, times, packet);
    }

    /// The packet waits again, in another queue of the link: the times of its transmission are no longer valid.
    #[inline]
    fn requeued(&mut self, at: Instant, link: LinkId, packet: PacketRef<'_, B>) {
        let _ = (at, link, packet);
    }

    /// The link dropped the packet.
    #[inline]
    fn dropped(&mut self, at: Instant, link: LinkId, reason: DropReason, packet: PacketRef<'_, B>) {
        let _ = (at, link, reason, packet);
    }

    /// The link made a copy of the packet.
    #[inline]
    fn duplicated(&mut self, at: Instant, link: LinkId, packet: PacketRef<'_, B>) {
        let _ = (at, link, packet);
    }

    /// The link flipped a bit; `packet` is the corrupted packet.
    #[inline]
    fn corrupted(&mut self, at: Instant, link: LinkId, packet: PacketRef<'_, B>) {
        let _ = (at, link, packet);
    }

    /// The link marked the packet with ECN CE; `packet` is the marked packet.
    #[inline]
    fn marked(&mut self, at: Instant, link: LinkId, packet: PacketRef<'_, B>) {
        let _ = (at, link, packet);
    }

    /// Routers avoid failed links, or use recovered ones: packets that enter the route from now on cross `hops` links.
    #[inline]
    fn rerouted(&mut self, at: Instant, route: RouteId, hops: u8) {
        let _ = (at, route, hops);
    }

    /// The packet reached the far end of a link.
    #[inline]
    fn left(&mut self, at: Instant, link: LinkId, packet: PacketRef<'_, B>) {
        let _ = (at, link, packet);
    }
}

/// No observation.
impl<B> Observer<B> for () {
    const ENABLED: bool = false;
}
