//! The Transmission Control Protocol (RFC 9293) as a state machine without a clock or a socket.
//!
//! A [`Connection`] is one end. Whoever owns it hands it the segments that arrive, and the time; it answers with
//! the segments that leave. Payload bytes are the owner's: a segment names a length, and an [`Outgoing`] one the
//! place of its payload in the stream. LISTEN is the owner's state too: to a SYN it answers with
//! [`Connection::accept`], to what belongs to no connection with [`reset_for`].

pub mod config;
mod connection;
pub mod fast_open;
mod opening;
pub mod options;
mod profile;
mod receiver;
pub mod segment;
mod sender;
pub mod sequence;
pub mod ttcp;
pub mod wire;

pub use config::{Recovery, StackKind, TcpConfig};
pub use connection::{Connection, Error, Event, Info, LEAST_SEGMENT, State};
pub use opening::{HostMemory, Lesson, Opening};
pub use options::{Options, SackBlocks, Timestamps};
pub use profile::{Parameters, Profile, ReservedOptions};
pub(crate) use receiver::Autotuning;
pub use segment::{Ecn, Flags, Outgoing, Segment, reset_for};
pub use sender::CongestionState;
pub use sequence::SequenceNumber;
