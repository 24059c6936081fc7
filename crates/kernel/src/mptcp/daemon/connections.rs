//! The connections of a host under one policy, and the account of its paths to each peer.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

use foundation::{Duration, Instant};

use super::connection::Connection;
use super::peer::{Peer, routed};
use super::served::Served;
use super::talk::{OfConnection, OfPath, OfPeer, Reply, Request};
use super::{Options, Told, draws};
use crate::mptcp::{Director, Event, Manager, Path, Peers, Unknown, Way, paths, tcp_sockets};

/// An application that has asked and does not connect is forgotten after this time.
const FORGET: Duration = Duration::from_secs(120);

/// How often it is looked whether addresses of this host have come or gone.
const PATHS: Duration = Duration::from_millis(100);

/// An answer to an application that is about to connect.
struct Opening {
    to: IpAddr,
    peer: u64,
    size: Option<u64>,
    director: Director,
    at: Instant,
}

pub(super) struct Connections<'o> {
    options: &'o Options,
    paths: Vec<Path>,
    looked_at: Instant,
    /// Those that connections go to. One of which a way has gone serves the connections that it has, and a new one the next.
    peers: BTreeMap<u64, Peer>,
    current: BTreeMap<IpAddr, u64>,
    connections: BTreeMap<u32, Connection>,
    served: Served,
    /// First subflows of connections that nobody has told of, by token.
    begun: BTreeMap<u32, Peers>,
    openings: BTreeMap<u64, Opening>,
    opened: u64,
}

impl<'o> Connections<'o> {
    pub(super) const fn new(options: &'o Options, paths: Vec<Path>) -> Self {
        Self {
            options,
            paths,
            looked_at: Instant::ZERO,
            peers: BTreeMap::new(),
            current: BTreeMap::new(),
            served: Served::new(),
            connections: BTreeMap::new(),
            begun: BTreeMap::new(),
            openings: BTreeMap::new(),
            opened: 0,
        }
    }

    /// Whether a connection waits for a further subflow; `None` where there is no connection.
    pub(super) fn waiting(&self) -> Option<bool> {
        if self.connections.is_empty() {
            return None;
        }
        Some(
            self.connections
                .values()
                .any(|connection| connection.director.is_waiting()),
        )
    }

    /// The number of the host that connections to this address go to from now on.
    fn peer(&mut self, to: IpAddr) -> u64 {
        let next = self.peers.last_key_value().map_or(0, |(last, _)| last + 1);
        let (paths, peers) = (&self.paths, &mut self.peers);
        *self.current.entry(to).or_insert_with(|| {
            peers.insert(next, Peer::new(to, paths));
            next
        })
    }

    /// The policy's choice for a new connection, and the number of its peer; `None` where no path leads there.
    fn open(&mut self, now: Instant, to: IpAddr, size: Option<u64>) -> Option<(Director, u64)> {
        self.opened += 1;
        let random = draws(self.options.seed, self.opened);
        let number = self.peer(to);
        let peer = self.peers.get_mut(&number).filter(|peer| !peer.ways.is_empty())?;
        let policy = &self.options.policy;
        let mut director = Director::open(now, policy, size, Unknown::Grows, &mut peer.account, random);
        // A connection begins with the address that its application names, whatever else the peer has announced.
        let chosen = peer.ways[director.first().index()];
        let own = |way: &Way| way.remote == to && way.path == chosen.path;
        if let Some(place) = peer
            .those(own)
            .first()
            .or(peer.those(|way| way.remote == to).first())
        {
            director.has_begun_on(*place);
        }
        Some((director, number))
    }

    pub(super) fn hear(&mut self, now: Instant, event: Event, manager: &Manager, tell: &mut dyn FnMut(Told)) {
        if self.options.announce {
            self.served.hear(event, &self.paths, manager, tell);
        }
        match event {
            Event::Created {
                token,
                peers,
                server: false,
            } => match self.connections.get_mut(&token) {
                Some(connection) => {
                    connection.subflows.insert(peers);
                }
                None => {
                    self.begun.insert(token, peers);
                }
            },
            Event::Established {
                token,
                peers,
                server: false,
            } => {
                self.begun.remove(&token);
                if let Some(connection) = self.connections.get_mut(&token) {
                    connection.subflows.insert(peers);
                } else if !self.options.asked_only {
                    self.adopt(now, token, peers, tell);
                }
            }
            Event::SubflowEstablished { token, peers } => {
                if let Some(connection) = self.connections.get_mut(&token) {
                    connection.subflows.insert(peers);
                }
            }
            Event::SubflowClosed { token, peers, .. } => {
                if let Some(connection) = self.connections.get_mut(&token) {
                    connection.subflows.remove(&peers);
                }
            }
            Event::Closed { token } => self.close(token, tell),
            Event::Announced { token, id, remote } => self.learn(token, id, remote),
            Event::Removed { token, id } => self.forget(token, id, manager),
            Event::Created { .. } | Event::Established { .. } => {}
        }
    }

    /// Takes a connection over whose application has not asked.
    fn adopt(&mut self, now: Instant, token: u32, peers: Peers, tell: &mut dyn FnMut(Told)) {
        let to = peers.remote.ip().to_canonical();
        let Some((mut director, peer)) = self.open(now, to, None) else {
            return;
        };
        if let Some(place) = self.peers.get(&peer).and_then(|peer| peer.way_of(&peers)) {
            director.has_begun_on(place);
        }
        let opening = Opening {
            to,
            peer,
            size: None,
            director,
            at: now,
        };
        self.add(token, peers.remote.port(), opening, Some(peers), tell);
    }

    fn add(
        &mut self,
        token: u32,
        port: u16,
        opening: Opening,
        first: Option<Peers>,
        tell: &mut dyn FnMut(Told),
    ) {
        let Opening {
            to,
            peer,
            size,
            director,
            ..
        } = opening;
        let ways = self.peers.get(&peer).map_or(&[][..], |peer| &peer.ways);
        let from = ways.get(director.first().index()).map(|way| way.path.address);
        if let Some(from) = from {
            tell(Told::Opened {
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
        };
        self.connections.insert(token, connection);
    }

    fn close(&mut self, token: u32, tell: &mut dyn FnMut(Told)) {
        self.begun.remove(&token);
        let Some(mut connection) = self.connections.remove(&token) else {
            return;
        };
        let Some(peer) = self.peers.get_mut(&connection.peer) else {
            return;
        };
        connection.director.end(&mut peer.account);
        tell(Told::Closed {
            token,
            bytes: connection.by_address(peer),
        });
        self.tidy();
    }

    /// Forgets hosts that nobody goes to any more.
    fn tidy(&mut self) {
        let (connections, openings, current) = (&self.connections, &self.openings, &self.current);
        self.peers.retain(|number, peer| {
            current.get(&peer.address) == Some(number)
                || connections.values().any(|connection| connection.peer == *number)
                || openings.values().any(|opening| opening.peer == *number)
        });
    }

    /// The peer of a connection has a further address: a further way leads there, which the policy may use.
    fn learn(&mut self, token: u32, id: u8, remote: std::net::SocketAddr) {
        let address = remote.ip().to_canonical();
        let Some(connection) = self.connections.get_mut(&token) else {
            return;
        };
        connection.announced.insert(id, address);
        let path = routed(&self.paths, address);
        let (Some(path), Some(peer)) = (path, self.peers.get_mut(&connection.peer)) else {
            return;
        };
        let port = Some(remote.port()).filter(|&port| port != 0 && port != connection.port);
        let way = Way {
            path,
            remote: address,
            port,
        };
        peer.add(way);
        connection.director.reconsider(connection.size, &peer.account);
    }

    /// The peer of a connection has lost an address.
    fn forget(&mut self, token: u32, id: u8, manager: &Manager) {
        let Some(connection) = self.connections.get_mut(&token) else {
            return;
        };
        // 0 is the address that the connection began with.
        let remote = connection
            .announced
            .remove(&id)
            .or((id == 0).then_some(connection.to));
        let Some(remote) = remote else { return };
        if let Some(peer) = self.peers.get(&connection.peer) {
            connection.loses(token, peer, &|way| way.remote == remote, manager);
            connection.director.reconsider(connection.size, &peer.account);
            self.current.remove(&connection.to);
        }
    }

    /// Looks whether addresses of this host have come or gone: connections take the new ones, and leave the others.
    pub(super) fn look_at_paths(
        &mut self,
        now: Instant,
        manager: &Manager,
        tell: &mut dyn FnMut(Told),
    ) -> io::Result<()> {
        if now - self.looked_at < PATHS {
            return Ok(());
        }
        self.looked_at = now;
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
        self.served.lose(&gone, manager, tell);
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
                connection.leaves(token, peer, own, manager, tell);
            }
            connection.director.reconsider(connection.size, &peer.account);
        }
        if !gone.is_empty() {
            self.current.clear();
            self.tidy();
        }
        Ok(())
    }

    /// Looks at all connections, and opens the subflows whose time has come.
    pub(super) fn advance(
        &mut self,
        now: Instant,
        manager: &Manager,
        tell: &mut dyn FnMut(Told),
    ) -> io::Result<()> {
        self.openings.retain(|_, opening| now - opening.at < FORGET);
        if self.connections.is_empty() {
            return Ok(());
        }
        let table = tcp_sockets()?;
        for (&token, connection) in &mut self.connections {
            let Some(peer) = self.peers.get_mut(&connection.peer) else {
                continue;
            };
            connection.advance(now, token, peer, &table, manager, tell);
        }
        Ok(())
    }

    /// Answers an application.
    pub(super) fn answer(&mut self, now: Instant, request: Request, tell: &mut dyn FnMut(Told)) -> Reply {
        match request {
            Request::Open { to, size } => {
                let to = to.to_canonical();
                let opened = self.open(now, to, size);
                let Some((director, peer)) = opened else {
                    return Reply::Error(format!("no path of this host leads to {to}"));
                };
                let from = self.peers[&peer].ways[director.first().index()].path.address;
                let number = self.opened;
                let opening = Opening {
                    to,
                    peer,
                    size,
                    director,
                    at: now,
                };
                self.openings.insert(number, opening);
                Reply::Opening {
                    opening: number,
                    from,
                }
            }
            Request::Begin { opening, token, port } => {
                let Some(opening) = self.openings.remove(&opening) else {
                    return Reply::Error(format!("there is no opening {opening}"));
                };
                let first = self.begun.remove(&token);
                // Adopted a moment before, it is now known better.
                let adopted = self.connections.remove(&token);
                let first = first.or_else(|| adopted.and_then(|adopted| adopted.subflows.first().copied()));
                self.add(token, port, opening, first, tell);
                Reply::Begun { token }
            }
            Request::Status {} => self.status(),
        }
    }

    fn status(&self) -> Reply {
        let millis = |duration: Duration| Some(duration.as_secs_f64() * 1e3).filter(|millis| *millis > 0.0);
        let current = self.current.values().filter_map(|number| self.peers.get(number));
        let peers = current.map(|peer| OfPeer {
            address: peer.address,
            paths: peer
                .ways
                .iter()
                .zip(peer.account.paths())
                .map(|(way, account)| OfPath {
                    address: way.path.address,
                    rtt_ms: millis(account.rtt),
                    base_rtt_ms: millis(account.base_rtt),
                    unfinished: account.unfinished,
                    acknowledged: account.acknowledged,
                    subflows: account.subflows,
                })
                .collect(),
        });
        let connections = self.connections.iter().map(|(&token, connection)| OfConnection {
            token,
            to: connection.to,
            size: connection.size,
            bytes: self
                .peers
                .get(&connection.peer)
                .map(|peer| connection.by_address(peer))
                .unwrap_or_default(),
        });
        Reply::Status {
            peers: peers.collect(),
            connections: connections.collect(),
        }
    }
}
