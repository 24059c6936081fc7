//! Multipath TCP between two ends in simulated time.

mod basics;
mod coupling;
mod links;
mod lives;
mod mtu;
mod pair;
mod paths;
mod properties;
mod schedulers;
mod scheduling;
mod windows;
mod wire;
