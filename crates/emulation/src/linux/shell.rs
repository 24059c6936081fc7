//! A shell or a command behind an emulated path.

mod report;

use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;

use foundation::{Duration, Streams};
use network::{PathSpec, Topology};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process};
use transport::tcp::TcpConfig;

use super::emulation::Emulation;
use super::host;
use super::stack::HostGateway;
use super::terminal::Terminal;
use crate::error::Error;
use crate::options::EmulationOptions;

use report::{FAR, NEAR};
pub use report::{HopReport, LinkReport, ShellReport};

/// Tells the command the address of the other end. Inside another one's shell that is the other end of both paths, unless
/// there is a server at this one's.
pub const PEER: &str = "LONGFAT_PEER";
/// Tells the command its own address.
pub const ADDRESS: &str = "LONGFAT_ADDRESS";

/// What to run, and behind which path.
#[derive(Debug)]
pub struct ShellOptions {
    /// The links of the path, behind one another; forward is from the command's host to the other.
    pub path: Vec<PathSpec>,
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
    pub const fn new(path: Vec<PathSpec>, streams: Streams, command: Command) -> Self {
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

/// Runs a command behind a path, with this process's standard streams, until it ends. Inside another one's shell the
/// paths stand behind one another. `stopped` is asked several times a second; once it says so, the command is told to
/// end, and made to where it does not.
///
/// # Errors
/// What stands in the way of emulation, and a command that cannot be started.
pub fn run(options: ShellOptions, stopped: &mut dyn FnMut() -> bool) -> Result<ShellReport, Error> {
    let topology = Topology::chain(&options.path);
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
    report::report(&emulation, status, started)
}

/// How often it is asked whether the command is to end.
const STOP_INTERVAL: Duration = Duration::from_millis(100);
/// What a command is told that is to end, and after how many looks: to end, that its terminal hangs up (which an
/// interactive shell follows, and the former it does not), and no more.
const STOP_SIGNALS: [(u32, Signal); 3] = [(0, Signal::TERM), (5, Signal::HUP), (20, Signal::KILL)];

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
    let (mut rounds, mut failure) = (0, None);
    while child
        .try_wait()
        .map_err(system("wait for the command"))?
        .is_none()
    {
        socket::wait::wait_any(&mut [PollFd::new(&handle, PollFlags::IN)], STOP_INTERVAL);
        failure = failure.or_else(&mut *failed);
        if rounds > 0 || failure.is_some() || stopped() {
            for (_, signal) in STOP_SIGNALS.iter().filter(|(when, _)| *when == rounds) {
                // It may have ended meanwhile.
                let _ = kill_process(process, *signal);
            }
            rounds += 1;
        }
    }
    let status = child.wait().map_err(system("wait for the command"))?;
    match failure {
        None => Ok(status),
        Some(error) => Err(system("carry the command's packets")(error)),
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
