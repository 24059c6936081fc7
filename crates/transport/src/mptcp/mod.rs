//! Multipath TCP (RFC 8684) as a state machine without a clock or a socket.
//!
//! A [`Connection`] is one end: a set of ordinary TCP connections, its subflows, under one stream of data. Nothing of TCP
//! is implemented here again. Data has sequence numbers of its own; every segment says where in the data its payload
//! belongs, and how far the data has arrived. Which subflow takes the next segment is a [`Scheduler`]'s to say, which
//! paths get a subflow and when a [`PathPolicy`]'s, by what the host knows of its paths ([`HostPaths`]).
//!
//! The owner knows the paths as [`PathIndex`]es: what leaves names one, and so must what arrives.

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
pub use segment::{MptcpOption, Outgoing, PathIndex, Segment};
