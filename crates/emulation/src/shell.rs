//! A shell or a command behind an emulated path.

mod listening;
mod report;
mod stopping;

use std::net::Ipv6Addr;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

use foundation::Streams;
use network::{PathSpec, Topology};
use transport::tcp::TcpConfig;

use super::emulation::Emulation;
use super::host;
use super::stack::HostGateway;
use super::terminal::Terminal;
use crate::error::Error;
use crate::options::{EmulationOptions, ProgramOptions};

pub use listening::ListeningPort;
use report::{FAR, NEAR};
pub use report::{HopReport, LinkReport, ShellReport};
pub use stopping::StopRequest;
use stopping::Stopping;

/// Environment variable with the address of the other end. In a nested shell this is the far end of all paths, unless
/// the inner shell has a server.
pub const PEER: &str = "LONGFAT_PEER";
/// Environment variable with the IPv6 address of the other end, as [`PEER`].
pub const PEER_V6: &str = "LONGFAT_PEER6";
/// Environment variable with the command's own IPv6 address.
pub const ADDRESS_V6: &str = "LONGFAT_ADDRESS6";
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
    /// A command at the other end, started first and stopped with the command; default none. The kernel there answers
    /// pings.
    pub server: Option<Command>,
    /// The port at which the server must listen before the command starts; default: the command starts at once.
    pub wait_port: Option<ListeningPort>,
    /// Settings of the hosts.
    pub programs: ProgramOptions,
    /// The project's TCP instead of the kernel's, at the command's host and at the other end; default neither.
    pub tcp: [Option<Arc<TcpConfig>>; 2],
}

impl ShellOptions {
    /// A command behind a path, without a server.
    #[must_use]
    pub fn new(path: Vec<PathSpec>, streams: Streams, command: Command) -> Self {
        Self {
            path,
            streams,
            mtu: 1500,
            command,
            server: None,
            wait_port: None,
            programs: ProgramOptions::default(),
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
/// each other. `requested` is called several times a second; once it returns a request to stop, the command gets signals
/// up to SIGKILL. At the end the server and other remaining commands get SIGTERM and, after 5 s (1.5 s after a request),
/// SIGKILL.
///
/// # Errors
/// Those of [`Emulation::start`], a command that does not start, a server that does not listen, and a capture that cannot
/// be written.
pub fn run(
    options: ShellOptions,
    requested: &mut dyn FnMut() -> Option<StopRequest>,
) -> Result<ShellReport, Error> {
    let topology = Topology::chain(&options.path);
    let hosts = topology.hosts().to_vec();
    let nested = host::depth_here().is_some();
    let mut kernel = options.programs.kernel();
    // The project's TCP carries IPv4 only.
    kernel.has_ipv6 = options.tcp.iter().all(Option::is_none);
    let emulation = Emulation::start(EmulationOptions {
        mtu: options.mtu,
        nested,
        kernel,
        ..EmulationOptions::new(topology, options.streams)
    })?;
    let uses_kernel = options.tcp.iter().any(Option::is_none);
    let kernel_controller = uses_kernel
        .then(|| emulation.controller(NEAR, options.programs.congestion.as_deref()))
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
    let capture = options.programs.pcapng.as_deref();
    let capture = capture.map(|file| emulation.capture(file, &hosts)).transpose()?;
    let served = options.server.is_some();
    let environment = |mut command: Command, own, peer| {
        command.env(ADDRESS, emulation.host_address(own).to_string());
        let set = |command: &mut Command, name, address: Option<Ipv6Addr>| {
            match address {
                Some(address) => command.env(name, address.to_string()),
                None => command.env_remove(name),
            };
        };
        set(&mut command, ADDRESS_V6, emulation.host_address_v6(own));
        // In a nested shell the other end is the outer one's, unless this path has a server.
        if !nested || served || std::env::var_os(PEER).is_none() {
            command.env(PEER, emulation.host_address(peer).to_string());
            set(&mut command, PEER_V6, emulation.host_address_v6(peer));
        }
        command
    };
    let spawn = |host, command: Command| {
        let name = command.get_program().to_string_lossy().into_owned();
        let spawned = emulation.spawn_in_host(host, command);
        spawned.map_err(|source| Error::Command { name, source })
    };
    let mut request = Stopping::new(requested);
    let mut server = match options.server {
        Some(mut command) => {
            command.process_group(0);
            Some(spawn(FAR, environment(command, FAR, NEAR))?)
        }
        None => None,
    };
    let mut ended = None;
    let run_command = || -> Result<_, Error> {
        if let (Some(port), Some(server)) = (options.wait_port, &mut server) {
            listening::wait(&emulation, FAR, port, server, &mut request)?;
        }
        let mut command = environment(options.command, NEAR, FAR);
        let terminal = Terminal::hand_over(&mut command);
        let started = emulation.clock().now();
        let mut failed = || {
            gateways.iter_mut().find_map(HostGateway::failure).or_else(|| {
                (!emulation.is_running()).then(|| std::io::Error::other("the emulator has failed"))
            })
        };
        let mut child = spawn(NEAR, command)?;
        let status = request.wait(&mut child, terminal.is_some(), &mut failed)?;
        drop(terminal);
        ended = server
            .as_mut()
            .and_then(|server| server.try_wait().ok().flatten());
        Ok((started, emulation.clock().now(), status))
    };
    let outcome = run_command();
    emulation.stop_commands(&mut request.patience());
    if let Some(mut server) = server {
        // It may have ended.
        let _ = server.kill();
        let _ = server.wait();
    }
    let (started, finished, status) = outcome?;
    let capture = capture.map(|writer| emulation.stop_capture(writer)).transpose()?;
    let command = report::CommandOutcome {
        status,
        server: ended,
        seconds: (finished - started).as_secs_f64(),
        kernel_controller,
        capture,
    };
    report::report(&emulation, command)
}
