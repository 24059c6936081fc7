//! Every integration test of the crate, linked once: each file here is a module.

mod changes;
mod common;
mod configuration;
mod cut_through;
mod disciplines;
mod goodput;
mod impairments;
mod observation;
mod properties;
mod timing;
mod topology;
mod traces;
