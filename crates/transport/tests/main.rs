//! Every integration test of the crate, linked once: each file here is a module.

mod congestion_loop;
mod delivery;
mod frames;
mod mptcp;
mod pair;
mod tcp;
mod tcp_wire;
