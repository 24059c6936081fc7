//! Every integration test of the crate, linked once: each file here is a module.

mod attacks;
mod ends;
mod fuzz;
mod half_open;
mod handshake;
mod impairments;
