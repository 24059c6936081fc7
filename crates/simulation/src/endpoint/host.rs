//! The state of a host that its flows share.

use std::net::{IpAddr, Ipv4Addr};

use network::HostId;
use transport::mptcp::HostPaths;
use transport::tcp::HostMemory;

/// Number of unused tickets of QUIC, by the host that has them and its server.
#[cfg(feature = "quic")]
pub(crate) type Tickets = std::collections::BTreeMap<(HostId, HostId), u32>;

/// Unused tickets that a client keeps of a server, as rustls.
#[cfg(feature = "quic")]
const MOST_TICKETS: u32 = 8;

/// A host, from the view of one end of a flow.
pub(crate) struct Host<'a> {
    /// Estimates of its paths to the peer.
    pub paths: &'a mut HostPaths,
    /// Cache of its peers for TCP Fast Open and T/TCP.
    pub memory: &'a mut HostMemory,
    /// Unused tickets of QUIC.
    #[cfg(feature = "quic")]
    pub tickets: &'a mut Tickets,
    /// This host.
    #[cfg(feature = "quic")]
    pub own: HostId,
    /// Host of the other end.
    pub peer: HostId,
}

impl Host<'_> {
    /// Returns the address of the peer in the cache; any unique one.
    pub(crate) fn peer_address(&self) -> IpAddr {
        Ipv4Addr::from(self.peer.0).into()
    }

    /// Keeps a ticket of the peer.
    #[cfg(feature = "quic")]
    pub(crate) fn add_ticket(&mut self) {
        let unused = self.tickets.entry((self.own, self.peer)).or_default();
        *unused = MOST_TICKETS.min(*unused + 1);
    }

    /// Uses a ticket of the peer. Returns whether there is one. A ticket serves one connection (RFC 8446, appendix C.4).
    #[cfg(feature = "quic")]
    pub(crate) fn take_ticket(&mut self) -> bool {
        let Some(unused) = self.tickets.get_mut(&(self.own, self.peer)) else {
            return false;
        };
        let is_left = *unused > 0;
        *unused = unused.saturating_sub(1);
        is_left
    }
}
