//! Emulated networks for tests, or the reason why this system has none.

#![allow(dead_code)]

#[cfg(target_os = "linux")]
pub mod multihomed;
#[cfg(target_os = "linux")]
pub mod trials;

mod skip;

use emulation::{Emulation, EmulationOptions, Error};
use foundation::Streams;
use network::{HostId, PathConfig, Topology, TopologyConfig};

pub use skip::skip;

/// The hosts of a path.
pub const NEAR: HostId = HostId(0);
pub const FAR: HostId = HostId(1);

/// Two hosts and a path with these keys, maybe of several links.
pub fn path(keys: &str) -> Topology {
    let path: PathConfig = serde_json::from_str(keys).unwrap();
    Topology::chain(&path.links(&mut |_| Err("no files".into())).unwrap())
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

/// This test program again, to run one of its tests that are ignored otherwise.
pub fn again(test: &str) -> std::process::Command {
    let mut command = std::process::Command::new("/proc/self/exe");
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(AGAIN, test);
    command
}

/// Whether this program has been started by [`again`], and not by somebody who runs all that is ignored.
pub fn is_again() -> bool {
    std::env::var_os(AGAIN).is_some()
}

const AGAIN: &str = "LONGFAT_TEST_AGAIN";

/// The numbers of the processes that have this in their environment.
pub fn processes_with(variable: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has = |number: &u32| {
        let environment = std::fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
        environment
            .split(|&byte| byte == 0)
            .any(|entry| entry == variable.as_bytes())
    };
    numbers.filter(has).collect()
}
