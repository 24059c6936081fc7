//! Every integration test of the crate, linked once: each file here is a module.

mod refusals;
mod sizes;
