//! Every integration test of the crate, linked once: each file here is a module.

mod any_text;
mod common;
mod mismatches;
mod scripts;
