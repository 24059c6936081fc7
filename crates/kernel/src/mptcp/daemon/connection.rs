//! A connection under the policy, over the ways to its peer.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use foundation::Instant;
use transport::mptcp::segment::PathIndex;

use super::Told;
use super::peer::Peer;
use crate::mptcp::director::number;
use crate::mptcp::{Director, Manager, Peers, Seen, Way};
use crate::tcp_info::TcpInfo;

/// A connection.
pub(super) struct Connection {
    pub to: IpAddr,
    /// The number of its peer.
    pub peer: u64,
    /// Where its first subflow has begun.
    pub first: Option<IpAddr>,
    /// Addresses that the peer has announced, by the numbers that it gave them.
    pub announced: BTreeMap<u8, IpAddr>,
    pub port: u16,
    pub size: Option<u64>,
    pub director: Director,
    pub subflows: BTreeSet<Peers>,
    /// Bytes acknowledged on each path.
    pub bytes: BTreeMap<PathIndex, u64>,
}

impl Connection {
    /// Looks at its subflows, and opens those whose time has come.
    pub(super) fn advance(
        &mut self,
        now: Instant,
        token: u32,
        peer: &mut Peer,
        table: &BTreeMap<Peers, TcpInfo>,
        manager: &Manager,
        tell: &mut dyn FnMut(Told),
    ) {
        let seen: Vec<Seen> = self
            .subflows
            .iter()
            .filter_map(|peers| {
                Some(Seen {
                    path: peer.way_of(peers)?,
                    tcp: *table.get(peers)?,
                })
            })
            .collect();
        for subflow in &seen {
            let bytes = subflow.tcp.bytes_acknowledged();
            let kept = self.bytes.entry(subflow.path).or_default();
            *kept = bytes.max(*kept);
        }
        let acknowledged: u64 = self.bytes.values().sum();
        let backlog = self.size.map_or(0, |size| size.saturating_sub(acknowledged));
        let account = &mut peer.account;
        let ways = &peer.ways;
        match self
            .director
            .advance(now, token, self.port, &seen, backlog, account, ways, manager)
        {
            Ok(ordered) => {
                for path in ordered {
                    let from = ways[path.index()].path.address;
                    tell(Told::Joined { token, from });
                }
            }
            Err(error) => tell(Told::Refused {
                token,
                reason: error.to_string(),
            }),
        }
    }

    /// An address of this host is gone: its subflows close, and the peer is told that it will not see it again.
    pub(super) fn leaves(
        &mut self,
        token: u32,
        peer: &Peer,
        own: IpAddr,
        manager: &Manager,
        tell: &mut dyn FnMut(Told),
    ) {
        // One that still waits for its peer counts as well.
        let is_its = |way: &Way| way.path.address == own;
        let is_used = peer
            .those(is_its)
            .into_iter()
            .any(|path| self.director.uses(path));
        self.loses(token, peer, &|way| way.path.address == own, manager);
        if !is_used {
            return;
        }
        let id = if self.first == Some(own) {
            0
        } else {
            number(&peer.ways, own)
        };
        if let Err(error) = manager.remove(token, id) {
            let reason = error.to_string();
            tell(Told::Refused { token, reason });
        }
        tell(Told::Left { token, from: own });
    }

    /// Ways are gone: their subflows close.
    pub(super) fn loses(&mut self, token: u32, peer: &Peer, which: &dyn Fn(&Way) -> bool, manager: &Manager) {
        for path in peer.those(which) {
            self.director.loses(path);
            let is_its = |subflow: &&Peers| peer.way_of(subflow) == Some(path);
            let closing: Vec<Peers> = self.subflows.iter().filter(is_its).copied().collect();
            for subflow in closing {
                self.subflows.remove(&subflow);
                // The kernel may have closed it before: then there is none.
                let _ = manager.destroy_subflow(token, subflow.local, subflow.remote);
            }
        }
    }

    /// Bytes that were acknowledged, by the address of this host that they left from.
    pub(super) fn by_address(&self, peer: &Peer) -> Vec<(IpAddr, u64)> {
        let mut of = BTreeMap::<IpAddr, u64>::new();
        for (path, bytes) in &self.bytes {
            if let Some(way) = peer.ways.get(path.index()) {
                *of.entry(way.path.address).or_default() += bytes;
            }
        }
        of.into_iter().collect()
    }
}
