//! A flow over the kernel's MPTCP: its paths are those that the study's policy says, by orders to the kernel, or those of
//! the kernel's own path manager.

mod host;
mod subflows;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration as StdDuration;

use experiment::plan::{Group, Protocol};
use kernel::mptcp::{ConnectionInfo, Director, Manager, SubflowState, Way, paths};
use transport::mptcp::HostPaths;
use transport::mptcp::policy::PolicyConfig;
use transport::mptcp::segment::PathIndex;

use super::exchange::send;
use super::flow::{Flow, locked};
use super::tcp::{self, Setting};
use crate::Emulation;
use crate::error::Error;
pub(super) use host::{kernel_of, prepare};
use subflows::{Subflows, watch};

/// How often a connection is looked at, and one that waits for a further subflow.
const WATCH: StdDuration = StdDuration::from_millis(10);
const WAIT: StdDuration = StdDuration::from_millis(1);

/// What hosts know of their paths, as in simulation.
pub(super) type Accounts = Mutex<Vec<HostPaths>>;

/// How a connection of MPTCP begins.
pub(super) struct Beginning {
    /// Who opens its subflows; `None` where the kernel does.
    pub director: Director,
    /// Whether that is left to the kernel.
    pub by_kernel: bool,
    /// Which account of the host's paths it has.
    pub account: u32,
    /// This host's address and the number of each way that it may use, in the order of the account.
    pub ways: Vec<(Ipv4Addr, u8)>,
}

impl Beginning {
    /// The number of the way on which its first subflow opens.
    pub(super) fn first_way(&self) -> u8 {
        self.ways[self.director.first().index()].1
    }
}

/// What the policy of a group makes of its next flow.
pub(super) fn begin(
    setting: &Setting<'_>,
    emulation: &Emulation,
    group: &mut Group,
    pair: u32,
    account: u32,
    size: Option<u64>,
) -> Option<Beginning> {
    use rand::{Rng as _, SeedableRng as _};
    let policy = setting.kernel.multipath.as_ref()?;
    if !matches!(group.protocol, Protocol::Mptcp(_)) {
        return None;
    }
    // As in simulation.
    let random = foundation::Generator::seed_from_u64(group.paths.next_u64());
    let pair = &group.pairs[pair as usize];
    let host = &mut locked(setting.accounts)[account as usize];
    let unknown = kernel::mptcp::UnknownSize::AsUnknown;
    let mut director = Director::open(setting.clock.now(), policy, size, unknown, host, random);
    let by_kernel = matches!(policy, PolicyConfig::InKernel(_));
    if by_kernel {
        director.disable();
    }
    Some(Beginning {
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

/// The end that opens the flow, from its connection to its end.
pub(super) fn open(
    setting: &Setting<'_>,
    group: &Group,
    flow: &Flow,
    to: SocketAddr,
    mut beginning: Beginning,
) {
    let connected = connect(setting, to, &beginning);
    tcp::run(setting, flow, connected, |socket| {
        let subflows = Arc::new(Subflows::on(&beginning.ways));
        watch(flow, socket, &subflows);
        let over = AtomicBool::new(false);
        let looked_at = socket.try_clone()?;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if let Err(error) = direct(setting, flow, &looked_at, to, &mut beginning, &subflows, &over) {
                    flow.fail(error.to_string());
                }
            });
            let result = send(setting, group, flow, socket);
            over.store(true, Ordering::Relaxed);
            result
        })
    });
}

fn connect(setting: &Setting<'_>, to: SocketAddr, beginning: &Beginning) -> io::Result<TcpStream> {
    let first = beginning
        .ways
        .get(beginning.director.first().index())
        .filter(|_| !beginning.by_kernel);
    tcp::connect_from(setting, first.map(|&(address, _)| address), to)
}

/// Opens subflows when their time has come, and keeps the accounts, until the flow is over.
fn direct(
    setting: &Setting<'_>,
    flow: &Flow,
    socket: &TcpStream,
    to: SocketAddr,
    beginning: &mut Beginning,
    subflows: &Subflows,
    over: &AtomicBool,
) -> Result<(), Error> {
    let system = |error: io::Error| Error::from_system("look at a connection of MPTCP", error);
    let token = ConnectionInfo::token(socket)
        .map_err(system)?
        .ok_or_else(fallen_back)?;
    let manager = Manager::open()?;
    let devices = paths().map_err(system)?;
    let ways: Vec<Way> = beginning
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
        let last = over.load(Ordering::Relaxed) || setting.is_over();
        // A connection that is over may have forgotten what it was.
        if !subflows.look(socket).map_err(system)? && !last {
            return Err(fallen_back());
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
                flow.takes_way(beginning.ways[subflow.path.index()].1);
            }
        }
        let seen: Vec<SubflowState> = seen.into_iter().map(|(seen, _)| seen).collect();
        let sent: u64 = seen.iter().map(|seen| seen.tcp.bytes_acknowledged()).sum();
        let backlog = flow.id.size.map_or(0, |size| size.saturating_sub(sent));
        let mut accounts = locked(setting.accounts);
        let host = &mut accounts[beginning.account as usize];
        if last {
            beginning.director.end(host);
            return Ok(());
        }
        let now = setting.clock.now();
        let director = &mut beginning.director;
        director.advance(now, token, to.port(), &seen, backlog, host, &ways, &manager)?;
        drop(accounts);
        std::thread::sleep(if beginning.director.is_waiting() {
            WAIT
        } else {
            WATCH
        });
    }
}

fn fallen_back() -> Error {
    Error::System {
        what: "use several paths".into(),
        source: io::Error::other("the connection has fallen back to plain TCP"),
    }
}
