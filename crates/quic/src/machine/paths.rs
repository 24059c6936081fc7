//! The paths of a connection (draft-ietf-quic-multipath): when they open, and which of them are usable.
//!
//! The library closes a path without packets from the peer. Its own keep-alives do not prevent that on a path whose ACKs return on
//! another one, because each packet sent postpones them. So both ends send a PING on each path three times in that period.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use foundation::{Duration, Instant};
use noq_proto::{Connection, FourTuple, PathEvent, PathId, PathStatus};
use transport::congestion::{Sibling, Siblings};
use transport::mptcp::{ConnectionPlan, Join, JoinTime, PathIndex};

use super::clock::to_library;
use super::controller::Adapter;
use super::ledger::Ledger;
use super::setup::{CLIENT, SERVER};
use crate::QuicConfig;

/// Progress of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Opening,
    Usable,
    Closed,
}

/// A path of a connection.
#[derive(Debug)]
pub(super) struct Path {
    pub id: PathId,
    /// Path ID.
    pub number: u8,
    /// Number of the path between the hosts.
    pub way: u8,
    stage: Stage,
}

/// The paths of one end, in the order of their opening.
#[derive(Debug)]
pub(super) struct Paths {
    is_client: bool,
    /// The client's first path between the hosts.
    first: u8,
    /// Further paths that the client opens, in order.
    joins: VecDeque<Join>,
    most: usize,
    /// Time since when further paths may open.
    joinable_since: Option<Instant>,
    /// Whether keys are updated before.
    updates_keys: bool,
    is_confirmed: bool,
    /// Whether the peer has updated its keys.
    peer_updated_keys: bool,
    all: Vec<Path>,
    ping_every: Duration,
    ping_at: Instant,
}

/// Returns the number of an ID; those of connections are below 64.
pub(super) fn number_of(id: PathId) -> u8 {
    (0..u8::MAX)
        .find(|&number| id_of(number) == id)
        .unwrap_or(u8::MAX)
}

/// Returns the key phase in the header of a 1-RTT packet without protection (RFC 9001, section 6); false of other packets.
pub(super) fn has_key_phase(header: &[u8]) -> bool {
    let is_short = |first: u8| first & 0x80 == 0;
    header
        .first()
        .is_some_and(|&first| is_short(first) && first & 0x04 != 0)
}

/// Returns the ID with this number.
fn id_of(number: u8) -> PathId {
    PathId::from(number)
}

/// Returns the address for a path, with its number as the third byte.
fn numbered(address: SocketAddr, number: u8) -> SocketAddr {
    let IpAddr::V4(ip) = address.ip() else {
        return address;
    };
    let [a, b, _, d] = ip.octets();
    SocketAddr::new(Ipv4Addr::new(a, b, number, d).into(), address.port())
}

/// Returns the third byte of an address.
pub(super) fn number_in(address: SocketAddr) -> u8 {
    match address.ip() {
        IpAddr::V4(ip) => ip.octets()[2],
        IpAddr::V6(_) => 0,
    }
}

impl Paths {
    pub(super) fn new(config: &QuicConfig, is_client: bool) -> Self {
        Self {
            is_client,
            first: 0,
            joins: VecDeque::new(),
            most: config.paths() as usize,
            joinable_since: None,
            updates_keys: config.early_key_update == Some(true),
            is_confirmed: false,
            peer_updated_keys: false,
            all: Vec::new(),
            ping_every: config.path_timeout() / 3,
            ping_at: Instant::MAX,
        }
    }

    /// Follows the plan of a policy.
    pub(super) fn plan(&mut self, plan: ConnectionPlan) {
        self.first = plan.first.0;
        self.joins = plan.joins.into();
        self.joins.truncate(self.most.saturating_sub(1));
    }

    /// Adds paths to open.
    pub(super) fn join(&mut self, joins: Vec<Join>) {
        let open = self.all.iter().filter(|path| path.stage != Stage::Closed).count();
        let left = self.most.saturating_sub(open.max(1) + self.joins.len());
        self.joins.extend(joins.into_iter().take(left));
    }

    /// Returns whether further paths may open.
    pub(super) const fn is_joinable(&self) -> bool {
        self.joinable_since.is_some()
    }

    /// Returns the paths between the hosts that are open or planned.
    pub(super) fn ways(&self) -> Vec<PathIndex> {
        let open = self.all.iter().filter(|path| path.stage != Stage::Closed);
        let planned = self.joins.iter().map(|join| join.path);
        open.map(|path| PathIndex(path.way)).chain(planned).collect()
    }

    /// Returns the address of the peer on a path. The first path of a client has the number 0, because the client has opened the
    /// connection to that address.
    pub(super) fn peer(&self, way: u8) -> FourTuple {
        let (address, number) = match self.is_client {
            true => (SERVER, self.exchanged(way)),
            false => (CLIENT, way),
        };
        FourTuple::from_remote(numbered(address, number))
    }

    /// Exchanges the first path and the one with the number 0.
    const fn exchanged(&self, way: u8) -> u8 {
        if way == self.first {
            0
        } else if way == 0 {
            self.first
        } else {
            way
        }
    }

    /// Returns the path between the hosts that leads to this address of the peer.
    pub(super) fn way_to(&self, peer: SocketAddr) -> u8 {
        match self.is_client {
            true => self.exchanged(number_in(peer)),
            false => number_in(peer),
        }
    }

    /// Returns the newest path ID on a path between the hosts.
    pub(super) fn number_on(&self, way: u8) -> u8 {
        let newest = self.all.iter().rfind(|path| path.way == way);
        newest.map_or(0, |path| path.number)
    }

    /// Returns all paths of this end, closed ones included.
    pub(super) fn all(&self) -> &[Path] {
        &self.all
    }

    /// Returns the paths that carry data.
    pub(super) fn usable(&self) -> impl Iterator<Item = &Path> {
        self.all.iter().filter(|path| path.stage == Stage::Usable)
    }

    /// Notes the end of the handshake.
    pub(super) fn connected(&mut self, inner: &Connection) {
        let way = inner
            .network_path(PathId::ZERO)
            .map_or(self.first, |path| self.way_to(path.remote()));
        self.all.push(Path {
            id: PathId::ZERO,
            number: 0,
            way,
            stage: Stage::Usable,
        });
    }

    /// Notes that the peer has confirmed the handshake, so that keys may be updated and further paths may open.
    pub(super) fn confirmed(&mut self, inner: &mut Connection) {
        self.is_confirmed = inner.is_multipath_negotiated();
        if self.is_client && self.updates_keys {
            inner.force_key_update();
            let _ = inner.ping_path(PathId::ZERO);
        }
    }

    /// Notes the key phase of a packet that arrived.
    pub(super) const fn receives(&mut self, key_phase: bool) {
        self.peer_updated_keys |= key_phase;
    }

    /// Notes the paths that the peer has opened.
    pub(super) fn adopt(&mut self, inner: &Connection) {
        if self.all.is_empty() {
            return;
        }
        for id in inner.paths() {
            if self.all.iter().all(|path| path.id != id)
                && let Ok(network) = inner.network_path(id)
            {
                self.all.push(Path {
                    id,
                    number: number_of(id),
                    way: self.way_to(network.remote()),
                    stage: Stage::Opening,
                });
            }
        }
    }

    /// Handles an event of the library.
    pub(super) fn on_event(&mut self, now: Instant, inner: &mut Connection, event: &PathEvent) {
        match *event {
            PathEvent::Established { id, .. } => {
                self.set_stage(id, Stage::Usable);
                if self.usable().count() > 1 {
                    self.ping_at = self.ping_at.min(now + self.ping_every);
                }
            }
            PathEvent::Abandoned { id, .. } => self.set_stage(id, Stage::Closed),
            // The own scheduler and that of the library read the own status.
            PathEvent::RemoteStatus { id, status, .. } => {
                let _ = inner.set_path_status(id, status);
            }
            _ => {}
        }
    }

    fn set_stage(&mut self, id: PathId, stage: Stage) {
        if let Some(path) = self.all.iter_mut().find(|path| path.id == id) {
            path.stage = stage;
        }
    }

    /// Opens the paths that are due and for which the peer has issued connection IDs, and sends PINGs that are due.
    pub(super) fn act(&mut self, now: Instant, inner: &mut Connection, ledger: &Ledger) {
        if inner.is_closed() {
            self.ping_at = Instant::MAX;
            return;
        }
        if self.is_confirmed && (self.peer_updated_keys || !self.updates_keys) {
            self.joinable_since.get_or_insert(now);
        }
        while let Some(&join) = self.joins.front()
            && self.is_due(now, join.when, ledger)
        {
            let number = self.all.len() as u8;
            if u64::from(number) > ledger.largest_path() {
                break;
            }
            let opened = inner.open_path(self.peer(join.path.0), PathStatus::Available, to_library(now));
            let Ok(id) = opened else {
                break;
            };
            self.joins.pop_front();
            if join.backup {
                let _ = inner.set_path_status(id, PathStatus::Backup);
            }
            self.all.push(Path {
                id,
                number,
                way: join.path.0,
                stage: Stage::Opening,
            });
        }
        if now >= self.ping_at {
            self.ping_at = now + self.ping_every;
            for path in self.usable() {
                let _ = inner.ping_path(path.id);
            }
        }
    }

    fn is_due(&self, now: Instant, when: JoinTime, ledger: &Ledger) -> bool {
        self.joinable_since.is_some_and(|since| match when {
            JoinTime::Immediately => true,
            JoinTime::AfterBytes(bytes) => ledger.statistics().bytes_acknowledged >= bytes,
            JoinTime::AfterTime(time) => now >= since + time,
        })
    }

    /// Returns the time of the next PING or opening.
    pub(super) fn timeout(&self) -> Instant {
        let opening = match (self.joins.front(), self.joinable_since) {
            (Some(join), Some(since)) => match join.when {
                JoinTime::AfterTime(time) => since + time,
                _ => Instant::MAX,
            },
            _ => Instant::MAX,
        };
        self.ping_at.min(opening)
    }

    /// Returns the controller of a path, if it is one of this project's.
    pub(super) fn adapter(inner: &Connection, path: &Path) -> Option<Adapter> {
        Adapter::of(inner.congestion_state(path.id)?)
    }

    /// Passes the windows of all usable paths to coupled controllers, before an ACK or a timer.
    pub(super) fn couple(&self, now: Instant, inner: &Connection) {
        let adapters: Vec<Adapter> = self
            .usable()
            .filter_map(|path| Self::adapter(inner, path))
            .collect();
        if !adapters.iter().any(Adapter::is_coupled) {
            return;
        }
        let all: Vec<Sibling> = adapters.iter().map(|adapter| adapter.view(now).sibling).collect();
        for (own_index, adapter) in adapters.iter().enumerate() {
            adapter.pass_siblings(&Siblings { all: &all, own_index });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opened_paths_count_towards_subflows() {
        let config = QuicConfig {
            multipath: Some(true),
            subflows: Some(3),
            ..QuicConfig::default()
        };
        let mut paths = Paths::new(&config, true);
        let path = |number, stage| Path {
            id: id_of(number),
            number,
            way: number,
            stage,
        };
        paths.all = vec![path(0, Stage::Usable), path(1, Stage::Opening)];
        paths.join([2, 3].map(|way| Join::immediately(PathIndex(way))).into());
        assert_eq!(paths.ways(), [0, 1, 2].map(PathIndex));
        // A closed path gives its place to another.
        paths.set_stage(id_of(1), Stage::Closed);
        paths.join([3, 4].map(|way| Join::immediately(PathIndex(way))).into());
        assert_eq!(paths.ways(), [0, 2, 3].map(PathIndex));
    }
}
