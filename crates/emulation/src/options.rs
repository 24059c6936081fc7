//! What to emulate.

use foundation::{Problem, Streams};
use network::Topology;

use crate::address::MOST_HOSTS;
use crate::error::Error;

/// What to emulate.
#[derive(Clone, Debug)]
pub struct EmulationOptions {
    /// Hosts, and the links between them.
    pub topology: Topology,
    /// The source of what happens by chance.
    pub streams: Streams,
    /// The largest packet that hosts send, in bytes with all headers; default 1500, from 68 to 65,535.
    pub mtu: u32,
    /// Whether the emulator's thread asks for real-time priority; default yes. Not granted, delays are less exact.
    pub real_time: bool,
    /// The last host, instead of a namespace of its own, is the host of another emulation that the calling thread
    /// is in, which then passes packets on between both; default no.
    pub nested: bool,
}

impl EmulationOptions {
    /// This network, and defaults.
    #[must_use]
    pub const fn new(topology: Topology, streams: Streams) -> Self {
        Self {
            topology,
            streams,
            mtu: 1500,
            real_time: true,
            nested: false,
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let wrong = |key: &str, message: String| Err(Error::Option(Problem::new(key, message).to_string()));
        let hosts = self.topology.hosts().len();
        if !(1..=MOST_HOSTS).contains(&hosts) {
            return wrong(
                "topology",
                format!("it has {hosts} hosts: 1 to {MOST_HOSTS} can be emulated"),
            );
        }
        if !(68..=65_535).contains(&self.mtu) {
            return wrong("mtu", format!("{} is out of range: 68 to 65535 bytes", self.mtu));
        }
        Ok(())
    }
}
