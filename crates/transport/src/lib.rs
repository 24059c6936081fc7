//! Transport protocols as state machines without a clock or a socket.
//!
//! Every protocol obeys the contract of [`Machine`]. The caller (a simulator, a UDP driver, a test)
//! owns time and bytes.

#![forbid(unsafe_code)]

pub mod arq;
pub mod congestion;
pub mod machine;
pub mod metrics;
pub mod mptcp;
mod path_choice;
pub mod ranges;
pub mod rtt;
pub mod statistics;
pub mod tcp;

pub use machine::Machine;
pub use metrics::Metrics;
pub use statistics::Statistics;
