//! Emulated networks for tests, or the reason why this system has none.

#![allow(dead_code)]

use emulation::{Emulation, EmulationOptions, Error};
use foundation::Streams;
use network::{HostId, PathConfig, Topology, TopologyConfig};

/// The hosts of a path.
pub const NEAR: HostId = HostId(0);
pub const FAR: HostId = HostId(1);

/// Two hosts and a path with these keys.
pub fn path(keys: &str) -> Topology {
    let path: PathConfig = serde_json::from_str(keys).unwrap();
    Topology::path(&path.resolve(&mut |_| Err("no files".into())).unwrap())
}

/// A topology with these keys.
pub fn topology(keys: &str) -> Topology {
    let topology: TopologyConfig = serde_json::from_str(keys).unwrap();
    topology.resolve(&mut |_| Err("no files".into())).unwrap()
}

/// Options with the same chance in each run.
pub fn options(topology: Topology) -> EmulationOptions {
    EmulationOptions::new(topology, Streams::new(1, 0))
}

/// The emulation; `None`, with the reason printed, where the system lacks something.
pub fn start(options: EmulationOptions) -> Option<Emulation> {
    match Emulation::start(options) {
        Ok(emulation) => Some(emulation),
        Err(error @ (Error::Permission { .. } | Error::Missing { .. })) => {
            skip(&error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Says why a test looks at nothing, past what the test harness captures.
pub fn skip(reason: &str) {
    use std::io::Write;
    let name = std::thread::current().name().unwrap_or("test").to_owned();
    let _ = writeln!(std::io::stderr().lock(), "skipped: {name}: {reason}");
}
