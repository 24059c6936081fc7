//! Everything that is Linux's own: namespaces, TUN devices, rtnetlink, and the thread that moves packets between them.

pub mod clean;
pub mod doctor;
pub mod shell;
pub mod trial;
pub mod user_namespace;

mod emulation;
mod emulator;
mod host;
mod keeper;
mod namespace;
mod netlink;
mod port;
mod priority;
mod routing;
mod surroundings;
mod tun;

pub use emulation::{Clock, Emulation};
pub use emulator::EmulatorReport;
pub use namespace::Namespace;
pub use port::Port;
