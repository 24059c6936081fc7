//! Traces of a simulated trial: an observer that records events, and a capture file for Wireshark.

pub mod addresses;
pub mod crossings;
pub mod decisions;
pub mod packets;
pub mod pcapng;
pub mod recorder;
pub mod waits;

pub use crossings::Crossings;
pub use decisions::Decisions;
pub use recorder::Recorder;
pub use waits::Waits;
