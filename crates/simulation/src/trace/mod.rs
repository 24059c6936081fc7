//! What happened in one simulated trial: a watcher that writes it down, and a capture that Wireshark opens.

pub mod addresses;
pub mod packets;
pub mod pcapng;
pub mod recorder;

pub use recorder::Recorder;
