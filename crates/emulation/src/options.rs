//! Options of an emulation.

use foundation::{Problem, Streams};
use network::{QueueConfig, Topology};

use crate::address::MOST_HOSTS;
use crate::error::Error;

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
}

impl EmulationOptions {
    /// Default options for a topology.
    #[must_use]
    pub const fn new(topology: Topology, streams: Streams) -> Self {
        Self {
            topology,
            streams,
            mtu: 1500,
            real_time: true,
            offload: true,
            nested: false,
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
