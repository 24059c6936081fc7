//! A path policy over one connection of the kernel's: the policies are those of the project's own MPTCP, the orders go to
//! the kernel.

use std::net::{IpAddr, SocketAddr};

use foundation::{Duration, Generator, Instant};
use transport::mptcp::host::HostPaths;
use transport::mptcp::policy::{Join, JoinTime, PathPolicy, PolicyConfig, Progress};
use transport::mptcp::segment::PathIndex;

use super::manager::Manager;
use super::paths::Path;
use crate::error::Error;
use crate::tcp_info::TcpInfo;

/// A way to a peer: a path of this host, and the address that the peer has there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// This end.
    pub path: Path,
    /// The other one.
    pub remote: IpAddr,
    /// Its port, where that is not the connection's.
    pub port: Option<u16>,
}

/// A subflow as it was seen last.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Its path, by its place among the ways.
    pub path: PathIndex,
    /// Its TCP.
    pub tcp: TcpInfo,
}

/// What a policy is told where nobody says how much a connection will send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// That it is unknown.
    Told,
    /// What it has sent so far, again and again: it joins more paths as it grows.
    Grows,
}

/// What was told to the host's account of one subflow.
#[derive(Clone, Copy, Debug)]
struct Told {
    path: PathIndex,
    acknowledged: u64,
    lost: u32,
    claimed: u64,
}

/// Opens the subflows of one connection as its policy says.
#[derive(Debug)]
pub struct Director {
    policy: Box<dyn PathPolicy>,
    unknown: Option<Unknown>,
    random: Generator,
    first: PathIndex,
    joins: Vec<Join>,
    used: Vec<PathIndex>,
    /// Paths that there are no longer.
    gone: Vec<PathIndex>,
    expected: Vec<(PathIndex, u64)>,
    short: bool,
    opened_at: Instant,
    joinable_since: Option<Instant>,
    acknowledged: u64,
    told: Vec<Told>,
}

/// `ENOTCONN`, the kernel's answer until data was acknowledged, and `EAGAIN`-like ones that pass by themselves.
const NOT_YET: [i32; 1] = [libc::ENOTCONN];

impl Director {
    /// A connection is about to be opened to a host whose paths are as `host` says. `size`: the bytes that it will send,
    /// where that is known; `unknown`: what is made of it where it is not. `random` is what the policy draws from.
    pub fn open(
        now: Instant,
        policy: &PolicyConfig,
        size: Option<u64>,
        unknown: Unknown,
        host: &mut HostPaths,
        mut random: Generator,
    ) -> Self {
        let mut policy = policy.build();
        let grows = size.is_none() && unknown == Unknown::Grows;
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
            told: Vec::new(),
        }
    }

    /// The path of the first subflow.
    #[must_use]
    pub const fn first(&self) -> PathIndex {
        self.first
    }

    /// The first subflow is on another path than the policy chose: whoever opened the connection did not ask.
    pub fn has_begun_on(&mut self, path: PathIndex) {
        if path == self.first {
            return;
        }
        self.joins.retain(|join| join.path != path);
        if !self.used.contains(&path) {
            self.used.push(path);
        }
        // Where one path was to be enough, one is enough.
        self.used
            .retain(|used| *used != self.first || self.joins.iter().any(|join| join.path == *used));
        self.first = path;
    }

    /// Somebody else opens the subflows; the accounts are kept all the same.
    pub fn leave_to_others(&mut self) {
        self.joins.clear();
    }

    /// Whether a subflow was ordered over a path, or the connection has begun on it.
    #[must_use]
    pub fn uses(&self, path: PathIndex) -> bool {
        self.used.contains(&path) && !self.joins.iter().any(|join| join.path == path)
    }

    /// A path is gone, with its subflow.
    pub fn loses(&mut self, path: PathIndex) {
        self.joins.retain(|join| join.path != path);
        self.used.retain(|used| *used != path);
        self.gone.push(path);
    }

    /// Paths have come or gone: what the policy would use of them now joins, as far as the connection has fewer than it wants.
    /// One that has none left takes the path of least round-trip time. `size` as in [`Self::open`].
    pub fn reconsider(&mut self, size: Option<u64>, host: &HostPaths) {
        let grows = self.unknown == Some(Unknown::Grows);
        let size = size.or(grows.then_some(self.acknowledged.max(1)));
        let opening = self.policy.open(size, host, &mut self.random);
        let wanted = 1 + opening.joins.len();
        let fallback = host.by(|path| path.rtt).into_iter().map(Join::immediately);
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

    /// Whether subflows are still to be opened, or may be.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.joins.is_empty() || self.policy.follows_progress() || self.unknown == Some(Unknown::Grows)
    }

    /// Looks at the connection's subflows, tells the host's account of them, and opens those whose time has come.
    /// `backlog`: bytes that are written and not acknowledged, where that is known. Gives the paths that were ordered now.
    ///
    /// # Errors
    /// The kernel's, where it refuses an order for good: that path is not tried again.
    #[expect(
        clippy::too_many_arguments,
        reason = "one look at a connection, its host and its peer"
    )]
    pub fn advance(
        &mut self,
        now: Instant,
        token: u32,
        to: u16,
        seen: &[Seen],
        backlog: u64,
        host: &mut HostPaths,
        ways: &[Way],
        manager: &Manager,
    ) -> Result<Vec<PathIndex>, Error> {
        self.tell(now, seen, host);
        if self.acknowledged > 0 && self.joinable_since.is_none() {
            self.joinable_since = Some(now);
        }
        self.decide(now, backlog, host);
        self.order(now, token, to, ways, manager)
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
        } else if self.unknown == Some(Unknown::Grows) {
            let opening = self.policy.open(Some(self.acknowledged), host, &mut self.random);
            // A policy of one path chooses a further one each time it is asked.
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

    fn order(
        &mut self,
        now: Instant,
        token: u32,
        to: u16,
        ways: &[Way],
        manager: &Manager,
    ) -> Result<Vec<PathIndex>, Error> {
        let (mut ordered, mut refused) = (Vec::new(), None);
        let Some(since) = self.joinable_since else {
            return Ok(ordered);
        };
        let acknowledged = self.acknowledged;
        let is_due = |join: &Join| match join.when {
            JoinTime::Immediately => true,
            JoinTime::AfterBytes(bytes) => acknowledged >= bytes,
            JoinTime::AfterTime(time) => since + time <= now,
        };
        self.joins.retain(|join| {
            let Some(way) = ways.get(join.path.index()).filter(|_| is_due(join)) else {
                return true;
            };
            let remote = SocketAddr::new(way.remote, way.port.unwrap_or(to));
            match manager.create_subflow(token, &way.path, number(ways, way.path.address), remote) {
                Ok(()) => ordered.push(join.path),
                Err(error)
                    if error
                        .raw_os_error()
                        .is_some_and(|number| NOT_YET.contains(&number)) =>
                {
                    return true;
                }
                Err(error) => refused = Some(error),
            }
            false
        });
        refused.map_or(Ok(ordered), Err)
    }

    /// Tells the host's account what the subflows have done since it was told last.
    fn tell(&mut self, now: Instant, seen: &[Seen], host: &mut HostPaths) {
        for subflow in seen {
            let micros = u64::from(subflow.tcp.smoothed_rtt_us());
            if micros > 0 {
                host.on_round_trip(subflow.path, Duration::from_micros(micros));
            }
            let place = self.place(subflow.path, host);
            let Some(account) = host.path_mut(subflow.path) else {
                continue;
            };
            let told = &mut self.told[place];
            let acknowledged = subflow.tcp.bytes_acknowledged();
            let more = acknowledged.saturating_sub(told.acknowledged);
            self.acknowledged += more;
            told.acknowledged = told.acknowledged.max(acknowledged);
            let lost = subflow.tcp.retransmissions();
            let more_lost = u64::from(lost.saturating_sub(told.lost));
            told.lost = told.lost.max(lost);
            let expected = self.expected.iter().find(|(path, _)| *path == subflow.path);
            let expected = expected.map_or(0, |&(_, bytes)| bytes);
            let outstanding = subflow.tcp.bytes_sent().saturating_sub(acknowledged);
            let claim = outstanding.max(expected.saturating_sub(acknowledged));
            move_claim(account, told, claim, self.short);
            host.on_delivery(subflow.path, now, more, more_lost);
        }
    }

    fn place(&mut self, path: PathIndex, host: &mut HostPaths) -> usize {
        if let Some(place) = self.told.iter().position(|told| told.path == path) {
            return place;
        }
        if let Some(account) = host.path_mut(path) {
            account.subflows += 1;
        }
        self.told.push(Told {
            path,
            acknowledged: 0,
            lost: 0,
            claimed: 0,
        });
        self.told.len() - 1
    }

    /// The connection is over: nothing of it is on the host's account any more.
    pub fn end(&mut self, host: &mut HostPaths) {
        for told in &mut self.told {
            if let Some(account) = host.path_mut(told.path) {
                account.subflows = account.subflows.saturating_sub(1);
                move_claim(account, told, 0, self.short);
            }
        }
        self.told.clear();
        self.joins.clear();
    }
}

/// The number of an address of this host among those of the ways: the kernel knows each under one alone, and 0 is that of the
/// first subflow.
pub(super) fn number(ways: &[Way], own: IpAddr) -> u8 {
    let place = ways.iter().position(|way| way.path.address == own);
    place.map_or(0, |place| place as u8 + 1)
}

fn move_claim(account: &mut transport::mptcp::host::PathState, told: &mut Told, claim: u64, short: bool) {
    account.unfinished = account.unfinished.saturating_sub(told.claimed) + claim;
    if short {
        account.short = account.short.saturating_sub(told.claimed) + claim;
    }
    told.claimed = claim;
}
