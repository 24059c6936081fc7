//! The world `sim`: protocol machines and a network on virtual time. It depends on `experiment`, `network`, `transport` and
//! `foundation`. It must not read a clock, open sockets, or use randomness outside the streams of the trial: a [`trial`] is
//! a pure function of its specification, and equal specifications give identical records.

#![forbid(unsafe_code)]

pub mod body;
pub mod endpoint;
pub mod environment;
mod flow;
pub mod sampling;
pub mod session;
pub mod steering;
mod timers;
pub mod trace;
pub mod trial;
pub mod watch;
pub mod world;

pub use trial::run;
