//! What limited the TCP connections of a capture file.
//!
//! [`CaptureFile`] reads frames from pcap and pcapng files, [`TcpPacket`] is what one of them contains, and [`Connections`]
//! follows each connection in one pass: a [`Direction`](direction::Direction) per sender, whose [`Slice`](slices::Slice)s of about a round trip
//! are as many as fit a fixed memory. [`causes`](causes) names the cause of each slice, after the pass, from the figures of the
//! whole [path](path).

pub mod causes;
mod connection;
mod connections;
mod delayed_acks;
pub mod direction;
mod file;
mod gaps;
mod handshake;
mod losses;
mod multipath;
mod numbering;
mod outstanding;
mod packet;
pub mod path;
pub mod path_changes;
mod pauses;
pub mod quic;
mod rates;
pub mod report;
pub mod round_trips;
pub mod sequence;
pub mod slices;
mod tallies;
mod totals;
mod turns;

pub use connections::Connections;
pub use file::{CaptureError, CaptureFile, Frame};
pub use packet::{Parsed, TcpPacket, parse};
