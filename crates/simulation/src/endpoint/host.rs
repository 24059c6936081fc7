//! What the host of an end knows.

use std::net::{IpAddr, Ipv4Addr};

use network::HostId;
use transport::mptcp::HostPaths;
use transport::tcp::HostMemory;

/// A host, as one end of a flow sees it.
pub(crate) struct Host<'a> {
    /// Its paths to the other end's host.
    pub paths: &'a mut HostPaths,
    /// What it remembers of all other hosts, for TCPs that open early.
    pub memory: &'a mut HostMemory,
    /// The other end's host.
    pub peer: HostId,
}

impl Host<'_> {
    /// The address by which the memory names the other end's host: any that is its own.
    pub(crate) fn peer_address(&self) -> IpAddr {
        Ipv4Addr::from(self.peer.0).into()
    }
}
