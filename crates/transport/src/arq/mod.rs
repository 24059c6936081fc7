//! Automatic repeat request: stop-and-wait, Go-Back-N and selective repeat over one frame format.
//!
//! The protocols share everything but their [`retransmission`] policy. Like the rest of the crate the module uses neither
//! sockets nor clocks.

pub mod codec;
pub mod config;
pub mod connection;
pub mod frame;
pub mod handshake;
pub mod path_mtu;
mod protocols;
pub mod receiver;
pub mod retransmission;
pub mod sender;
pub mod sequence;
pub mod tail_probe;
pub mod timer;
pub mod window;

use foundation::{Duration, Instant};

pub use config::ArqConfig;
pub use connection::{Connection, Error, Event};
pub use frame::{Frame, Payload, StreamRange};
pub use handshake::{Admission, Listener};
use retransmission::{AckFacts, RetransmissionPolicy};
use window::{SendWindow, Slot};

protocols::protocols! {
    /// One packet at a time; the next is sent when its ACK has arrived.
    1 => StopAndWait in stop_and_wait,
    /// A window of packets, cumulative ACKs, no receive buffer: after a loss the whole window is retransmitted.
    2 => GoBackN in go_back_n,
    /// A window of packets, selective ACKs, a receive buffer: only missing packets are retransmitted.
    3 => SelectiveRepeat in selective_repeat,
}
