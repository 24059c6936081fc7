//! An emulated network for interactive use: hosts and links by name, commands, counters and quick measurements.

mod command;
mod goodput;
mod links;
mod ping;

use std::os::fd::OwnedFd;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use foundation::{Problem, Streams};
use network::{HostId, Topology};
use serde::Serialize;
use serde_json::Value;

use crate::drops::HostDrops;
use crate::emulation::Emulation;
use crate::error::{Error, system_error};
use crate::options::{EmulationOptions, ProgramOptions};
use crate::routing::RouterState;
use crate::shell::ListeningPort;
use crate::sysctl::SysctlDifference;
use capture::{CaptureReport, CaptureWriter};
pub use command::{CommandOptions, TerminalMode};
pub use goodput::Goodput;
pub use links::LinkState;
pub use ping::{Expected, Ping};

/// A host of a testbed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostState {
    /// Its name, which other hosts can resolve.
    pub name: String,
    /// Its IPv4 address.
    pub address: String,
    /// Its IPv6 address; null without IPv6.
    pub address6: Option<String>,
    /// Its node in the topology.
    pub node: String,
}

/// Packets dropped by a host's kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostDropped {
    /// The host's name.
    pub name: String,
    /// The counters since the testbed started.
    #[serde(flatten)]
    pub drops: HostDrops,
}

/// An emulated network whose hosts and links have names. Dropping it removes the network.
#[derive(Debug)]
pub struct Testbed {
    emulation: Emulation,
    /// The current links.
    topology: RwLock<Arc<Topology>>,
    congestion: Option<String>,
    capture: Option<CaptureWriter>,
}

/// The kernel's settings at the hosts of a testbed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KernelState {
    /// The congestion controller of programs that select none.
    pub controller: Option<String>,
    /// Settings that differ from this machine's.
    pub sysctls: Vec<SysctlDifference>,
}

impl Testbed {
    /// Builds a network.
    ///
    /// # Errors
    /// As [`Emulation::start`].
    pub fn start(topology: Topology, streams: Streams, programs: ProgramOptions) -> Result<Self, Error> {
        let kept = RwLock::new(Arc::new(topology.clone()));
        let hosts = topology.hosts().to_vec();
        let emulation = Emulation::start(EmulationOptions {
            kernel: programs.kernel(),
            ..EmulationOptions::new(topology, streams)
        })?;
        let capture = programs.pcapng.as_deref();
        let capture = capture.map(|file| emulation.capture(file, &hosts)).transpose()?;
        Ok(Self {
            emulation,
            topology: kept,
            congestion: programs.congestion,
            capture,
        })
    }

    /// Stops all commands with SIGTERM and, after the time that `patience` returns, SIGKILL; then removes the network.
    /// Returns the contents of the capture.
    ///
    /// # Errors
    /// A capture that could not be written.
    pub fn stop(
        self,
        patience: &mut dyn FnMut() -> foundation::Duration,
    ) -> Result<Option<CaptureReport>, Error> {
        self.emulation.stop_commands(patience);
        self.capture
            .map(|writer| self.emulation.stop_capture(writer))
            .transpose()
    }

    /// Whether a socket that other hosts can reach listens at a port of a host.
    ///
    /// # Errors
    /// An unknown host.
    pub fn listens(&self, host: &str, port: ListeningPort) -> Result<bool, Error> {
        Ok(self.emulation.in_host(self.host(host)?, || port.is_reachable()))
    }

    /// The kernel's settings at the hosts.
    #[must_use]
    pub fn kernel(&self) -> KernelState {
        KernelState {
            controller: self.emulation.controller(HostId(0), self.congestion.as_deref()),
            sysctls: self.emulation.sysctl_differences().to_vec(),
        }
    }

    /// The emulation.
    #[must_use]
    pub const fn emulation(&self) -> &Emulation {
        &self.emulation
    }

    /// The current topology.
    #[must_use]
    pub fn topology(&self) -> Arc<Topology> {
        Arc::clone(&self.topology.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The routers with addresses, in the order of the topology's nodes.
    #[must_use]
    pub fn routers(&self) -> &[RouterState] {
        self.emulation.routers()
    }

    /// Changes one key of a link between two packets ([`network::Network::change_link`]). `value` is JSON as in a
    /// study; null removes the key. Relative file names of traces refer to the working directory.
    ///
    /// # Errors
    /// An unknown link or key, and an invalid value.
    pub fn set(&self, link: &str, key: &str, value: &Value) -> Result<(), Error> {
        let mut topology = self.topology.write().unwrap_or_else(PoisonError::into_inner);
        let (link, spec) = network::topology::changed_link(&topology, link, key, value)?;
        let new_spec = spec.clone();
        self.emulation
            .with_network(move |network, now| network.change_link(now, link, &new_spec));
        Arc::make_mut(&mut topology).set_link(link, spec);
        Ok(())
    }

    /// The hosts in topology order.
    #[must_use]
    pub fn hosts(&self) -> Vec<HostState> {
        let topology = self.topology();
        let nodes: Vec<&str> = topology.nodes().collect();
        let state = |(name, host): (&String, HostId)| HostState {
            name: name.clone(),
            address: self.emulation.host_address(host).to_string(),
            address6: self
                .emulation
                .host_address_v6(host)
                .map(|address| address.to_string()),
            node: nodes[topology.node_of(host).0 as usize].to_owned(),
        };
        let numbers = (0..).map(HostId);
        topology.hosts().iter().zip(numbers).map(state).collect()
    }

    /// The links in topology order, with configuration and counters.
    #[must_use]
    pub fn links(&self) -> Vec<LinkState> {
        links::states(&self.emulation, &self.topology())
    }

    /// Packets dropped by the hosts' kernels, in topology order. Link counters do not include them.
    ///
    /// # Errors
    /// The system's.
    pub fn dropped(&self) -> Result<Vec<HostDropped>, Error> {
        let topology = self.topology();
        let named = topology.hosts().iter().zip(self.emulation.host_drops()?);
        Ok(named
            .map(|(name, drops)| HostDropped {
                name: name.clone(),
                drops,
            })
            .collect())
    }

    /// Finds a host by name or address.
    ///
    /// # Errors
    /// Names the known hosts.
    pub fn host(&self, name: &str) -> Result<HostId, Error> {
        let of_address = |&host: &HostId| {
            let v6 = self.emulation.host_address_v6(host);
            self.emulation.host_address(host).to_string() == name
                || v6.is_some_and(|v6| v6.to_string() == name)
        };
        let topology = self.topology();
        let found = topology.host(name);
        found
            .or_else(|| (0..self.emulation.hosts() as u32).map(HostId).find(of_address))
            .ok_or_else(|| {
                let hosts = topology.hosts().join(", ");
                Problem::new("host", format!("there is no host {name:?}: allowed: {hosts}")).into()
            })
    }

    /// Starts a command at a host and returns its process ID; the caller waits for it.
    ///
    /// # Errors
    /// An unknown host, and the system's, for example for an unknown command.
    pub fn run(&self, host: &str, options: CommandOptions, streams: [OwnedFd; 3]) -> Result<u32, Error> {
        command::run(&self.emulation, self.host(host)?, options, streams)
    }

    /// Sends `count` ICMP echo requests between all pairs of hosts. Calls `stopped` several times a second; the result
    /// is empty once it returns true.
    ///
    /// # Errors
    /// The system's.
    pub fn ping_all(&self, count: u32, stopped: &mut dyn FnMut() -> bool) -> Result<Vec<Ping>, Error> {
        ping::all(&self.emulation, &self.topology(), count, stopped)
            .map_err(|error| system_error("send ICMP echo requests", error))
    }

    /// Measures the goodput of one kernel TCP connection between two hosts for `span`, or until `stopped` returns true.
    ///
    /// # Errors
    /// An unknown host, and the system's, for example if no connection is established.
    pub fn goodput(
        &self,
        from: &str,
        to: &str,
        span: Duration,
        stopped: &mut dyn FnMut() -> bool,
    ) -> Result<Goodput, Error> {
        let (from, to) = (self.host(from)?, self.host(to)?);
        if from == to {
            let message = "it is the sender itself";
            return Err(Problem::new("to", message).into());
        }
        goodput::measure(&self.emulation, &self.topology(), from, to, span, stopped)
            .map_err(|error| system_error("measure a connection", error))
    }
}
