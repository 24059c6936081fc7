//! Linux's MPTCP (RFC 8684; `Documentation/networking/mptcp.rst`): sockets, the state of connections, and the path manager,
//! in the kernel or in user space.
//!
//! The kernel owns the connection and its scheduler. The path manager decides which subflows exist: either the kernel's, from
//! its list of endpoints and limits, or one in user space, which receives [`Events`] and opens subflows through [`Manager`].

pub mod daemon;
mod director;
mod events;
mod generic_netlink;
mod info;
mod manager;
mod paths;
mod sockets;
mod sysctl;
mod tcp_sockets;

pub use director::{Director, SubflowState, UnknownSize, Way};
pub use events::{Event, EventKind, Events, SocketPair};
pub use info::{ConnectionInfo, Subflow};
pub use manager::{MOST_SUBFLOWS, Manager};
pub use paths::{Path, paths};
pub use sockets::{connect, listen, socket};
pub use sysctl::{PathManager, Restore, is_enabled, path_manager, set_path_manager};
pub use tcp_sockets::tcp_sockets;
