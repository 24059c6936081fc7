//! What happened in one trial: a table of events, and a capture that Wireshark opens.

pub mod capture;
pub mod events;
pub mod packets;
pub mod pcapng;
pub mod recorder;

pub use events::TraceEvent;
pub use recorder::Recorder;
