//! Tests of the machine over a pair of ends.

mod client_migration;
mod closing;
mod determinism;
mod early_data;
mod migration;
mod multipath;
mod pair;
mod sizes;
mod transfers;
mod two_paths;
