//! The connections of a host under one policy, and the account of its paths to each peer.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;

use foundation::{Duration, Instant};
use transport::mptcp::host::HostPaths;
use transport::mptcp::segment::PathIndex;

use super::talk::{OfConnection, OfPath, OfPeer, Reply, Request};
use super::{Options, Told, draws, towards};
use crate::mptcp::{Director, Event, Manager, Path, Peers, Seen, Unknown, Way, paths, tcp_sockets};

/// An application that has asked and does not connect is forgotten after this time.
const FORGET: Duration = Duration::from_secs(120);

/// A host that connections go to.
struct Peer {
    ways: Vec<Way>,
    account: HostPaths,
}

/// A connection.
struct Connection {
    to: IpAddr,
    port: u16,
    size: Option<u64>,
    director: Director,
    subflows: BTreeSet<Peers>,
    /// Bytes acknowledged on each path.
    bytes: BTreeMap<PathIndex, u64>,
}

/// An answer to an application that is about to connect.
struct Opening {
    to: IpAddr,
    size: Option<u64>,
    director: Director,
    at: Instant,
}

pub(super) struct Connections<'o> {
    options: &'o Options,
    paths: Vec<Path>,
    peers: BTreeMap<IpAddr, Peer>,
    connections: BTreeMap<u32, Connection>,
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
            peers: BTreeMap::new(),
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

    fn peer(&mut self, to: IpAddr) -> &mut Peer {
        let paths = &self.paths;
        self.peers.entry(to).or_insert_with(|| {
            let ways: Vec<Way> = towards(paths, to)
                .into_iter()
                .map(|path| Way { path, remote: to })
                .collect();
            Peer {
                account: HostPaths::new(ways.iter().map(|_| Duration::ZERO)),
                ways,
            }
        })
    }

    /// The policy's choice for a new connection; `None` where no path leads to the peer.
    fn open(&mut self, now: Instant, to: IpAddr, size: Option<u64>) -> Option<Director> {
        // An address that has come or gone changes what the accounts number. Those of old connections stay as they are.
        if let Ok(found) = paths()
            && found != self.paths
        {
            self.paths = found;
            self.peers.clear();
        }
        self.opened += 1;
        let random = draws(self.options.seed, self.opened);
        let policy = &self.options.policy;
        let peer = self.peer(to);
        if peer.ways.is_empty() {
            return None;
        }
        let account = &mut peer.account;
        Some(Director::open(now, policy, size, Unknown::Grows, account, random))
    }

    pub(super) fn hear(&mut self, now: Instant, event: Event, tell: &mut dyn FnMut(Told)) {
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
            _ => {}
        }
    }

    /// Takes a connection over whose application has not asked.
    fn adopt(&mut self, now: Instant, token: u32, peers: Peers, tell: &mut dyn FnMut(Told)) {
        let to = peers.remote.ip().to_canonical();
        let Some(mut director) = self.open(now, to, None) else {
            return;
        };
        let own = peers.local.ip().to_canonical();
        let ways = &self.peer(to).ways;
        if let Some(place) = ways.iter().position(|way| way.path.address == own) {
            director.has_begun_on(PathIndex(place as u8));
        }
        self.add(token, to, peers.remote.port(), None, director, Some(peers), tell);
    }

    #[expect(clippy::too_many_arguments, reason = "what a connection is")]
    fn add(
        &mut self,
        token: u32,
        to: IpAddr,
        port: u16,
        size: Option<u64>,
        director: Director,
        first: Option<Peers>,
        tell: &mut dyn FnMut(Told),
    ) {
        let from = self.peer(to).ways.get(director.first().index());
        if let Some(way) = from {
            tell(Told::Opened {
                token,
                to,
                size,
                from: way.path.address,
            });
        }
        let connection = Connection {
            to,
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
        let peer = self.peer(connection.to);
        connection.director.end(&mut peer.account);
        tell(Told::Closed {
            token,
            bytes: by_address(peer, &connection.bytes),
        });
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
            let Some(peer) = self.peers.get_mut(&connection.to) else {
                continue;
            };
            let seen: Vec<Seen> = connection
                .subflows
                .iter()
                .filter_map(|peers| {
                    let own = peers.local.ip().to_canonical();
                    let place = peer.ways.iter().position(|way| way.path.address == own)?;
                    let tcp = *table.get(peers)?;
                    Some(Seen {
                        path: PathIndex(place as u8),
                        tcp,
                    })
                })
                .collect();
            for subflow in &seen {
                let bytes = subflow.tcp.bytes_acknowledged().saturating_sub(1);
                let kept = connection.bytes.entry(subflow.path).or_default();
                *kept = bytes.max(*kept);
            }
            let acknowledged: u64 = connection.bytes.values().sum();
            let backlog = connection
                .size
                .map_or(0, |size| size.saturating_sub(acknowledged));
            let ordered = connection.director.advance(
                now,
                token,
                connection.port,
                &seen,
                backlog,
                &mut peer.account,
                &peer.ways,
                manager,
            );
            match ordered {
                Ok(ordered) => {
                    for path in ordered {
                        let from = peer.ways[path.index()].path.address;
                        tell(Told::Joined { token, from });
                    }
                }
                Err(error) => tell(Told::Refused {
                    token,
                    reason: error.to_string(),
                }),
            }
        }
        Ok(())
    }

    /// Answers an application.
    pub(super) fn answer(&mut self, now: Instant, request: Request, tell: &mut dyn FnMut(Told)) -> Reply {
        match request {
            Request::Open { to, size } => {
                let to = to.to_canonical();
                let Some(director) = self.open(now, to, size) else {
                    return Reply::Error(format!("no path of this host leads to {to}"));
                };
                let from = self.peer(to).ways[director.first().index()].path.address;
                let number = self.opened;
                let opening = Opening {
                    to,
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
                let Opening {
                    to, size, director, ..
                } = opening;
                self.add(token, to, port, size, director, first, tell);
                Reply::Begun { token }
            }
            Request::Status {} => self.status(),
        }
    }

    fn status(&self) -> Reply {
        let millis = |duration: Duration| Some(duration.as_secs_f64() * 1e3).filter(|millis| *millis > 0.0);
        let peers = self.peers.iter().map(|(&address, peer)| OfPeer {
            address,
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
                .get(&connection.to)
                .map(|peer| by_address(peer, &connection.bytes))
                .unwrap_or_default(),
        });
        Reply::Status {
            peers: peers.collect(),
            connections: connections.collect(),
        }
    }
}

fn by_address(peer: &Peer, bytes: &BTreeMap<PathIndex, u64>) -> Vec<(IpAddr, u64)> {
    bytes
        .iter()
        .filter_map(|(path, &bytes)| Some((peer.ways.get(path.index())?.path.address, bytes)))
        .collect()
}
