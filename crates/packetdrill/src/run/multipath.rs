//! Multipath TCP in scripts: names of keys and addresses, the path manager, and the conversion of options.

mod inbound;
mod manager;
mod names;
mod outbound;

pub use inbound::{Context, decode};
pub use manager::{DELAY, PathManager};
pub use names::Names;
pub use outbound::{mismatch, spec_of};

use std::collections::BTreeMap;
use std::net::IpAddr;

use transport::mptcp::keys::Nonces;
use transport::mptcp::wire::Announcement;
use transport::mptcp::{MptcpOption, PathIndex};

/// The addresses of a subflow and what its handshake exchanged.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// Address of the machine.
    pub local: IpAddr,
    /// Address of the peer.
    pub remote: IpAddr,
    /// Random numbers of the machine (`sender`) and of the script.
    pub nonces: Nonces,
}

impl Ends {
    /// Creates the ends of a subflow before its handshake.
    pub fn new(local: IpAddr, remote: IpAddr) -> Self {
        Self {
            local,
            remote,
            nonces: Nonces::default(),
        }
    }

    /// Learns the machine's random number from its handshake.
    pub fn learn_nonce(&mut self, option: &MptcpOption) {
        if let MptcpOption::JoinSyn { nonce, .. } | MptcpOption::JoinAnswer { nonce, .. } = *option {
            self.nonces.sender = nonce;
        }
    }
}

/// The addresses that the ends of a connection announced, and its paths.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    /// Addresses of the machine by ID.
    pub own: BTreeMap<u8, Announcement>,
    /// Addresses of the script by ID.
    pub peer: BTreeMap<u8, Announcement>,
    /// Pairs of addresses in the order of their use; the index is the number of the path.
    paths: Vec<(IpAddr, IpAddr)>,
}

impl Addresses {
    /// Returns the path between two addresses, which it adds if it is new.
    pub fn path(&mut self, local: IpAddr, remote: IpAddr) -> PathIndex {
        let known = self.paths.iter().position(|pair| *pair == (local, remote));
        let index = known.unwrap_or_else(|| {
            self.paths.push((local, remote));
            self.paths.len() - 1
        });
        PathIndex(u8::try_from(index).unwrap_or(u8::MAX))
    }

    /// Returns the addresses of a path.
    pub fn pair(&self, path: PathIndex) -> Option<(IpAddr, IpAddr)> {
        self.paths.get(path.index()).copied()
    }
}
