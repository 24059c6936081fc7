//! A flow over the kernel's MPTCP: its paths are those that the study's policy says, by orders to the kernel, or those of
//! the kernel's own path manager.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration as StdDuration;

use experiment::outcome::Sent;
use experiment::plan::{Group, Protocol};
use experiment::trace::{Probe, Side};
use foundation::{Problem, Size};
use kernel::mptcp::{
    Connection, Director, Events, MOST_SUBFLOWS, Manager, PathManager, Seen, Subflow, Way, is_enabled,
    path_manager, paths,
};
use network::HostId;
use socket2::SockRef;
use transport::mptcp::policy::{InKernel, PolicyConfig};
use transport::mptcp::scheduler::{MinRtt, SchedulerConfig};
use transport::mptcp::segment::PathIndex;
use transport::mptcp::{HostPaths, JoinAfter, MptcpConfig, Reinjection};

use super::flow::{Flow, Look};
use super::info::Info;
use super::settings::{KernelTcp, Names};
use super::tcp::{self, Setting};
use crate::Emulation;
use crate::error::Error;

/// How often a connection is looked at, and one that waits for a further subflow.
const WATCH: StdDuration = StdDuration::from_millis(10);
const WAIT: StdDuration = StdDuration::from_millis(1);

/// What hosts know of their paths, as in simulation.
pub(super) type Accounts = Mutex<Vec<HostPaths>>;

/// A thread that has panicked has said so; what it held is as good as it left it.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What to ask a kernel for.
///
/// # Errors
/// The keys that it has no knob for.
pub(super) fn kernel_of(config: &MptcpConfig, names: &Names) -> Result<KernelTcp, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut refuse = |key: &str, message: &str| problems.push(Problem::new(key, message));
    let own = &config.own;
    if !matches!(own.scheduler, None | Some(SchedulerConfig::MinRtt(MinRtt { .. }))) {
        refuse(
            "scheduler",
            "the kernel's MPTCP has a scheduler of its own, the nearest to which is \"min-rtt\": leave the key out",
        );
    }
    if config.filled().congestion().build(1460).is_coupled() {
        refuse(
            "congestion",
            "Linux couples no subflows: each has a controller of TCP's, such as \"cubic\" or \"reno\"",
        );
    }
    if own.reinjection == Some(Reinjection::Failure) {
        refuse(
            "reinjection",
            "the kernel's MPTCP has no knob for it: leave the key out",
        );
    }
    if own.join_after == Some(JoinAfter::Handshake) {
        refuse(
            "join_after",
            "the kernel's MPTCP lets subflows join when data was acknowledged: leave it out",
        );
    }
    if own.rejoin.is_some() {
        refuse(
            "rejoin",
            "the kernel's MPTCP has no knob for it: leave the key out",
        );
    }
    if own.shared_window == Some(false) {
        refuse(
            "shared_window",
            "the kernel's MPTCP has one window: leave the key out",
        );
    }
    if own.subflows.is_some() {
        refuse(
            "subflows",
            "the kernel's MPTCP has no such limit here: leave the key out",
        );
    }
    let beyond = config.policy().beyond_linux();
    problems.extend(beyond.into_iter().map(|problem| problem.within("policy")));
    match KernelTcp::of(&config.tcp, names) {
        Ok(kernel) if problems.is_empty() => Ok(KernelTcp {
            multipath: Some(config.policy()),
            // The default is the kernel's own; older kernels know no other one for MPTCP.
            segment: config.tcp.mss.map_or(0, Size::bytes) as u32,
            ..kernel
        }),
        Ok(_) => Err(problems),
        Err(more) => {
            problems.extend(more);
            Err(problems)
        }
    }
}

/// Readies the kernels of the hosts that run MPTCP. What is given is to be kept until the trial is over: a kernel whose
/// path manager is in user space takes subflows of its peers only while somebody listens.
pub(super) fn prepare(
    emulation: &Emulation,
    groups: &[Group],
    kernels: &[Option<KernelTcp>],
) -> Result<Vec<Events>, Error> {
    let (mut managers, mut listeners) = (BTreeMap::<HostId, PathManager>::new(), Vec::new());
    for (group, kernel) in groups.iter().zip(kernels) {
        let Some(policy) = kernel.as_ref().and_then(|kernel| kernel.multipath.as_ref()) else {
            continue;
        };
        if is_enabled().is_none() || path_manager().is_err() {
            return Err(Error::Missing {
                what: "the kernel's MPTCP with a path manager in user space".into(),
                remedy: "it takes Linux 6.5 or newer, built with CONFIG_MPTCP".into(),
            });
        }
        let manager = match policy {
            PolicyConfig::InKernel(InKernel {}) => PathManager::Kernel,
            _ => PathManager::User,
        };
        for pair in &group.pairs {
            for host in [pair.from, pair.to] {
                if u32::from(emulation.ways(host)) > MOST_SUBFLOWS {
                    let message = format!(
                        "{} paths: the kernel's MPTCP has at most {MOST_SUBFLOWS}",
                        emulation.ways(host)
                    );
                    return Err(Error::Option(Problem::new("protocol.kind", message)));
                }
            }
            let before = managers.insert(pair.from, manager);
            if before.is_some_and(|before| before != manager) {
                let message = "\"in-kernel\" and another policy at one host: a kernel has one path manager";
                return Err(Error::Option(Problem::new("protocol.policy", message)));
            }
            if before.is_none() {
                emulation.in_host(pair.from, || {
                    ready(manager).map(|events| listeners.extend(events))
                })?;
            }
            emulation.in_host(pair.to, || -> Result<(), Error> {
                super::super::host::set("net/mptcp/enabled", "1")?;
                told(Manager::open()?.set_limits(MOST_SUBFLOWS, MOST_SUBFLOWS))
            })?;
        }
    }
    Ok(listeners)
}

impl From<kernel::Error> for Error {
    fn from(error: kernel::Error) -> Self {
        match error {
            kernel::Error::Missing { what, remedy } => Self::Missing { what, remedy },
            kernel::Error::Permission { what, remedy } => Self::Permission { what, remedy },
            kernel::Error::System { what, source } => Self::System { what, source },
            kernel::Error::Option(problem) => Self::Option(problem),
        }
    }
}

fn told<T>(result: Result<T, kernel::Error>) -> Result<T, Error> {
    Ok(result?)
}

/// Readies the kernel of the host that the calling thread is at to open connections.
fn ready(manager: PathManager) -> Result<Option<Events>, Error> {
    super::super::host::set("net/mptcp/enabled", "1")?;
    let orders = Manager::open()?;
    orders.set_limits(MOST_SUBFLOWS, MOST_SUBFLOWS)?;
    match manager {
        PathManager::User => {
            super::super::host::set("net/mptcp/pm_type", "1")?;
            Ok(Some(Events::listen()?))
        }
        PathManager::Kernel => {
            let found = paths().map_err(|error| Error::from_system("look at a host's addresses", error))?;
            for path in found {
                orders.add_endpoint(&path)?;
            }
            Ok(None)
        }
    }
}

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
    let unknown = kernel::mptcp::Unknown::Told;
    let mut director = Director::open(setting.clock.now(), policy, size, unknown, host, random);
    let by_kernel = matches!(policy, PolicyConfig::InKernel(_));
    if by_kernel {
        director.leave_to_others();
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

/// The subflows of a connection, those that have closed as they were seen last.
#[derive(Default)]
struct Subflows(Mutex<BTreeMap<u32, Subflow>>);

impl Subflows {
    /// Looks at a connection; false where it is plain TCP.
    fn look(&self, socket: &TcpStream) -> io::Result<bool> {
        let Some(connection) = Connection::of(socket)? else {
            return Ok(false);
        };
        let mut known = locked(&self.0);
        for subflow in connection.subflows {
            known.insert(subflow.id, subflow);
        }
        Ok(true)
    }

    /// What all of them have done. Windows and what is in flight add up; the round-trip time is that of the fastest.
    fn told(&self) -> Look {
        let (mut sent, mut probe) = (Sent::default(), Probe::default());
        for subflow in locked(&self.0).values() {
            let info = Info::from(subflow.tcp);
            let one = info.probe();
            sent = sent.and(info.sent());
            probe.window = Some(probe.window.unwrap_or(0) + one.window.unwrap_or(0));
            probe.in_flight += one.in_flight;
            probe.retransmissions = Some(sent.retransmissions);
            probe.smoothed_rtt = match (probe.smoothed_rtt, one.smoothed_rtt) {
                (Some(least), Some(rtt)) => Some(least.min(rtt)),
                (least, rtt) => least.or(rtt),
            };
            probe.state = "open";
        }
        Look { sent, probe }
    }
}

/// The end that opens the flow, from its connection to its end.
pub(super) fn open(
    setting: &Setting<'_>,
    group: &Group,
    flow: &Flow,
    to: SocketAddr,
    mut beginning: Beginning,
) {
    let result = connect(setting, to, &beginning).and_then(|mut socket| {
        let subflows = std::sync::Arc::new(Subflows::default());
        watch(flow, &socket, &subflows);
        let over = AtomicBool::new(false);
        let looked_at = socket.try_clone()?;
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                if let Err(error) = direct(setting, flow, &looked_at, to, &mut beginning, &subflows, &over) {
                    flow.fail(error.to_string());
                }
            });
            let result = tcp::send(setting, group, flow, &mut socket);
            over.store(true, Ordering::Relaxed);
            result
        });
        flow.leave(Side::Sender);
        if setting.is_over() {
            let _ = SockRef::from(&socket).set_linger(Some(StdDuration::ZERO));
        }
        result
    });
    if let Err(error) = result {
        flow.fail(error.to_string());
    }
    flow.over.store(true, Ordering::Relaxed);
}

fn connect(setting: &Setting<'_>, to: SocketAddr, beginning: &Beginning) -> io::Result<TcpStream> {
    let first = beginning
        .ways
        .get(beginning.director.first().index())
        .filter(|_| !beginning.by_kernel);
    tcp::connect_from(setting, first.map(|&(address, _)| address), to)
}

fn watch(flow: &Flow, socket: &TcpStream, subflows: &std::sync::Arc<Subflows>) {
    let subflows = std::sync::Arc::clone(subflows);
    if let Ok(socket) = socket.try_clone() {
        let look = move || {
            subflows.look(&socket).ok()?;
            Some(subflows.told())
        };
        flow.watch(Side::Sender, Box::new(look));
    }
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
    let token = Connection::token(socket)
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
        let seen: Vec<(Seen, u64)> = locked(&subflows.0)
            .values()
            .filter_map(|subflow| {
                let path = PathIndex(place(subflow.peers.local.ip())? as u8);
                Some((
                    Seen {
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
        let seen: Vec<Seen> = seen.into_iter().map(|(seen, _)| seen).collect();
        let sent: u64 = seen
            .iter()
            .map(|seen| seen.tcp.bytes_acknowledged().saturating_sub(1))
            .sum();
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
