//! Goodput of flows over time.

use foundation::{Duration, Instant};

use crate::workload::{WorkloadConfig, WorkloadKind};

/// Goodput of a set of flows in one time window.
#[derive(Clone, Debug, PartialEq)]
pub struct GoodputWindow {
    /// End of the window.
    pub at: Instant,
    /// Bytes read by the receiver of each flow, with the flow number.
    pub delivered: Vec<(u32, u64)>,
}

/// Takes periodic samples of the goodput of flows.
#[derive(Debug)]
pub struct GoodputSampler {
    interval: Option<Duration>,
    windows: Vec<GoodputWindow>,
    /// Bytes read in total at the last sample, by flow.
    last: Vec<u64>,
}

impl GoodputSampler {
    /// Returns the sampler of the measured flows: only long-lived flows have samples.
    #[must_use]
    pub fn new(workload: &WorkloadConfig) -> Self {
        let is_long = matches!(workload.kind, WorkloadKind::Bulk | WorkloadKind::OnOff);
        Self {
            interval: is_long.then(|| workload.sample()),
            windows: Vec::new(),
            last: Vec::new(),
        }
    }

    /// Returns the interval of samples, if any.
    #[must_use]
    pub const fn interval(&self) -> Option<Duration> {
        self.interval
    }

    /// Takes a sample from the number and the delivered bytes of each flow.
    pub fn take(&mut self, at: Instant, flows: impl Iterator<Item = (u32, u64)>) {
        let mut delivered = Vec::new();
        for (number, total) in flows {
            let place = number as usize;
            if place >= self.last.len() {
                self.last.resize(place + 1, 0);
            }
            delivered.push((number, total - self.last[place]));
            self.last[place] = total;
        }
        self.windows.push(GoodputWindow { at, delivered });
    }

    /// Returns the samples.
    #[must_use]
    pub fn windows(&self) -> &[GoodputWindow] {
        &self.windows
    }
}
