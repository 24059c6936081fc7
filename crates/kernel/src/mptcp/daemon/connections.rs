//! All connections under one policy, and the accounts of the paths to each peer.

mod events;
mod requests;

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

use foundation::{Duration, Generator, Instant, Streams};

use super::announcements::Announcements;
use super::connection::{Connection, by_address};
use super::notification::Notification;
use super::options::Options;
use super::peer::Peer;
use crate::mptcp::director::{Director, UnknownSize, Way};
use crate::mptcp::events::SocketPair;
use crate::mptcp::manager::Manager;
use crate::mptcp::paths::{Path, paths};
use crate::mptcp::tcp_sockets::tcp_sockets;

/// How long a registration waits for its connection.
const PENDING_TIMEOUT: Duration = Duration::from_secs(120);

/// Interval between reads of the host's addresses.
const PATHS_INTERVAL: Duration = Duration::from_millis(100);

/// A registered connection that the application has not opened yet.
struct PendingConnection {
    to: IpAddr,
    peer: u64,
    size: Option<u64>,
    director: Director,
    at: Instant,
}

pub(super) struct Connections<'o> {
    options: &'o Options,
    paths: Vec<Path>,
    paths_read_at: Instant,
    /// Hosts that connections go to, by key. After a way is lost, existing connections keep their entry and new ones
    /// get another.
    peers: BTreeMap<u64, Peer>,
    current: BTreeMap<IpAddr, u64>,
    connections: BTreeMap<u32, Connection>,
    announcements: Announcements,
    /// First subflows of connections that are not managed yet, by token.
    first_subflows: BTreeMap<u32, SocketPair>,
    openings: BTreeMap<u64, PendingConnection>,
    opened: u64,
}

impl<'o> Connections<'o> {
    pub(super) const fn new(options: &'o Options, paths: Vec<Path>) -> Self {
        Self {
            options,
            paths,
            paths_read_at: Instant::ZERO,
            peers: BTreeMap::new(),
            current: BTreeMap::new(),
            announcements: Announcements::new(),
            connections: BTreeMap::new(),
            first_subflows: BTreeMap::new(),
            openings: BTreeMap::new(),
            opened: 0,
        }
    }

    /// Whether a connection may open a further subflow; `None` without connections.
    pub(super) fn is_waiting(&self) -> Option<bool> {
        if self.connections.is_empty() {
            return None;
        }
        Some(
            self.connections
                .values()
                .any(|connection| connection.director.is_waiting()),
        )
    }

    /// The key of the current entry for an address.
    fn peer(&mut self, to: IpAddr) -> u64 {
        let next = self.peers.last_key_value().map_or(0, |(last, _)| last + 1);
        let (paths, peers) = (&self.paths, &mut self.peers);
        *self.current.entry(to).or_insert_with(|| {
            peers.insert(next, Peer::new(to, paths));
            next
        })
    }

    /// The policy's choice for a new connection and the key of its peer; `None` if no path leads there.
    fn open(&mut self, now: Instant, to: IpAddr, size: Option<u64>) -> Option<(Director, u64)> {
        self.opened += 1;
        let random = draws(self.options.seed, self.opened);
        let number = self.peer(to);
        let peer = self.peers.get_mut(&number).filter(|peer| !peer.ways.is_empty())?;
        let policy = &self.options.policy;
        let mut director = Director::open(
            now,
            policy,
            size,
            UnknownSize::BytesSoFar,
            &mut peer.account,
            random,
        );
        // The first subflow goes to the address that the application uses, whatever else the peer announced.
        let chosen = peer.ways[director.first().index()];
        let is_chosen = |way: &Way| way.remote == to && way.path == chosen.path;
        if let Some(place) = peer
            .matching(is_chosen)
            .first()
            .or(peer.matching(|way| way.remote == to).first())
        {
            director.set_first(*place);
        }
        Some((director, number))
    }

    fn add(
        &mut self,
        token: u32,
        port: u16,
        opening: PendingConnection,
        first: Option<SocketPair>,
        notify: &mut dyn FnMut(Notification),
    ) {
        let PendingConnection {
            to,
            peer,
            size,
            director,
            ..
        } = opening;
        let ways = self.peers.get(&peer).map_or(&[][..], |peer| &peer.ways);
        let from = ways.get(director.first().index()).map(|way| way.path.address);
        if let Some(from) = from {
            notify(Notification::Opened {
                token,
                to,
                size,
                from,
            });
        }
        let connection = Connection {
            to,
            peer,
            first: from,
            announced: BTreeMap::new(),
            port,
            size,
            director,
            subflows: first.into_iter().collect(),
            bytes: BTreeMap::new(),
            received: BTreeMap::new(),
        };
        self.connections.insert(token, connection);
    }

    fn close(&mut self, token: u32, notify: &mut dyn FnMut(Notification)) {
        self.first_subflows.remove(&token);
        let Some(mut connection) = self.connections.remove(&token) else {
            return;
        };
        let Some(peer) = self.peers.get_mut(&connection.peer) else {
            return;
        };
        connection.director.end(&mut peer.account);
        notify(Notification::Closed {
            token,
            bytes: by_address(&connection.bytes, peer),
            received: by_address(&connection.received, peer),
        });
        self.tidy();
    }

    /// Drops peers without connections.
    fn tidy(&mut self) {
        let (connections, openings, current) = (&self.connections, &self.openings, &self.current);
        self.peers.retain(|number, peer| {
            current.get(&peer.address) == Some(number)
                || connections.values().any(|connection| connection.peer == *number)
                || openings.values().any(|opening| opening.peer == *number)
        });
    }

    /// Reads the host's addresses; connections join new ones and leave lost ones.
    pub(super) fn update_paths(
        &mut self,
        now: Instant,
        manager: &Manager,
        notify: &mut dyn FnMut(Notification),
    ) -> io::Result<()> {
        if now - self.paths_read_at < PATHS_INTERVAL {
            return Ok(());
        }
        self.paths_read_at = now;
        let found = paths()?;
        if found == self.paths {
            return Ok(());
        }
        let gone: Vec<IpAddr> = self
            .paths
            .iter()
            .filter(|path| !found.contains(path))
            .map(|path| path.address)
            .collect();
        let new: Vec<Path> = found
            .iter()
            .filter(|path| !self.paths.contains(path))
            .copied()
            .collect();
        self.paths = found;
        self.announcements.withdraw(&gone, manager, notify);
        for peer in self.peers.values_mut() {
            for &path in &new {
                peer.add(Way {
                    path,
                    remote: peer.address,
                    port: None,
                });
            }
        }
        for (&token, connection) in &mut self.connections {
            let Some(peer) = self.peers.get(&connection.peer) else {
                continue;
            };
            for &own in &gone {
                connection.remove_address(token, peer, own, manager, notify);
            }
            connection.director.reconsider(connection.size, &peer.account);
        }
        if !gone.is_empty() {
            self.current.clear();
            self.tidy();
        }
        Ok(())
    }

    /// Updates all connections and opens the subflows that are due.
    pub(super) fn advance(
        &mut self,
        now: Instant,
        manager: &Manager,
        notify: &mut dyn FnMut(Notification),
    ) -> io::Result<()> {
        self.openings
            .retain(|_, opening| now - opening.at < PENDING_TIMEOUT);
        if self.connections.is_empty() {
            return Ok(());
        }
        let sockets = tcp_sockets()?;
        for (&token, connection) in &mut self.connections {
            let Some(peer) = self.peers.get_mut(&connection.peer) else {
                continue;
            };
            connection.advance(now, token, peer, &sockets, manager, notify);
        }
        Ok(())
    }
}

/// The random stream for the policy of the connection with this number.
fn draws(seed: u64, number: u64) -> Generator {
    Streams::new(seed, 0).stream(&format!("paths/{number}"))
}
