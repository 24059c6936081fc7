//! Test support for other crates: skipped tests with requirements, counts of random cases, and tests in separate
//! processes. It is a dev-dependency only and depends on no other crate of the workspace. It must not contain test cases
//! or helpers for one crate alone.

mod effort;
mod rerun;
mod skip;

pub use effort::{cases, count, rows};
pub use rerun::{is_rerun, rerun, rerun_without_privileges};
pub use skip::{Requirement, skip};
