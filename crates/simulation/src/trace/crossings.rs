//! The way of each packet over the links, for animations.

use foundation::Instant;
use network::{LinkId, Transmission};
use serde::Serialize;

/// When packets join the queues of links and cross them. Times are in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Crossings {
    /// Packet id, link, and time of reaching the near end.
    pub entered: Vec<(u64, u32, f64)>,
    /// Packet id and link of packets that wait again in another queue, before the transmissions of the same step.
    pub requeued: Vec<(u64, u32)>,
    /// Packet id, link, start and end of transmission, and arrival at the far end.
    pub sent: Vec<(u64, u32, f64, f64, f64)>,
}

impl Crossings {
    pub(super) fn add_entry(&mut self, at: Instant, link: LinkId, id: u64) {
        self.entered.push((id, link.0, at.as_secs_f64()));
    }

    pub(super) fn add_transmission(&mut self, link: LinkId, times: Transmission, id: u64) {
        let [start, end, arrival] = [times.start, times.end, times.arrival].map(|time| time.as_secs_f64());
        self.sent.push((id, link.0, start, end, arrival));
    }
}
