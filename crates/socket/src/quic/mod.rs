//! Ends of QUIC on real sockets: the machine of simulation with TLS 1.3 instead of its null cryptography.
//!
//! Each end has its own socket and carries one connection. [`connect`] opens one, [`Listener`] accepts one. Their certificates exist
//! as long as the listener, and the client accepts any: the peers of a trial share a machine.

mod certificate;
mod driver;
mod lanes;
mod roaming;
mod tls;
mod transfer;

pub use driver::{Application, Failed, Listener, Options, connect};
pub use quic::{Carriage, Connection, Event, QuicConfig};
pub use tls::Sessions;
pub use transfer::{receive, send};
