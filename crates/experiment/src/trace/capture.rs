//! The extent of a capture file.

use crate::side::Side;

/// The packets and bytes that a capture includes.
#[derive(Clone, Copy, Debug, Default)]
pub struct CaptureOptions {
    /// The captured end of each flow; `None` for both. A capture of both ends contains every delivered packet twice, which
    /// Wireshark reports as a retransmission unless it separates interfaces.
    pub side: Option<Side>,
    /// Bytes kept of each packet; `None` for all.
    pub snap: Option<u32>,
}
