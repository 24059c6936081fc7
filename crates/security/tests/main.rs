//! All integration tests of the crate in one binary.

mod attacks;
mod ends;
mod fuzz;
mod half_open;
mod handshake;
mod impairments;
