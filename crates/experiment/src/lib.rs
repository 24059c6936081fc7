//! The definition of a trial, shared by all worlds: its specification, the plan of flows derived from it, and the metrics
//! and record computed from its outcome. It depends on `network`, `transport`, `quic` and `foundation`. It must not run anything:
//! clocks, sockets and event loops belong to the worlds (`simulation`, `emulation`), which differ only in those.

#![forbid(unsafe_code)]

pub mod accounts;
pub mod acknowledgement;
pub mod all_reduce;
pub mod application;
pub mod barrier;
mod carriage;
pub mod censored;
pub mod combination;
pub mod fairness;
mod fit;
pub mod flow_table;
pub mod frames;
pub mod goodput;
pub mod ideal;
pub mod layout;
pub mod metrics;
pub mod observation;
mod other_family;
pub mod outcome;
pub mod parallel;
pub mod plan;
pub mod protocol;
pub mod random;
pub mod record;
pub mod schedule;
pub mod side;
pub mod sizes;
pub mod spec;
pub mod support;
pub mod trace;
pub mod traffic;
pub mod vocabulary;
pub mod workload;

pub use carriage::carriage;
pub use protocol::ProtocolConfig;
pub use quic::QuicConfig;
pub use record::TrialRecord;
pub use side::Side;
pub use spec::{NetworkConfig, SpecError, TransferProtocol, TrialSpec};
pub use traffic::TrafficConfig;
pub use workload::WorkloadConfig;
