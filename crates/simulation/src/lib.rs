//! The simulated world: virtual time, hosts that run protocol machines, and one network between them.
//!
//! A [`trial`] is a pure function of its specification: the same [`TrialSpec`] gives the same bits.

#![forbid(unsafe_code)]

pub mod body;
pub mod endpoint;
pub mod sampling;
mod timers;
pub mod trace;
pub mod trial;
pub mod watch;
pub mod world;

pub use trial::run;
