//! All integration tests of the crate in one binary.

mod congestion_loop;
mod delivery;
mod frames;
mod mptcp;
mod pair;
mod tcp;
mod tcp_wire;
