//! Linux's MPTCP (RFC 8684; `Documentation/networking/mptcp.rst`): sockets, what the kernel tells of their connections, and
//! the path manager, in the kernel or in user space.
//!
//! The kernel keeps the connection and its scheduler. Which subflows there are is decided by the path manager: by the
//! kernel's own, which knows addresses and limits alone, or, connection by connection, by whoever listens to
//! [`Events`] and gives orders through [`Manager`].

pub mod daemon;
mod director;
mod events;
mod info;
mod manager;
mod paths;
mod settings;
mod sockets;
mod table;

pub use director::{Director, Seen, Unknown, Way};
pub use events::{Event, Events, Peers};
pub use info::{Connection, Subflow};
pub use manager::{MOST_SUBFLOWS, Manager};
pub use paths::{Path, paths};
pub use settings::{PathManager, Restore, is_enabled, path_manager, set_path_manager};
pub use sockets::{connect, listen, socket};
pub use table::sockets as tcp_sockets;
