//! The queueing delay of each flow, as a mean over the time since its last sample.

use std::collections::HashMap;

use foundation::Duration;
use network::{LinkId, Transmission};

/// Queueing delays of data packets on the observed links, by flow. With drop-tail a delay counts when the packet joins the queue,
/// otherwise when it leaves the queue.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    links: Vec<LinkId>,
    /// Number of delays since the last sample, and their sum.
    sums: HashMap<u32, (u32, Duration)>,
}

impl Waits {
    /// Returns an empty collection for these links.
    pub(crate) fn on(links: impl IntoIterator<Item = LinkId>) -> Self {
        Self {
            links: links.into_iter().collect(),
            sums: HashMap::new(),
        }
    }

    pub(super) fn add(&mut self, flow: u32, link: LinkId, times: Transmission) {
        if self.links.contains(&link) {
            let (count, sum) = self.sums.entry(flow).or_default();
            *count += 1;
            *sum += times.start - times.joined;
        }
    }

    /// Takes the mean delay of a flow since the last call, in seconds; `None` if it sent no packet.
    pub(super) fn take(&mut self, flow: u32) -> Option<f64> {
        let (count, sum) = self.sums.remove(&flow)?;
        Some(sum.as_secs_f64() / f64::from(count))
    }
}
