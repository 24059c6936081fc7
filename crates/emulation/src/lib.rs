//! Networks on wall time whose hosts are Linux network namespaces with the kernel's own stack.
//!
//! Links, queues and loss models are those of the `network` crate, as in simulation. Each way of a host to others is a
//! TUN device in its namespace: packets that the kernel sends to it enter the network, and the network's deliveries
//! return through it. Any program can run at a host, with any of the kernel's transport protocols.
//!
//! The crate depends on `network`, `experiment`, `kernel`, `measurement`, `socket` and `stack`; only `python` may
//! depend on it. It must not change anything outside the namespaces that it creates, and must leave nothing behind.
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
//! Linux, `/dev/net/tun`, and the capabilities `CAP_SYS_ADMIN` and `CAP_NET_ADMIN`, of root or within a user namespace.
//!
//! # What it leaves
//!
//! File descriptors hold the namespaces and devices, and a process-ID namespace holds the commands. So everything ends
//! with the process, even if it is killed. Packets do not leave the namespaces, which have only a loopback and TUN
//! devices. No device, route or sysctl outside them is created or changed.

#![cfg(target_os = "linux")]

pub mod check;
pub mod clean;
pub mod doctor;
pub mod privileges;
pub mod shell;
pub mod testbed;
pub mod trial;
pub mod user_namespace;

mod address;
mod command_environment;
mod default_controller;
mod device;
mod device_port;
mod drops;
mod emulation;
mod emulator;
mod error;
mod fragment;
mod host;
mod icmp;
mod keeper;
mod namespace;
mod netlink;
mod offload;
mod options;
mod outbox;
mod packet;
mod port;
mod priority;
mod process_table;
mod router;
mod routing;
mod stack;
mod sysctl;
mod tap;
mod terminal;
mod tun;

pub use kernel::Error;
pub use socket::clock::Clock;

pub use address::MOST_HOSTS;
pub use device_port::DevicePort;
pub use drops::HostDrops;
pub use emulation::Emulation;
pub use emulator::EmulatorReport;
pub use namespace::Namespace;
pub use options::{EmulationOptions, KernelOptions, ProgramOptions, Sysctl};
pub use packet::IpPacket;
pub use port::Port;
pub use routing::RouterState;
pub use stack::{HostGateway, StreamState, UserListener, UserStack, UserStream};
pub use sysctl::SysctlDifference;
pub use tap::{PacketEvent, Tap};
