//! All integration tests of the crate in one binary.

mod refusals;
mod schedule;
mod sizes;
