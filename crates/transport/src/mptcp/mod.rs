//! Multipath TCP (RFC 8684) as a state machine without a clock or a socket.
//!
//! A [`Connection`] is one end: a set of ordinary TCP connections, its subflows, that carry one data stream. Every
//! segment carries the mapping of its payload to the data and a DATA_ACK. A [`Scheduler`] selects the subflow of each
//! segment. A [`PathPolicy`] selects the paths and the start of subflows, given the state of the host's paths
//! ([`HostPaths`]).
//!
//! The owner numbers the paths ([`PathIndex`]): each transmitted and each received segment comes with its path.

pub mod config;
mod connection;
pub mod host;
pub mod keys;
mod kinds;
mod mappings;
mod meter;
pub mod policy;
mod receiver;
pub mod scheduler;
pub mod segment;
mod sender;
mod sent;
pub mod wire;

pub use config::{JoinAfter, MptcpConfig, MptcpKeys, ReinjectionTrigger};
pub use connection::{Connection, Setup, SubflowInfo};
pub use host::{HostPaths, PathState};
pub use meter::Arrivals;
pub use policy::{
    ConnectionPlan, HandshakeAttempt, Join, JoinTime, PathPolicy, PolicyConfig, Progress, Scatter,
    StartParameters, Tail,
};
pub use scheduler::{Choice, DataView, Scheduler, SchedulerConfig, SubflowView};
pub use segment::{AddressForm, MptcpOption, Outgoing, PathIndex, Segment, Signal};
