//! QUIC: noq-proto, a production implementation without I/O, as a protocol machine in virtual time.
//!
//! [`QuicConfig`] has the settings of a study. The feature `machine` adds `Connection`, one end of a QUIC connection, with a
//! cryptography that encrypts nothing and keeps the sizes of TLS 1.3, or with one of the caller. All other randomness derives from a seed. Without the feature
//! the crate has the settings and the packet parser only.

#![forbid(unsafe_code)]

mod carriage;
mod config;
mod controller_choice;
mod datagram;
mod multipath;
pub mod wire;

#[cfg(feature = "machine")]
mod machine;

pub use carriage::Carriage;
pub use config::{MigrationTarget, QuicConfig, QuicKind};
pub use controller_choice::{ControllerChoice, LibraryController};
pub use datagram::Datagram;
#[cfg(feature = "machine")]
pub use machine::{Connection, Cryptography, Event, PathInfo, PathReport, client_address};
pub use multipath::{LibraryScheduler, PathScheduler};
#[cfg(feature = "machine")]
pub use noq_proto::crypto;

/// Whether this build contains the machine.
pub const AVAILABLE: bool = cfg!(feature = "machine");

/// Whether this build contains TLS for ends on real networks.
pub const HAS_TLS: bool = cfg!(feature = "tls");

/// Bytes of the smallest certificate chain on real networks: one self-signed certificate.
pub const SMALLEST_REAL_CHAIN: usize = 320;
/// Bytes of each end's connection IDs.
pub const CONNECTION_ID: usize = 8;
/// Bytes of the authentication tag of a packet (RFC 9001, section 5.3).
pub const TAG: usize = 16;
