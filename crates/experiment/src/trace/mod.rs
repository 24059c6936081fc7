//! What happened in one trial, in every world alike: the table of its packets, machines and queues read at regular
//! times, and captures that Wireshark opens.

pub mod capture;
pub mod content;
pub mod events;
pub mod probe;
pub mod series;
pub mod table;

pub use content::{Content, Side};
pub use events::{TraceEvent, TraceEventKind};
pub use probe::Probe;
pub use series::{Sampling, Series};
pub use table::{EventTable, TracedPacket};
