//! Runs scripts on virtual time.

mod calls;
mod expect;
mod info;
mod link;
mod outcome;
mod runner;
mod segment;
mod settings;
mod shell;
mod sockets;
mod symbols;
mod world;

pub use outcome::{Departure, Outcome, Report};
pub use runner::run;
