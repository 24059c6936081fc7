//! A flow over the kernel's MPTCP. Its subflows are opened by the study's policy or by the kernel's path manager.

mod host;
mod subflows;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as StdDuration;

use experiment::plan::{Group, Protocol};
use kernel::mptcp::{ConnectionInfo, Director, Manager, SubflowState, Way, paths};
use transport::mptcp::policy::PolicyConfig;
use transport::mptcp::segment::PathIndex;

use super::context::TrialContext;
use super::exchange::send;
use super::flow::{Flow, locked};
use super::{sockets, tcp};
use crate::emulation::Emulation;
use crate::error::{Error, system_error};
pub(super) use host::{kernel_of, prepare};
use subflows::{Subflows, watch};

/// Interval between reads of a connection, and of one that may open a further subflow.
const ACTIVE_INTERVAL: StdDuration = StdDuration::from_millis(10);
const JOIN_INTERVAL: StdDuration = StdDuration::from_millis(1);

/// The start of an MPTCP connection.
pub(super) struct MultipathStart {
    /// Opens its subflows.
    pub director: Director,
    /// Whether the kernel opens them instead.
    pub by_kernel: bool,
    /// Index of its account of paths.
    pub account: u32,
    /// Local address and number of each way, in the order of the account.
    pub ways: Vec<(Ipv4Addr, u8)>,
}

impl MultipathStart {
    /// The number of the way of its first subflow.
    pub(super) fn first_way(&self) -> u8 {
        self.ways[self.director.first().index()].1
    }
}

/// Returns the paths of a group's next flow, as its policy chooses; `None` for a flow without MPTCP.
pub(super) fn choose(
    context: &TrialContext<'_>,
    emulation: &Emulation,
    group: &mut Group,
    pair: u32,
    account: u32,
    size: Option<u64>,
) -> Option<MultipathStart> {
    use rand::{Rng as _, SeedableRng as _};
    let policy = context.kernel.multipath.as_ref()?;
    if !matches!(group.protocol, Protocol::Mptcp(_)) {
        return None;
    }
    // As in simulation.
    let random = foundation::Generator::seed_from_u64(group.paths.next_u64());
    let pair = &group.pairs[pair as usize];
    let host = &mut locked(context.accounts)[account as usize];
    let unknown = kernel::mptcp::UnknownSize::AsUnknown;
    let mut director = Director::open(context.clock.now(), policy, size, unknown, host, random);
    let by_kernel = matches!(policy, PolicyConfig::InKernel(_));
    if by_kernel {
        director.disable();
    }
    Some(MultipathStart {
        director,
        by_kernel,
        account,
        ways: pair
            .ways
            .iter()
            .map(|way| (emulation.way_address(pair.from, way.number), way.number))
            .collect(),
    })
}

/// Runs the opening end of a flow.
pub(super) fn open(
    context: &TrialContext<'_>,
    group: &Group,
    flow: &Flow,
    to: SocketAddr,
    mut choice: MultipathStart,
) {
    let connected = connect(context, to, &choice);
    tcp::run(context, flow, connected, |socket| {
        let subflows = Arc::new(Subflows::on(&choice.ways));
        watch(flow, socket, &subflows);
        let over = AtomicBool::new(false);
        let watched = socket.try_clone()?;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if let Err(error) =
                    manage_subflows(context, flow, &watched, to, &mut choice, &subflows, &over)
                {
                    flow.fail(error.to_string());
                }
            });
            let result = send(context, group, flow, socket);
            over.store(true, Ordering::Relaxed);
            result
        })
    });
}

fn connect(context: &TrialContext<'_>, to: SocketAddr, choice: &MultipathStart) -> io::Result<TcpStream> {
    let first = choice
        .ways
        .get(choice.director.first().index())
        .filter(|_| !choice.by_kernel);
    sockets::connect(context.kernel, first.map(|&(address, _)| address), to)
}

/// Opens due subflows and updates the accounts until the flow ends.
fn manage_subflows(
    context: &TrialContext<'_>,
    flow: &Flow,
    socket: &TcpStream,
    to: SocketAddr,
    choice: &mut MultipathStart,
    subflows: &Subflows,
    over: &AtomicBool,
) -> Result<(), Error> {
    let system = |error: io::Error| system_error("read an MPTCP connection", error);
    let token = ConnectionInfo::token(socket)
        .map_err(system)?
        .ok_or_else(fallback_error)?;
    let manager = Manager::open()?;
    let devices = paths().map_err(system)?;
    let ways: Vec<Way> = choice
        .ways
        .iter()
        .filter_map(|&(address, _)| {
            let path = devices.iter().find(|path| path.address == IpAddr::V4(address))?;
            Some(Way {
                path: *path,
                remote: to.ip(),
                port: None,
            })
        })
        .collect();
    let place = |own: IpAddr| ways.iter().position(|way| way.path.address == own);
    loop {
        let last = over.load(Ordering::Relaxed) || context.is_over();
        // A closed connection may no longer be MPTCP.
        if !subflows.update(socket).map_err(system)? && !last {
            return Err(fallback_error());
        }
        let seen: Vec<(SubflowState, u64)> = subflows
            .known()
            .values()
            .filter_map(|subflow| {
                let path = PathIndex(place(subflow.pair.local.ip())? as u8);
                Some((
                    SubflowState {
                        path,
                        tcp: subflow.tcp,
                    },
                    subflow.tcp.bytes_sent(),
                ))
            })
            .collect();
        for (subflow, sent) in &seen {
            if *sent > 0 {
                flow.add_way(choice.ways[subflow.path.index()].1);
            }
        }
        let seen: Vec<SubflowState> = seen.into_iter().map(|(seen, _)| seen).collect();
        let sent: u64 = seen.iter().map(|seen| seen.tcp.bytes_acknowledged()).sum();
        let backlog = flow.id.size.map_or(0, |size| size.saturating_sub(sent));
        let mut accounts = locked(context.accounts);
        let host = &mut accounts[choice.account as usize];
        if last {
            choice.director.end(host);
            return Ok(());
        }
        let now = context.clock.now();
        let director = &mut choice.director;
        director.advance(now, token, to.port(), &seen, backlog, host, &ways, &manager)?;
        drop(accounts);
        std::thread::sleep(if choice.director.is_waiting() {
            JOIN_INTERVAL
        } else {
            ACTIVE_INTERVAL
        });
    }
}

fn fallback_error() -> Error {
    Error::System {
        what: "use several paths".into(),
        source: io::Error::other("the connection fell back to plain TCP"),
    }
}
