//! TCP through its public interface, on virtual time.

mod accurate_ecn;
mod basics;
mod closing;
mod dctcp;
mod early;
mod flow;
mod opening;
mod pair;
mod properties;
mod recovery;
mod rig;
mod transactions;
mod wire;
