//! The simulated world: virtual time, hosts that run protocol machines, and one network between them.
//!
//! A [`trial`] is a pure function of its specification: the same [`TrialSpec`] gives the same bits.

#![forbid(unsafe_code)]

pub mod body;
pub mod endpoint;
pub mod fairness;
pub mod layout;
pub mod metrics;
mod observation;
pub mod outcome;
mod plan;
pub mod protocol;
pub mod sampling;
pub mod spec;
mod timers;
pub mod trace;
pub mod traffic;
pub mod trial;
pub mod vocabulary;
pub mod watch;
pub mod workload;
pub mod world;

pub use protocol::ProtocolConfig;
pub use spec::{NetworkConfig, SpecError, TrialSpec};
pub use traffic::TrafficConfig;
pub use trial::{Record, run};
pub use workload::WorkloadConfig;
