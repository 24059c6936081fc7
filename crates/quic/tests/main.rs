//! Tests of the machine over a pair of ends.

mod closing;
mod determinism;
mod pair;
mod sizes;
mod transfers;
