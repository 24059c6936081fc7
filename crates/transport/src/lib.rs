//! Transport protocols as state machines: ARQ protocols ([`arq`]), TCP ([`tcp`]) and multipath TCP ([`mptcp`]), with their
//! congestion controllers ([`congestion`]). Each implements [`Machine`]; the caller (a simulator, a UDP driver, a test)
//! provides the time and transports the frames. The crate depends only on `foundation` and on libraries without I/O. It
//! must not read a clock, open a socket or file, start a thread, or use a network model; its results depend only on its
//! inputs. Modules build on each other in one direction: `mptcp` on `tcp`, both and `arq` on `congestion`, and all on the
//! root modules.

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
