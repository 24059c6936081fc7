//! The state of a host that its flows share.

use std::net::{IpAddr, Ipv4Addr};

use network::HostId;
use transport::mptcp::HostPaths;
use transport::tcp::HostMemory;

/// A host, from the view of one end of a flow.
pub(crate) struct Host<'a> {
    /// Estimates of its paths to the peer.
    pub paths: &'a mut HostPaths,
    /// Cache of its peers for TCP Fast Open and T/TCP.
    pub memory: &'a mut HostMemory,
    /// Tickets of QUIC: the host that has one, and its server.
    #[cfg(feature = "quic")]
    pub tickets: &'a mut std::collections::BTreeSet<(HostId, HostId)>,
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
}
