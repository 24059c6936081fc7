//! All integration tests of the crate in one binary.

mod cell;
mod changes;
mod common;
mod configuration;
mod cut_through;
mod disciplines;
mod goodput;
mod impairments;
mod observation;
mod outages;
mod properties;
mod requested_losses;
mod shared_buffer;
mod timing;
mod topology;
mod traces;
mod wifi;
