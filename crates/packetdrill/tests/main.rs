//! All integration tests of the crate in one binary.

mod any_text;
mod common;
mod mismatches;
mod multipath;
mod scripts;
