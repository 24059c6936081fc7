//! Support for tests of several crates.

mod rerun;
mod skip;

pub use rerun::{is_rerun, rerun, rerun_without_privileges};
pub use skip::{Requirement, skip};
