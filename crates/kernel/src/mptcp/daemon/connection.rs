//! A connection under the policy, over the ways to its peer.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use foundation::Instant;
use transport::mptcp::segment::PathIndex;

use super::notification::Notification;
use super::peer::Peer;
use crate::mptcp::director::{Director, SubflowState, Way, address_id};
use crate::mptcp::events::SocketPair;
use crate::mptcp::manager::Manager;
use crate::tcp_info::TcpInfo;

/// A connection.
pub(super) struct Connection {
    pub to: IpAddr,
    /// The key of its peer.
    pub peer: u64,
    /// The source address of its first subflow.
    pub first: Option<IpAddr>,
    /// Addresses that the peer announced, by address ID.
    pub announced: BTreeMap<u8, IpAddr>,
    pub port: u16,
    pub size: Option<u64>,
    pub director: Director,
    pub subflows: BTreeSet<SocketPair>,
    /// Acknowledged bytes by path.
    pub bytes: BTreeMap<PathIndex, u64>,
    /// Received bytes by path.
    pub received: BTreeMap<PathIndex, u64>,
}

impl Connection {
    /// Updates the accounts of its subflows and opens those that are due.
    pub(super) fn advance(
        &mut self,
        now: Instant,
        token: u32,
        peer: &mut Peer,
        sockets: &BTreeMap<SocketPair, TcpInfo>,
        manager: &Manager,
        notify: &mut dyn FnMut(Notification),
    ) {
        let subflows: Vec<SubflowState> = self
            .subflows
            .iter()
            .filter_map(|pair| {
                Some(SubflowState {
                    path: peer.way_of(pair)?,
                    tcp: *sockets.get(pair)?,
                })
            })
            .collect();
        for subflow in &subflows {
            let bytes = subflow.tcp.bytes_acknowledged();
            let kept = self.bytes.entry(subflow.path).or_default();
            *kept = bytes.max(*kept);
            let received = self.received.entry(subflow.path).or_default();
            *received = subflow.tcp.bytes_received().max(*received);
        }
        let acknowledged: u64 = self.bytes.values().sum();
        let backlog = self.size.map_or(0, |size| size.saturating_sub(acknowledged));
        let account = &mut peer.account;
        let ways = &peer.ways;
        match self
            .director
            .advance(now, token, self.port, &subflows, backlog, account, ways, manager)
        {
            Ok(opened) => {
                for path in opened {
                    let way = ways[path.index()];
                    let (from, to) = (way.path.address, way.remote);
                    notify(Notification::Joined { token, from, to });
                }
            }
            Err(error) => notify(Notification::Refused {
                token,
                reason: error.to_string(),
            }),
        }
    }

    /// Closes the subflows of an address that this host lost, and sends REMOVE_ADDR to the peer.
    pub(super) fn remove_address(
        &mut self,
        token: u32,
        peer: &Peer,
        own: IpAddr,
        manager: &Manager,
        notify: &mut dyn FnMut(Notification),
    ) {
        // A subflow whose peer has not answered yet counts as well.
        let matches = |way: &Way| way.path.address == own;
        let is_used = peer
            .matching(matches)
            .into_iter()
            .any(|path| self.director.uses(path));
        self.remove_ways(token, peer, &|way| way.path.address == own, manager);
        if !is_used {
            return;
        }
        let id = if self.first == Some(own) {
            0
        } else {
            address_id(&peer.ways, own)
        };
        if let Err(error) = manager.remove(token, id) {
            let reason = error.to_string();
            notify(Notification::Refused { token, reason });
        }
        notify(Notification::Left { token, from: own });
    }

    /// Closes the subflows of ways that no longer exist.
    pub(super) fn remove_ways(
        &mut self,
        token: u32,
        peer: &Peer,
        which: &dyn Fn(&Way) -> bool,
        manager: &Manager,
    ) {
        for path in peer.matching(which) {
            self.director.remove_path(path);
            let matches = |subflow: &&SocketPair| peer.way_of(subflow) == Some(path);
            let closing: Vec<SocketPair> = self.subflows.iter().filter(matches).copied().collect();
            for subflow in closing {
                self.subflows.remove(&subflow);
                // Fails if the kernel closed the subflow before.
                let _ = manager.destroy_subflow(token, subflow.local, subflow.remote);
            }
        }
    }
}

/// Sums bytes of paths by this host's address.
pub(super) fn by_address(bytes: &BTreeMap<PathIndex, u64>, peer: &Peer) -> Vec<(IpAddr, u64)> {
    let mut bytes_of = BTreeMap::<IpAddr, u64>::new();
    for (path, bytes) in bytes {
        if let Some(way) = peer.ways.get(path.index()) {
            *bytes_of.entry(way.path.address).or_default() += bytes;
        }
    }
    bytes_of.into_iter().collect()
}
