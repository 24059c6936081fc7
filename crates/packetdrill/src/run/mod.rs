//! Execution of scripts on virtual time.

mod calls;
mod expect;
mod fast_open;
mod info;
mod machine;
mod multipath;
mod notices;
mod outcome;
mod runner;
mod segment;
mod settings;
mod shell;
mod sockets;
mod symbols;
mod syn_cookies;
mod tested;
mod world;

pub use outcome::{Mismatch, Outcome, Report};
pub use runner::run;
