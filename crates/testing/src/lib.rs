//! Support for tests of several crates.

mod again;
mod skip;

pub use again::{again, again_without_privileges, is_again};
pub use skip::{Requirement, skip};
