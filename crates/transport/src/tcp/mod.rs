//! The Transmission Control Protocol (RFC 9293) as a state machine without a clock or a socket.
//!
//! A [`Connection`] is one end. The caller passes it arriving segments and the time, sends the segments it returns, and
//! stores the payload bytes: a [`Segment`] carries only the length of its payload, an [`Outgoing`] segment also the
//! payload's offset in the stream. The caller also implements LISTEN: it answers a SYN with [`Connection::accept`], and a
//! segment of no known connection with [`reset_for`].

mod accurate_ecn;
pub mod config;
mod connection;
mod ecn_mode;
pub mod fast_open;
mod info;
mod opening;
pub mod options;
mod parameters;
mod receiver;
pub mod segment;
mod sender;
pub mod sequence;
mod state;
pub mod ttcp;
mod validation;
pub mod wire;

pub use accurate_ecn::{ByteCounters, Field};
pub use config::{Profile, Recovery, StackKind, TcpConfig};
pub use connection::{Connection, Error, Event, MIN_SEGMENT};
pub use ecn_mode::{EcnMode, EcnOption};
pub use info::{AccurateEcnInfo, Info};
pub use opening::{HostMemory, Opening, PeerUpdate};
pub use options::{Options, SackBlocks, Timestamps};
pub use parameters::{Parameters, ReservedOptions};
pub(crate) use receiver::Autotuning;
pub use segment::{Ecn, Flags, Outgoing, Segment, reset_for};
pub use sender::SenderSnapshot;
pub use sequence::SequenceNumber;
pub use state::{CongestionState, State};
