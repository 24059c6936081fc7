//! Test support for other crates: skipped tests with requirements, and tests in separate processes. It is a dev-dependency
//! only and depends on no other crate of the workspace. It must not contain test cases or helpers for one crate alone.

mod rerun;
mod skip;

pub use rerun::{is_rerun, rerun, rerun_without_privileges};
pub use skip::{Requirement, skip};
