//! Every integration test of the crate, linked once: each file here is a module.

mod allocations;
mod captures;
mod closed_form;
mod coupling;
mod directions;
mod flows;
mod measured_time;
mod path_bytes;
mod requests;
mod sessions;
mod traces;
mod transactions;
mod transfers;
