//! The Linux implementation: namespaces, TUN devices, rtnetlink, the emulator's thread, and trials on top of them.

pub mod check;
pub mod clean;
mod default_controller;
pub mod doctor;
pub mod privileges;
pub mod shell;
pub mod testbed;
pub mod trial;
pub mod user_namespace;

mod capture;
mod command_environment;
mod device;
mod device_port;
mod drops;
mod emulation;
mod emulator;
mod host;
mod keeper;
mod namespace;
mod netlink;
mod offload;
mod outbox;
mod port;
mod priority;
mod process_table;
mod routing;
mod stack;
pub(crate) mod sysctl;
mod tap;
mod terminal;
mod tun;

pub use capture::CaptureReport;
pub use device_port::DevicePort;
pub use drops::HostDrops;
pub use emulation::Emulation;
pub use emulator::EmulatorReport;
pub use namespace::Namespace;
pub use port::Port;
pub use routing::RouterState;
pub use socket::clock::Clock;
pub use stack::{HostGateway, StreamState, UserListener, UserStack, UserStream};
pub use sysctl::SysctlDifference;
pub use tap::{PacketEvent, Tap};
