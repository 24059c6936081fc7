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
use super::stack::HostGateway;
use super::terminal::Terminal;
use super::{default_controller, host};
use crate::error::Error;
use crate::options::EmulationOptions;

use report::{FAR, NEAR};
pub use report::{HopReport, LinkReport, ShellReport};

/// Environment variable with the address of the other end. In a nested shell this is the far end of all paths, unless
/// the inner shell has a server.
pub const PEER: &str = "LONGFAT_PEER";
/// Environment variable with the command's own address.
pub const ADDRESS: &str = "LONGFAT_ADDRESS";

/// Options of a shell.
#[derive(Debug)]
pub struct ShellOptions {
    /// The links of the path in order; forward is away from the command.
    pub path: Vec<PathSpec>,
    /// Source of randomness.
    pub streams: Streams,
    /// MTU in bytes with all headers; default 1500.
    pub mtu: u32,
    /// The command to run.
    pub command: Command,
    /// A command at the other end, started first and killed with the shell; default none. The kernel there answers
    /// pings.
    pub server: Option<Command>,
    /// The project's TCP instead of the kernel's, at the command's host and at the other end; default neither.
    pub tcp: [Option<Arc<TcpConfig>>; 2],
}

impl ShellOptions {
    /// A command behind a path, without a server.
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

/// Runs a command behind a path until it exits, with this process's standard streams. Paths of nested shells follow
/// each other. `stopped` is called several times a second; once it returns true, the command gets signals up to
/// SIGKILL.
///
/// # Errors
/// Those of [`Emulation::start`], and a command that does not start.
pub fn run(options: ShellOptions, stopped: &mut dyn FnMut() -> bool) -> Result<ShellReport, Error> {
    let topology = Topology::chain(&options.path);
    let nested = host::depth_here().is_some();
    let emulation = Emulation::start(EmulationOptions {
        mtu: options.mtu,
        nested,
        ..EmulationOptions::new(topology, options.streams)
    })?;
    let uses_kernel = options.tcp.iter().any(Option::is_none);
    let kernel_controller = uses_kernel
        .then(|| emulation.in_host(NEAR, default_controller::here))
        .flatten();
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
        // In a nested shell the other end is the outer one's, unless this path has a server.
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
    let mut ended = None;
    if let Some(server) = &mut server {
        ended = server.try_wait().ok().flatten();
        let _ = server.kill();
        let _ = server.wait();
    }
    report::report(&emulation, status, ended, started, kernel_controller)
}

/// Interval between calls of `stopped`.
const STOP_INTERVAL: Duration = Duration::from_millis(100);
/// Signals to a command that must stop, after this many intervals: SIGTERM, SIGHUP (interactive shells ignore SIGTERM),
/// SIGKILL.
const STOP_SIGNALS: [(u32, Signal); 3] = [(0, Signal::TERM), (5, Signal::HUP), (20, Signal::KILL)];

/// Waits until the command exits, and stops it once `stopped` returns true or `failed` returns an error, which becomes
/// the result.
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
                // It may have exited meanwhile.
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
    fn stops_the_command_when_the_gateway_fails() {
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
    fn returns_the_status_of_a_command() {
        let mut child = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        let status = wait(&mut child, &mut || false, &mut || None).unwrap();
        assert_eq!(status.code(), Some(3));
    }
}
