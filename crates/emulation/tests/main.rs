//! All integration tests of the crate in one binary.

#![cfg(target_os = "linux")]

mod arq_trials;
mod common;
mod fast_open;
mod gateway;
mod multipath;
mod multipath_trials;
mod offload;
mod packets;
mod path;
mod path_manager;
mod processes;
mod request_trials;
mod routers;
mod stack;
mod stack_trials;
mod testbed;
mod topologies;
mod traces;
mod trials;
