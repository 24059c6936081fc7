//! Applies a path policy to one kernel connection. The policies are those of the project's own MPTCP; the subflows are
//! the kernel's.

use std::net::{IpAddr, SocketAddr};

use foundation::{Duration, Generator, Instant};
use transport::mptcp::host::HostPaths;
use transport::mptcp::policy::{Join, JoinTime, PathPolicy, PolicyConfig, Progress};
use transport::mptcp::segment::PathIndex;

use super::manager::Manager;
use super::paths::Path;
use crate::error::Error;
use crate::tcp_info::TcpInfo;

/// A way to a peer: a path of this host and the peer's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// This host's path.
    pub path: Path,
    /// The peer's address.
    pub remote: IpAddr,
    /// The peer's port, if it differs from the connection's.
    pub port: Option<u16>,
}

/// The last read state of a subflow.
#[derive(Clone, Copy, Debug)]
pub struct SubflowState {
    /// Index of its way.
    pub path: PathIndex,
    /// Its TCP state.
    pub tcp: TcpInfo,
}

/// The size that a policy gets for a connection of unknown size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownSize {
    /// The size stays unknown.
    AsUnknown,
    /// The bytes transferred so far in both directions, at every update: a connection joins more paths as it grows,
    /// whichever end sends.
    BytesSoFar,
}

/// A subflow's share in the host's account of a path.
#[derive(Clone, Copy, Debug)]
struct Contribution {
    path: PathIndex,
    acknowledged: u64,
    received: u64,
    lost: u32,
    claimed: u64,
}

/// Opens the subflows of one connection as its policy decides.
#[derive(Debug)]
pub struct Director {
    policy: Box<dyn PathPolicy>,
    unknown: Option<UnknownSize>,
    random: Generator,
    first: PathIndex,
    joins: Vec<Join>,
    used: Vec<PathIndex>,
    /// Paths that no longer exist.
    gone: Vec<PathIndex>,
    expected: Vec<(PathIndex, u64)>,
    short: bool,
    opened_at: Instant,
    joinable_since: Option<Instant>,
    acknowledged: u64,
    received: u64,
    contributions: Vec<Contribution>,
}

/// Errors that pass: `ENOTCONN` until the first data is acknowledged.
const TRANSIENT: [i32; 1] = [libc::ENOTCONN];

impl Director {
    /// Gets the paths of a new connection to the host `host`. `size`: bytes to send, if known; `unknown`
    /// applies otherwise. `random`: the policy's random draws.
    pub fn open(
        now: Instant,
        policy: &PolicyConfig,
        size: Option<u64>,
        unknown: UnknownSize,
        host: &mut HostPaths,
        mut random: Generator,
    ) -> Self {
        let mut policy = policy.build();
        let grows = size.is_none() && unknown == UnknownSize::BytesSoFar;
        let opening = policy.open(if grows { Some(1) } else { size }, host, &mut random);
        host.on_connection();
        if let Some(size) = size {
            host.on_flow(now, size);
        }
        Self {
            policy,
            unknown: size.is_none().then_some(unknown),
            random,
            first: opening.first,
            used: std::iter::once(opening.first)
                .chain(opening.joins.iter().map(|join| join.path))
                .collect(),
            joins: opening.joins,
            gone: Vec::new(),
            expected: opening.expected,
            short: opening.short,
            opened_at: now,
            joinable_since: None,
            acknowledged: 0,
            received: 0,
            contributions: Vec::new(),
        }
    }

    /// The path of the first subflow.
    #[must_use]
    pub const fn first(&self) -> PathIndex {
        self.first
    }

    /// Sets the path of the first subflow, for an application that chose another path than the policy.
    pub fn set_first(&mut self, path: PathIndex) {
        if path == self.first {
            return;
        }
        self.joins.retain(|join| join.path != path);
        if !self.used.contains(&path) {
            self.used.push(path);
        }
        // A single-path choice stays a single path.
        self.used
            .retain(|used| *used != self.first || self.joins.iter().any(|join| join.path == *used));
        self.first = path;
    }

    /// Opens no subflows, because another path manager does; the accounts are still updated.
    pub fn disable(&mut self) {
        self.joins.clear();
    }

    /// Whether a subflow was opened or requested on a path.
    #[must_use]
    pub fn uses(&self, path: PathIndex) -> bool {
        self.used.contains(&path) && !self.joins.iter().any(|join| join.path == path)
    }

    /// Removes a path that no longer exists, with its subflow.
    pub fn remove_path(&mut self, path: PathIndex) {
        self.joins.retain(|join| join.path != path);
        self.used.retain(|used| *used != path);
        self.gone.push(path);
    }

    /// Repeats the choice after paths changed, and joins new paths up to the number of the policy. A
    /// connection without any path takes the one with the smallest RTT. `size` as in [`Self::open`].
    pub fn reconsider(&mut self, size: Option<u64>, host: &HostPaths) {
        let grows = self.unknown == Some(UnknownSize::BytesSoFar);
        let size = size.or(grows.then_some(self.transferred().max(1)));
        let opening = self.policy.open(size, host, &mut self.random);
        let wanted = 1 + opening.joins.len();
        let fallback = host.sorted_by(|path| path.rtt).into_iter().map(Join::immediately);
        let fallback = fallback.take(if self.used.is_empty() { host.len() } else { 0 });
        let first = Join::immediately(opening.first);
        for join in std::iter::once(first).chain(opening.joins).chain(fallback) {
            let is_new = !self.used.contains(&join.path) && !self.gone.contains(&join.path);
            if is_new && self.used.len() < wanted {
                self.used.push(join.path);
                self.joins.push(join);
            }
        }
    }

    /// Whether subflows are, or may become, due.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.joins.is_empty()
            || self.policy.follows_progress()
            || self.unknown == Some(UnknownSize::BytesSoFar)
    }

    /// Updates the host's accounts from the connection's subflows and opens the subflows that are due. `backlog`: bytes
    /// written and not acknowledged, if known. Returns the paths of the subflows opened by this call.
    ///
    /// # Errors
    /// The kernel's permanent refusal; the path is not tried again.
    #[expect(
        clippy::too_many_arguments,
        reason = "one look at a connection, its host and its peer"
    )]
    pub fn advance(
        &mut self,
        now: Instant,
        token: u32,
        to: u16,
        subflows: &[SubflowState],
        backlog: u64,
        host: &mut HostPaths,
        ways: &[Way],
        manager: &Manager,
    ) -> Result<Vec<PathIndex>, Error> {
        self.update_accounts(now, subflows, host);
        if self.transferred() > 0 && self.joinable_since.is_none() {
            self.joinable_since = Some(now);
        }
        self.decide(now, backlog, host);
        self.open_due(now, token, to, ways, manager)
    }

    /// The connection's progress: bytes acknowledged so far, and also those received if its size is unknown.
    fn transferred(&self) -> u64 {
        let received = match self.unknown {
            Some(UnknownSize::BytesSoFar) => self.received,
            _ => 0,
        };
        self.acknowledged + received
    }

    fn decide(&mut self, now: Instant, backlog: u64, host: &HostPaths) {
        if self.joinable_since.is_none() {
            return;
        }
        let more = if self.policy.follows_progress() {
            let progress = Progress {
                acknowledged: self.acknowledged,
                backlog,
                age: now - self.opened_at,
                paths: &self.used,
            };
            self.policy.progress(&progress, host)
        } else if self.unknown == Some(UnknownSize::BytesSoFar) {
            let opening = self.policy.open(Some(self.transferred()), host, &mut self.random);
            // A single-path policy chooses a different path at each call.
            if opening.joins.is_empty() {
                Vec::new()
            } else {
                let first = Join::immediately(opening.first);
                std::iter::once(first).chain(opening.joins).collect()
            }
        } else {
            return;
        };
        for join in more {
            if !self.used.contains(&join.path) && !self.gone.contains(&join.path) {
                self.used.push(join.path);
                self.joins.push(join);
            }
        }
    }

    fn open_due(
        &mut self,
        now: Instant,
        token: u32,
        to: u16,
        ways: &[Way],
        manager: &Manager,
    ) -> Result<Vec<PathIndex>, Error> {
        let (mut opened, mut refused) = (Vec::new(), None);
        let Some(since) = self.joinable_since else {
            return Ok(opened);
        };
        let transferred = self.transferred();
        let is_due = |join: &Join| match join.when {
            JoinTime::Immediately => true,
            JoinTime::AfterBytes(bytes) => transferred >= bytes,
            JoinTime::AfterTime(time) => since + time <= now,
        };
        self.joins.retain(|join| {
            let Some(way) = ways.get(join.path.index()).filter(|_| is_due(join)) else {
                return true;
            };
            let remote = SocketAddr::new(way.remote, way.port.unwrap_or(to));
            match manager.create_subflow(token, &way.path, address_id(ways, way.path.address), remote) {
                Ok(()) => opened.push(join.path),
                Err(error)
                    if error
                        .raw_os_error()
                        .is_some_and(|number| TRANSIENT.contains(&number)) =>
                {
                    return true;
                }
                Err(error) => refused = Some(error),
            }
            false
        });
        refused.map_or(Ok(opened), Err)
    }

    /// Adds the subflows' progress since the last call to the host's accounts.
    fn update_accounts(&mut self, now: Instant, subflows: &[SubflowState], host: &mut HostPaths) {
        for subflow in subflows {
            let micros = u64::from(subflow.tcp.smoothed_rtt_us());
            if micros > 0 {
                host.on_round_trip(subflow.path, Duration::from_micros(micros));
            }
            let place = self.place(subflow.path, host);
            let Some(account) = host.path_mut(subflow.path) else {
                continue;
            };
            let contribution = &mut self.contributions[place];
            let acknowledged = subflow.tcp.bytes_acknowledged();
            let more = acknowledged.saturating_sub(contribution.acknowledged);
            self.acknowledged += more;
            contribution.acknowledged = contribution.acknowledged.max(acknowledged);
            let received = subflow.tcp.bytes_received();
            self.received += received.saturating_sub(contribution.received);
            contribution.received = contribution.received.max(received);
            let lost = subflow.tcp.retransmissions();
            let more_lost = u64::from(lost.saturating_sub(contribution.lost));
            contribution.lost = contribution.lost.max(lost);
            let expected = self.expected.iter().find(|(path, _)| *path == subflow.path);
            let expected = expected.map_or(0, |&(_, bytes)| bytes);
            let outstanding = subflow.tcp.bytes_sent().saturating_sub(acknowledged);
            let claim = outstanding.max(expected.saturating_sub(acknowledged));
            account.update_unfinished(contribution.claimed, claim, self.short);
            contribution.claimed = claim;
            host.on_delivery(subflow.path, now, more, more_lost);
        }
    }

    fn place(&mut self, path: PathIndex, host: &mut HostPaths) -> usize {
        if let Some(place) = self
            .contributions
            .iter()
            .position(|contribution| contribution.path == path)
        {
            return place;
        }
        if let Some(account) = host.path_mut(path) {
            account.subflows += 1;
        }
        self.contributions.push(Contribution {
            path,
            acknowledged: 0,
            received: 0,
            lost: 0,
            claimed: 0,
        });
        self.contributions.len() - 1
    }

    /// Removes the connection's share from the host's accounts.
    pub fn end(&mut self, host: &mut HostPaths) {
        for contribution in &self.contributions {
            if let Some(account) = host.path_mut(contribution.path) {
                account.subflows = account.subflows.saturating_sub(1);
                account.update_unfinished(contribution.claimed, 0, self.short);
            }
        }
        self.contributions.clear();
        self.joins.clear();
    }
}

/// The address ID of an address of this host. The kernel requires one ID for each address; 0 is that of the first
/// subflow.
pub(super) fn address_id(ways: &[Way], own: IpAddr) -> u8 {
    let place = ways.iter().position(|way| way.path.address == own);
    place.map_or(0, |place| place as u8 + 1)
}
