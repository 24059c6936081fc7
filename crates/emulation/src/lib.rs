//! Networks on wall time between hosts that are Linux network namespaces with the kernel's own stack.
//!
//! The links are those of the `network` crate, the same as in simulation. A host is a network namespace with one TUN
//! device for each way to others: what its kernel sends enters the network, and what the network delivers arrives at the device. Any program
//! runs at a host, with any of the kernel's transport protocols.
//!
//! ```no_run
//! use emulation::{Emulation, EmulationOptions};
//! use foundation::Streams;
//! use network::{HostId, PathConfig, Topology};
//!
//! let path: PathConfig = serde_json::from_str(r#"{"rate": "20Mbit/s", "delay": "30ms"}"#)?;
//! let path = path.resolve(&mut |_| Err("no files here".into())).unwrap();
//! let emulation = Emulation::start(EmulationOptions::new(Topology::path(&path), Streams::new(1, 0)))?;
//! let (near, far) = (HostId(0), HostId(1));
//! let server = emulation.in_host(far, || std::net::TcpListener::bind("0.0.0.0:80"))?;
//! let address = emulation.host_address(far);
//! let client = emulation.in_host(near, || std::net::TcpStream::connect((address, 80)))?;
//! # let _ = (server, client);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it takes
//!
//! Linux, `/dev/net/tun`, and `CAP_SYS_ADMIN` and `CAP_NET_ADMIN`: those of root, or of a user namespace.
//!
//! # What it leaves
//!
//! Nothing. Namespaces and devices are held by file descriptors alone, commands by a process-ID namespace, so all end with
//! the process, also where it is killed. Packets never leave the namespaces: each has its loopback and its TUN device and
//! no other. Outside of them nothing is made or changed: no device, no route, no sysctl.

#[cfg(target_os = "linux")]
mod address;
#[cfg(target_os = "linux")]
mod error;
#[cfg(target_os = "linux")]
mod fragment;
#[cfg(target_os = "linux")]
mod icmp;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod options;
#[cfg(target_os = "linux")]
mod packet;
#[cfg(target_os = "linux")]
mod router;

pub use kernel::Error;

#[cfg(target_os = "linux")]
pub use address::MOST_HOSTS;
#[cfg(target_os = "linux")]
pub use linux::{
    Clock, Emulation, EmulatorReport, HostDrops, HostGateway, Namespace, PacketEvent, Port, RouterState, Tap,
    UserListener, UserStack, UserStream, check, clean, doctor, privileges, shell, testbed, trial,
    user_namespace,
};
#[cfg(target_os = "linux")]
pub use options::EmulationOptions;
#[cfg(target_os = "linux")]
pub use packet::IpPacket;

/// The error of every function of this crate on other systems.
pub const UNSUPPORTED: Error = Error::Unsupported("emulated networks (use world = \"sim\" or \"relay\")");
