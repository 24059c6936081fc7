//! A shell or a command behind an emulated path.

use std::io::IsTerminal;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};

use foundation::{Instant, Streams};
use network::{HostId, LinkCounters, LinkId, PathSpec, Topology};
use serde::Serialize;

use super::emulation::Emulation;
use super::host;
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
/// paths stand behind one another.
///
/// # Errors
/// What stands in the way of emulation, and a command that cannot be started.
pub fn run(options: ShellOptions) -> Result<ShellReport, Error> {
    let topology = Topology::path(&options.path);
    let nested = host::depth_here().is_some();
    let emulation = Emulation::start(EmulationOptions {
        mtu: options.mtu,
        nested,
        ..EmulationOptions::new(topology, options.streams)
    })?;
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
        spawned.map_err(|source| Error::System {
            what: format!("start {name}"),
            source,
        })
    };
    let mut server = match options.server {
        Some(command) => Some(spawn(FAR, environment(command, FAR, NEAR))?),
        None => None,
    };
    let mut command = environment(options.command, NEAR, FAR);
    let terminal = Terminal::hand_over(&mut command);
    let started = emulation.clock().now();
    let status = spawn(NEAR, command)?.wait();
    drop(terminal);
    let status = status.map_err(|source| Error::System {
        what: "wait for the command".into(),
        source,
    })?;
    if let Some(server) = &mut server {
        let _ = server.kill();
        let _ = server.wait();
    }
    Ok(report(&emulation, status, started))
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

/// The terminal while the command has it: then keys such as Ctrl-C are the command's alone.
struct Terminal {
    /// Whose it was.
    group: libc::pid_t,
}

impl Terminal {
    /// Has the command take the terminal over when it starts, if this process has it.
    fn hand_over(command: &mut Command) -> Option<Self> {
        // SAFETY: system calls that touch no memory.
        let (group, owner) = unsafe { (libc::getpgrp(), libc::tcgetpgrp(libc::STDIN_FILENO)) };
        if !std::io::stdin().is_terminal() || owner != group {
            return None;
        }
        command.process_group(0);
        // SAFETY: between fork and exec there are system calls alone.
        unsafe { command.pre_exec(|| take_terminal(libc::getpid())) };
        Some(Self { group })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = take_terminal(self.group);
    }
}

/// Makes a process group the one that the terminal belongs to.
fn take_terminal(group: libc::pid_t) -> std::io::Result<()> {
    // SAFETY: sets how this process takes a signal, and sets it back. Whoever takes the terminal from the background would be
    // stopped otherwise (`tcsetpgrp(3)`).
    unsafe {
        let before = libc::signal(libc::SIGTTOU, libc::SIG_IGN);
        let taken = libc::tcsetpgrp(libc::STDIN_FILENO, group);
        libc::signal(libc::SIGTTOU, before);
        match taken {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    }
}
