//! A host's TCP in user space: many connections with real bytes over whole IPv4 packets.
//!
//! Each connection is a [`Connection`](transport::tcp::Connection) of the `transport` crate, as in simulation; this crate adds the bytes. It
//! depends on `transport` and `foundation` alone and must not use a clock or a socket: the owner of a [`Stack`] passes
//! packets and the time, and sends the packets that it returns.

#![forbid(unsafe_code)]

mod arrival;
mod bytes;
mod gateway;
mod icmp;
mod slots;
mod stack;
mod stream;
mod table;

pub use arrival::{Arrival, UnmatchedSegment};
pub use gateway::{Gateway, Side};
pub use icmp::echo_reply;
pub use slots::{Key, Slots};
pub use stack::{ConnectionEvent, Counters, Event, Stack};
pub use table::StreamId;
