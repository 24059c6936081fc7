//! Traces of a trial, in the same form for every world: the event table, periodic samples of machines and queues, and
//! capture files for Wireshark.

pub mod capture;
pub mod content;
pub mod decision;
pub mod details;
pub mod events;
pub mod probe;
pub mod quic_packet;
pub mod series;
pub mod table;

pub use content::Content;
pub use decision::Decision;
pub use events::{TraceDetail, TraceEvent, TraceEventKind};
pub use probe::Probe;
pub use series::{Sampling, Series};
pub use table::{EventTable, TracedPacket};
