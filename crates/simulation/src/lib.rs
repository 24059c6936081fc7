//! The simulated world: virtual time, hosts that run protocol machines, and one network between them.
//!
//! A [`trial`] is a pure function of its specification: the same [`TrialSpec`] gives the same bits.

#![forbid(unsafe_code)]

pub mod body;
pub mod host;
pub mod spec;
pub mod trace;
pub mod trial;
pub mod vocabulary;
pub mod workload;
pub mod world;

pub use spec::{SpecError, TrialSpec};
pub use trial::{Record, run};
pub use workload::WorkloadConfig;
