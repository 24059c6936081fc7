//! A shell or a command behind an emulated path.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;

use foundation::{Duration, Instant, Streams};
use network::{HostId, LinkCounters, LinkId, PathSpec, Topology};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process};
use serde::Serialize;
use transport::tcp::TcpConfig;

use super::emulation::Emulation;
use super::host;
use super::stack::HostGateway;
use super::terminal::Terminal;
use crate::error::Error;
use crate::options::EmulationOptions;

/// The host at which the command runs.
const NEAR: HostId = HostId(0);
/// The host at the other end of the path.
const FAR: HostId = HostId(1);
/// Tells the command the address of the other end. Inside another one's shell that is the other end of both paths, unless
/// there is a server at this one's.
pub const PEER: &str = "LONGFAT_PEER";
/// Tells the command its own address.
pub const ADDRESS: &str = "LONGFAT_ADDRESS";

/// What to run, and behind which path.
#[derive(Debug)]
pub struct ShellOptions {
    /// The path; forward is from the command's host to the other.
    pub path: PathSpec,
    /// The source of what happens by chance.
    pub streams: Streams,
    /// The largest packet that hosts send, in bytes with all headers; default 1500.
    pub mtu: u32,
    /// The command.
    pub command: Command,
    /// A command at the other end, as a server, that is started first and ended with the shell; default none. The
    /// kernel there answers pings by itself.
    pub server: Option<Command>,
    /// Whether the connections of the command's host, and of the other, are carried by the project's TCP with these settings
    /// instead of the kernel's; default neither.
    pub tcp: [Option<Arc<TcpConfig>>; 2],
}

impl ShellOptions {
    /// A command behind a path, and nothing at the other end but the kernel.
    #[must_use]
    pub const fn new(path: PathSpec, streams: Streams, command: Command) -> Self {
        Self {
            path,
            streams,
            mtu: 1500,
            command,
            server: None,
            tcp: [None, None],
        }
    }
}

/// The user's shell (`SHELL`), or else `/bin/sh`.
#[must_use]
pub fn default_command() -> Command {
    Command::new(std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into()))
}

/// What happened behind the path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShellReport {
    /// The command's exit code; 128 and the signal's number where a signal ended it, as shells tell it.
    pub code: i32,
    /// How long the command ran, in seconds.
    pub seconds: f64,
    /// From the command's host to the other.
    pub forward: LinkReport,
    /// And back.
    pub reverse: LinkReport,
}

/// What a link did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkReport {
    /// Packets that entered.
    pub packets: u64,
    /// Packets that reached the far end.
    pub delivered: u64,
    /// Bytes that reached the far end, in whole packets.
    pub delivered_bytes: u64,
    /// Packets dropped by the loss model.
    pub lost: u64,
    /// Packets dropped by the queue.
    pub queue_dropped: u64,
    /// Packets dropped as larger than the MTU.
    pub mtu_dropped: u64,
    /// Packets marked as having met congestion (RFC 3168).
    pub marked: u64,
    /// Second copies made.
    pub duplicated: u64,
    /// Packets in which a bit was flipped.
    pub corrupted: u64,
    /// Packets that overtook none and were overtaken.
    pub reordered: u64,
    /// Part of the packets that the loss model dropped, 0 to 1; null without any packet.
    pub loss: Option<f64>,
    /// Bytes sent over the time that the link was sending, in bit/s; null for a link without a rate.
    pub rate_bps: Option<f64>,
    /// Median of the delay that packets had, waiting included, from when the emulator read them to when it wrote them, in
    /// seconds; null without any packet.
    pub delay_p50_s: Option<f64>,
    /// 99th percentile of that delay, in seconds.
    pub delay_p99_s: Option<f64>,
    /// Most packets in the queue at once.
    pub max_queue_packets: u64,
}

/// Runs a command behind a path, with this process's standard streams, until it ends. Inside another one's shell the
/// paths stand behind one another. `stopped` is asked several times a second; once it says so, the command is told to
/// end, and made to where it does not.
///
/// # Errors
/// What stands in the way of emulation, and a command that cannot be started.
pub fn run(options: ShellOptions, stopped: &mut dyn FnMut() -> bool) -> Result<ShellReport, Error> {
    let topology = Topology::path(&options.path);
    let nested = host::depth_here().is_some();
    let emulation = Emulation::start(EmulationOptions {
        mtu: options.mtu,
        nested,
        ..EmulationOptions::new(topology, options.streams)
    })?;
    let mut gateways = Vec::new();
    for (host, config) in [NEAR, FAR].into_iter().zip(&options.tcp) {
        if let Some(config) = config {
            let secret = options.streams.component(&format!("gateway/{}", host.0));
            let gateway = HostGateway::start(&emulation, host, Arc::clone(config), secret);
            gateways.push(gateway.map_err(|source| Error::System {
                what: "attach a stack to a host".into(),
                source,
            })?);
        }
    }
    let served = options.server.is_some();
    let environment = |mut command: Command, own, peer| {
        command.env(ADDRESS, emulation.host_address(own).to_string());
        // Behind two paths the other end is that of both, unless something is at this one's.
        if !nested || served || std::env::var_os(PEER).is_none() {
            command.env(PEER, emulation.host_address(peer).to_string());
        }
        command
    };
    let spawn = |host, command: Command| {
        let name = command.get_program().to_string_lossy().into_owned();
        let spawned = emulation.spawn_in_host(host, command);
        spawned.map_err(|source| Error::Command { name, source })
    };
    let mut server = match options.server {
        Some(command) => Some(spawn(FAR, environment(command, FAR, NEAR))?),
        None => None,
    };
    let mut command = environment(options.command, NEAR, FAR);
    let terminal = Terminal::hand_over(&mut command);
    let started = emulation.clock().now();
    let mut failed = || {
        gateways
            .iter_mut()
            .find_map(HostGateway::failure)
            .or_else(|| (!emulation.is_running()).then(|| std::io::Error::other("the emulator has failed")))
    };
    let status = wait(&mut spawn(NEAR, command)?, stopped, &mut failed);
    drop(terminal);
    let status = status?;
    if let Some(server) = &mut server {
        let _ = server.kill();
        let _ = server.wait();
    }
    Ok(report(&emulation, status, started))
}

/// How often it is asked whether the command is to end.
const LOOK: Duration = Duration::from_millis(100);
/// What a command is told that is to end, and after how many looks: to end, that its terminal hangs up (which an
/// interactive shell follows, and the former it does not), and no more.
const ENDING: [(u32, Signal); 3] = [(0, Signal::TERM), (5, Signal::HUP), (20, Signal::KILL)];

/// Waits until the command has ended. It is told to end where `stopped` says so, and where `failed` tells that what
/// carries its packets has ended before it, which is then the error.
fn wait(
    child: &mut Child,
    stopped: &mut dyn FnMut() -> bool,
    failed: &mut dyn FnMut() -> Option<std::io::Error>,
) -> Result<ExitStatus, Error> {
    let system = |what: &str| {
        let what = what.to_owned();
        move |source| Error::System { what, source }
    };
    let process = Pid::from_child(child);
    let handle = rustix::process::pidfd_open(process, PidfdFlags::empty())
        .map_err(|error| system("wait for the command")(error.into()))?;
    let (mut told, mut failure) = (0, None);
    while child
        .try_wait()
        .map_err(system("wait for the command"))?
        .is_none()
    {
        socket::wait::wait_any(&mut [PollFd::new(&handle, PollFlags::IN)], LOOK);
        failure = failure.or_else(&mut *failed);
        if told > 0 || failure.is_some() || stopped() {
            for (_, signal) in ENDING.iter().filter(|(when, _)| *when == told) {
                // It may have ended meanwhile.
                let _ = kill_process(process, *signal);
            }
            told += 1;
        }
    }
    let status = child.wait().map_err(system("wait for the command"))?;
    match failure {
        None => Ok(status),
        Some(error) => Err(system("carry the command's packets")(error)),
    }
}

fn report(emulation: &Emulation, status: ExitStatus, started: Instant) -> ShellReport {
    let seen = emulation.with_network(|network, now| {
        [LinkId(0), LinkId(1)].map(|link| {
            let counters = *network.counters(link);
            // What is still under way has been sent, what still stands in the queue has not.
            let sent = (counters.entered.bytes + counters.duplicated.bytes)
                .saturating_sub(
                    counters.lost.bytes + counters.queue_dropped.bytes + counters.mtu_dropped.bytes,
                )
                .saturating_sub(network.queue(link, now).bytes);
            (counters, sent, network.occupancy(link, now).busy)
        })
    });
    let done = emulation.report();
    let link = |link: usize, to: HostId| {
        let (counters, sent, busy): (LinkCounters, _, _) = seen[link];
        let delays = &done.delays[to.0 as usize];
        let delay = |q| (!delays.is_empty()).then(|| delays.value_at_quantile(q) as f64 / 1e9);
        let packets = counters.entered.packets;
        LinkReport {
            packets,
            delivered: counters.delivered.packets,
            delivered_bytes: counters.delivered.bytes,
            lost: counters.lost.packets,
            queue_dropped: counters.queue_dropped.packets,
            mtu_dropped: counters.mtu_dropped.packets,
            marked: counters.marked.packets,
            duplicated: counters.duplicated.packets,
            corrupted: counters.corrupted.packets,
            reordered: counters.reordered.packets,
            loss: (packets > 0).then(|| counters.lost.packets as f64 / packets as f64),
            rate_bps: (!busy.is_zero()).then(|| sent as f64 * 8.0 / busy.as_secs_f64()),
            delay_p50_s: delay(0.5),
            delay_p99_s: delay(0.99),
            max_queue_packets: counters.max_queue_packets,
        }
    };
    ShellReport {
        code: status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
        seconds: (emulation.clock().now() - started).as_secs_f64(),
        forward: link(0, FAR),
        reverse: link(1, NEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_whose_packets_nobody_carries_is_ended() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let mut failed = || Some(std::io::Error::other("its thread has panicked: a bug"));
        let error = wait(&mut child, &mut || false, &mut failed)
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "cannot carry the command's packets: its thread has panicked: a bug"
        );
        assert!(child.try_wait().unwrap().is_some());
    }

    #[test]
    fn a_command_that_ends_by_itself_tells_its_status() {
        let mut child = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        let status = wait(&mut child, &mut || false, &mut || None).unwrap();
        assert_eq!(status.code(), Some(3));
    }
}
