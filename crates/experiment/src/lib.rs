//! What a trial is, in every world that runs whole topologies: its specification and vocabulary, who sends what to
//! whom, and the figures that it comes to. Worlds differ in their clock and in their hosts, not in what is asked
//! and what is counted.

#![forbid(unsafe_code)]

pub mod accounts;
pub mod application;
mod columns;
pub mod fairness;
pub mod layout;
pub mod metrics;
mod mtu;
pub mod observation;
pub mod outcome;
pub mod plan;
pub mod protocol;
pub mod random;
pub mod record;
pub mod sizes;
pub mod spec;
pub mod trace;
pub mod traffic;
pub mod vocabulary;
pub mod workload;

pub use protocol::ProtocolConfig;
pub use record::TrialRecord;
pub use spec::{NetworkConfig, SpecError, TrialSpec};
pub use traffic::TrafficConfig;
pub use workload::WorkloadConfig;
