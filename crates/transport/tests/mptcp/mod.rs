//! Multipath TCP between two ends in simulated time.

mod addresses;
mod basics;
mod checksums;
mod coupling;
mod links;
mod linux;
mod lives;
mod mtu;
mod pair;
mod paths;
mod properties;
mod schedulers;
mod scheduling;
mod windows;
mod wire;
