//! Automatic repeat request: stop-and-wait, Go-Back-N and selective repeat over one frame format.
//!
//! The protocols share everything but their [`retransmission`] policy. Like the rest of the crate the module uses neither
//! sockets nor clocks.

pub mod any_policy;
pub mod codec;
pub mod config;
pub mod connection;
pub mod frame;
pub mod go_back_n;
pub mod handshake;
pub mod receiver;
pub mod retransmission;
pub mod selective_repeat;
pub mod sender;
pub mod sequence;
pub mod stop_and_wait;
pub mod timer;
pub mod window;

pub use config::ArqConfig;
pub use connection::{Connection, Error, Event};
pub use frame::{Frame, Payload, StreamRange};
pub use handshake::{Admission, Listener};
