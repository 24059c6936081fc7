//! Options of an emulation.

use std::path::PathBuf;

use foundation::{Problem, Streams};
use network::{QueueConfig, Topology};

use serde::Deserialize;

use crate::address::MOST_HOSTS;
use crate::error::Error;
use crate::sysctl;

/// Options of an emulation.
#[derive(Clone, Debug)]
pub struct EmulationOptions {
    /// Hosts and links.
    pub topology: Topology,
    /// Source of randomness.
    pub streams: Streams,
    /// MTU of the hosts' devices, in bytes with all headers: 68 to 65,535, default 1500.
    pub mtu: u32,
    /// Whether the emulator's thread requests real-time priority; default true. Delays are less exact without.
    pub real_time: bool,
    /// Whether hosts may pass several segments of a flow as one packet (segmentation offload), up to what the slowest
    /// link of the topology transmits in 100 µs; default true. The network handles single packets in any case. Without
    /// it, hosts send segments one by one, as simulated hosts do.
    pub offload: bool,
    /// Whether the last host is the emulated host of the calling thread, which then forwards packets between both
    /// emulations; default false.
    pub nested: bool,
    /// The kernel's settings at the hosts; default those of trials.
    pub kernel: KernelOptions,
}

/// A setting of the kernel in the network namespaces of hosts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sysctl {
    /// Name of the host; default all hosts.
    #[serde(default)]
    pub host: Option<String>,
    /// The name, such as `net.ipv4.tcp_rmem`.
    pub key: String,
    /// The value.
    pub value: String,
}

/// The kernel's settings at emulated hosts.
#[derive(Clone, Debug)]
pub struct KernelOptions {
    /// Whether hosts have this machine's settings instead of those of a new network namespace.
    pub inherits: bool,
    /// Settings to change, in this order.
    pub sysctls: Vec<Sysctl>,
    /// The congestion controller of programs that select none; `None` for the kernel's default.
    pub congestion: Option<String>,
    /// Whether hosts have IPv6 addresses.
    pub has_ipv6: bool,
}

impl KernelOptions {
    /// The settings of trials, the same on every machine: buffers of TCP for 1 Gbit/s over 250 ms, and connections that
    /// do not learn from earlier ones. IPv4 only.
    #[must_use]
    pub fn of_trials() -> Self {
        const SYSCTLS: [(&str, &str); 3] = [
            ("net.ipv4.tcp_no_metrics_save", "1"),
            // Minimum, default and maximum bytes.
            ("net.ipv4.tcp_rmem", "4096 131072 67108864"),
            ("net.ipv4.tcp_wmem", "4096 16384 67108864"),
        ];
        let sysctl = |(key, value): (&str, &str)| Sysctl {
            host: None,
            key: key.into(),
            value: value.into(),
        };
        Self {
            inherits: false,
            sysctls: SYSCTLS.map(sysctl).to_vec(),
            congestion: None,
            has_ipv6: false,
        }
    }
}

/// Options of hosts that run programs: the settings of this machine, with changes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProgramOptions {
    /// Settings to change, in this order.
    pub sysctls: Vec<Sysctl>,
    /// The congestion controller of programs that select none; default the kernel's.
    pub congestion: Option<String>,
    /// File of a capture of all packets at the hosts (pcapng); default none.
    pub pcapng: Option<PathBuf>,
}

impl ProgramOptions {
    /// The kernel's settings at the hosts.
    pub(crate) fn kernel(&self) -> KernelOptions {
        KernelOptions {
            inherits: true,
            sysctls: self.sysctls.clone(),
            congestion: self.congestion.clone(),
            has_ipv6: true,
        }
    }
}

impl EmulationOptions {
    /// Default options for a topology.
    #[must_use]
    pub fn new(topology: Topology, streams: Streams) -> Self {
        Self {
            topology,
            streams,
            mtu: 1500,
            real_time: true,
            offload: true,
            nested: false,
            kernel: KernelOptions::of_trials(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let wrong = |key: &str, message: String| Err(Problem::new(key, message).into());
        let hosts = self.topology.hosts().len();
        if !(1..=MOST_HOSTS).contains(&hosts) {
            return wrong("topology", format!("{hosts} hosts: allowed: 1 to {MOST_HOSTS}"));
        }
        if !(68..=65_535).contains(&self.mtu) {
            return wrong(
                "mtu",
                format!("{} is out of range: allowed: 68 to 65535 bytes", self.mtu),
            );
        }
        for sysctl in &self.kernel.sysctls {
            sysctl::check(&sysctl.key)?;
            let unknown = |host: &&String| !self.topology.hosts().contains(host);
            if let Some(host) = sysctl.host.as_ref().filter(unknown) {
                let hosts = self.topology.hosts().join(", ");
                return wrong("sysctl", format!("there is no host {host:?}: allowed: {hosts}"));
            }
        }
        let external = |queue: &QueueConfig| matches!(queue, QueueConfig::External(_));
        if let Some(link) = self
            .topology
            .links()
            .iter()
            .find(|link| external(&link.spec.queue))
        {
            let name = link.spec.queue.kind();
            return wrong(
                "queue",
                format!("{name:?} runs in simulations and relays only: use a built-in kind"),
            );
        }
        Ok(())
    }
}
