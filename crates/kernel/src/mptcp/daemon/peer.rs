//! A host that connections go to, and the ways there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use foundation::Duration;
use transport::mptcp::host::HostPaths;
use transport::mptcp::segment::PathIndex;

use crate::mptcp::director::Way;
use crate::mptcp::events::SocketPair;
use crate::mptcp::paths::Path;

/// A host, the ways to it and their accounts. Ways are only added, so that path indices of connections stay valid.
pub(super) struct Peer {
    pub address: IpAddr,
    pub ways: Vec<Way>,
    pub account: HostPaths,
}

impl Peer {
    /// A peer with one way from each path to its first address.
    pub(super) fn new(address: IpAddr, paths: &[Path]) -> Self {
        let mut peer = Self {
            address,
            ways: Vec::new(),
            account: HostPaths::default(),
        };
        for &path in paths {
            peer.add(Way {
                path,
                remote: address,
                port: None,
            });
        }
        peer
    }

    /// Adds a way; returns false for a known way and for one between address families.
    pub(super) fn add(&mut self, way: Way) -> bool {
        let is_new = way.path.address.is_ipv4() == way.remote.is_ipv4() && !self.ways.contains(&way);
        if is_new {
            self.ways.push(way);
            self.account.add(Duration::ZERO);
        }
        is_new
    }

    /// The way of a subflow.
    pub(super) fn way_of(&self, subflow: &SocketPair) -> Option<PathIndex> {
        let own = subflow.local.ip().to_canonical();
        let remote = subflow.remote.ip().to_canonical();
        let matches = |way: &Way| way.path.address == own && way.remote == remote;
        Some(PathIndex(self.ways.iter().position(matches)? as u8))
    }

    /// The indices of the ways that satisfy `which`.
    pub(super) fn matching(&self, which: impl Fn(&Way) -> bool) -> Vec<PathIndex> {
        let ways = self.ways.iter().enumerate().filter(|(_, way)| which(way));
        ways.map(|(place, _)| PathIndex(place as u8)).collect()
    }
}

/// Returns the path that this host's routes take to an address, as the kernel's path manager does for an announced address.
/// Connecting a UDP socket sends no packet.
pub(super) fn routed(paths: &[Path], to: IpAddr) -> Option<Path> {
    let any: IpAddr = match to {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((to, 9)).ok()?;
    let own = socket.local_addr().ok()?.ip();
    paths.iter().find(|path| path.address == own).copied()
}
