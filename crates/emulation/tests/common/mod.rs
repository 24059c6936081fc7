//! Emulated networks for tests, or the reason to skip a test.

pub mod multihomed;
pub mod streams;
pub mod trials;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use emulation::{Emulation, EmulationOptions, Error};
use foundation::Streams;
use network::{HostId, PathConfig, Topology, TopologyConfig};

pub use testing::{Requirement, is_rerun, rerun, rerun_without_privileges, skip};

/// The hosts of a path.
pub const NEAR: HostId = HostId(0);
pub const FAR: HostId = HostId(1);

/// Two hosts and a path with these keys, possibly of several links.
pub fn path(keys: &str) -> Topology {
    let path: PathConfig = serde_json::from_str(keys).unwrap();
    Topology::chain(&path.links(&mut |_| Err("no files".into())).unwrap())
}

/// A topology with these keys.
pub fn topology(keys: &str) -> Topology {
    let topology: TopologyConfig = serde_json::from_str(keys).unwrap();
    topology.resolve(&mut |_| Err("no files".into())).unwrap()
}

/// Options with a fixed seed.
pub fn options(topology: Topology) -> EmulationOptions {
    EmulationOptions::new(topology, Streams::new(1, 0))
}

/// Starts an emulation; `None`, with a printed reason, if the system lacks something.
pub fn start(options: EmulationOptions) -> Option<Emulation> {
    match Emulation::start(options) {
        Ok(emulation) => Some(emulation),
        Err(error @ (Error::Permission { .. } | Error::Missing { .. })) => {
            skip_without(&error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Skips a test because of a missing feature or permission.
pub fn skip_without(error: &Error) {
    let reason = error.to_string();
    let requirement = [("TUN", Requirement::Tun), ("MPTCP", Requirement::Mptcp)]
        .into_iter()
        .find(|(word, _)| reason.contains(word))
        .map_or(Requirement::Netns, |(_, requirement)| requirement);
    skip(requirement, reason);
}

/// The processes with a variable in their environment.
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

/// Returns bytes without a short period.
pub fn data(length: usize) -> Vec<u8> {
    (0..length).map(|at| ((at * at) >> 7) as u8).collect()
}

/// Sends data over TCP from one host to the other and returns what arrived.
pub fn transfer(emulation: &Emulation, data: &[u8]) -> Vec<u8> {
    let listener = emulation
        .in_host(FAR, || TcpListener::bind("0.0.0.0:80"))
        .unwrap();
    let to = (emulation.host_address(FAR), 80);
    let mut client = emulation.in_host(NEAR, || TcpStream::connect(to)).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    server.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || client.write_all(data).unwrap());
        let mut arrived = Vec::new();
        server.read_to_end(&mut arrived).unwrap();
        arrived
    })
}
