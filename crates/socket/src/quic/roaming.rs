//! A client that moves: its addresses in the network, and those by which the machines know them.

use std::io;
use std::net::SocketAddr;

use quic::client_address;

use super::lanes::Lanes;
use crate::datagrams::Peer;

/// What an end knows of the client's addresses.
#[derive(Debug)]
pub(super) enum Roaming {
    /// They do not change.
    Fixed,
    /// This client moves.
    Client(Own),
    /// The client of this server may move.
    Server(Known),
}

/// Most addresses of a client, more than a client moves. Packets from further ones are lost.
const MOST: usize = 1024;

/// Where a client sends from.
#[derive(Debug)]
pub(super) struct Own {
    to: SocketAddr,
    way: u8,
    /// The machine's name of the address.
    name: Option<SocketAddr>,
}

impl Own {
    /// Returns the first address of a client of the server at `to`.
    pub(super) const fn new(to: SocketAddr) -> Self {
        Self {
            to,
            way: 0,
            name: None,
        }
    }

    /// Whether the address is on a path.
    pub(super) const fn is_on(&self, way: u8) -> bool {
        self.way == way
    }

    /// Returns the machine's name of the address.
    pub(super) const fn name(&self) -> Option<SocketAddr> {
        self.name
    }

    /// Moves to the address from which the machine sends now.
    ///
    /// # Errors
    /// The system's, if there is no port.
    pub(super) fn follow(&mut self, way: u8, name: Option<SocketAddr>, lanes: &mut Lanes) -> io::Result<()> {
        if way == self.way && name != self.name {
            lanes.move_to_new_port(way, self.to)?;
        }
        (self.way, self.name) = (way, name);
        Ok(())
    }
}

/// The addresses of a client as its server sees them. Two with one IP address have one in their names, too.
#[derive(Debug, Default)]
pub(super) struct Known {
    known: Vec<(Peer, SocketAddr)>,
}

impl Known {
    /// Returns the machine's name of a sender's address on a path, which may be new; `None` if the client has too many.
    pub(super) fn name(&mut self, way: u8, from: Peer) -> Option<SocketAddr> {
        let mut known = self.known.iter_mut();
        if let Some((peer, name)) = known.find(|(peer, _)| peer.address == from.address) {
            *peer = from;
            return Some(*name);
        }
        if self.known.len() == MOST {
            return None;
        }
        let is_same_host = |(peer, _): &(Peer, SocketAddr)| peer.address.ip() == from.address.ip();
        let number = self.known.len();
        let host = self.known.iter().position(is_same_host).unwrap_or(number);
        // Names differ by the port, also if the number of the host wraps.
        let name = client_address(host as u8, way, number as u16);
        self.known.push((from, name));
        Some(name)
    }

    /// Returns the address with a name; without one, the first.
    pub(super) fn peer(&self, name: Option<SocketAddr>) -> Option<Peer> {
        let is_its = |known: &&(Peer, SocketAddr)| name.is_none_or(|name| name == known.1);
        self.known.iter().find(is_its).map(|&(peer, _)| peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        Peer::new(address.parse().unwrap())
    }

    #[test]
    fn names_keep_which_addresses_share_a_host() {
        let mut known = Known::default();
        assert_eq!(known.peer(None), None);
        let first = known.name(0, peer("192.0.2.1:5")).unwrap();
        let port = known.name(0, peer("192.0.2.1:6")).unwrap();
        let other = known.name(1, peer("192.0.2.9:5")).unwrap();
        assert_eq!(first, client_address(0, 0, 0));
        assert_eq!(first.ip(), port.ip());
        assert_ne!(first.port(), port.port());
        assert_ne!(first.ip(), other.ip());
        assert_eq!(known.name(0, peer("192.0.2.1:5")), Some(first));
        assert_eq!(known.peer(Some(other)), Some(peer("192.0.2.9:5")));
        assert_eq!(known.peer(None), Some(peer("192.0.2.1:5")));
    }

    #[test]
    fn addresses_are_bounded() {
        let mut known = Known::default();
        let all = (1..=MOST as u16 + 1).map(|port| peer(&format!("192.0.2.1:{port}")));
        let names: Vec<_> = all.map(|from| known.name(0, from)).collect();
        assert!(names[..MOST].iter().all(Option::is_some));
        assert_eq!(names[MOST], None);
    }
}
