//! The paths of a connection of QUIC with several: the plan of the policy, and the estimates of the host.

use std::net::{IpAddr, Ipv4Addr};

use experiment::QuicConfig;
use experiment::outcome::PathBytes;
use experiment::plan::{Group, Pair, Protocol};
use foundation::{Generator, Instant};
use rand::{Rng as _, SeedableRng as _};
use socket::quic::Connection;
use transport::mptcp::{ConnectionPlan, PathPolicy};

use super::super::context::TrialContext;
use super::super::flow::{Flow, locked};
use crate::emulation::Emulation;

/// The start of a connection with several paths.
pub(in crate::trial) struct PathStart {
    pub(super) plan: ConnectionPlan,
    policy: Option<Box<dyn PathPolicy>>,
    /// Index of its estimates of paths.
    account: u32,
    /// The client's address and the number of each way.
    ways: Vec<(Ipv4Addr, u8)>,
}

/// Returns the paths of a group's next flow, as its policy selects; `None` of a flow with one path.
pub(in crate::trial) fn choose(
    context: &TrialContext<'_>,
    emulation: &Emulation,
    group: &mut Group,
    pair: u32,
    account: u32,
    size: Option<u64>,
) -> Option<PathStart> {
    let Protocol::Quic(config) = &group.protocol else {
        return None;
    };
    if !config.is_multipath() {
        return None;
    }
    // As in simulation.
    let mut random = Generator::seed_from_u64(group.paths.next_u64());
    let pair = &group.pairs[pair as usize];
    let host = &mut locked(context.accounts)[account as usize];
    let config = config.between(pair.ways.len());
    let (plan, policy) = config.plan(context.clock.now(), size, host, &mut random);
    Some(PathStart {
        plan,
        policy,
        account,
        ways: numbered(emulation, pair),
    })
}

/// Returns the client's address and the number of each way of two hosts.
fn numbered(emulation: &Emulation, pair: &Pair) -> Vec<(Ipv4Addr, u8)> {
    let ways = pair.ways.iter();
    ways.map(|way| (emulation.way_address(pair.from, way.number), way.number))
        .collect()
}

/// Returns the client's address of each way, if it moves between them.
pub(super) fn of_moves(emulation: &Emulation, config: &QuicConfig, pair: &Pair) -> Vec<IpAddr> {
    let ways = config.changes_path().then(|| numbered(emulation, pair));
    let ways = ways.into_iter().flatten();
    ways.map(|(address, _)| address.into()).collect()
}

impl PathStart {
    /// Returns the number of the way of the first path.
    pub(in crate::trial) fn first_way(&self) -> u8 {
        self.ways[self.plan.first.index()].1
    }

    /// Returns the client's address of each way.
    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        self.ways.iter().map(|&(address, _)| address.into()).collect()
    }

    /// Returns the paths of the server.
    pub(in crate::trial) fn server(&self) -> EndPaths {
        EndPaths {
            numbers: self.ways.iter().map(|&(_, number)| number).collect(),
            client: None,
        }
    }

    /// Returns the paths of the client.
    pub(super) fn into_client(self) -> EndPaths {
        EndPaths {
            numbers: self.ways.iter().map(|&(_, number)| number).collect(),
            client: Some((self.account, self.policy)),
        }
    }
}

/// The paths of an end.
pub(in crate::trial) struct EndPaths {
    /// The number of each way.
    numbers: Vec<u8>,
    /// Of the client: index of its estimates of paths, and the policy if it adds paths later.
    client: Option<(u32, Option<Box<dyn PathPolicy>>)>,
}

impl EndPaths {
    /// Passes round trips and acknowledged bytes to the estimates of the host, and opens the paths that the policy adds.
    pub(super) fn update_host(
        &mut self,
        context: &TrialContext<'_>,
        now: Instant,
        connection: &mut Connection,
    ) {
        if let Some((account, policy)) = &mut self.client {
            let host = &mut locked(context.accounts)[*account as usize];
            connection.update_host(now, context.clock.now(), policy.as_deref_mut(), host);
        }
    }

    /// Returns the payload of each way, and adds the ways with payload to the flow.
    pub(super) fn carried(&self, flow: &Flow, connection: &Connection) -> PathBytes {
        let mut carried = PathBytes::default();
        for path in connection.paths().filter(|path| path.bytes_sent > 0) {
            let number = self.numbers[usize::from(path.way)];
            carried.add(number, path.bytes_sent);
            flow.add_way(number);
        }
        carried
    }
}
