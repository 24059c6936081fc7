//! Multipath TCP between two ends on virtual time.

mod basics;
mod coupling;
mod links;
mod lives;
mod pair;
mod paths;
mod properties;
mod schedulers;
mod windows;
mod wire;
