//! Metrics of the bottlenecks: utilisation, queue length and queueing delay.

use foundation::Instant;
use network::{Capacity, LinkId};

use super::{TrialOutcome, mean, merged, per_second};
use crate::observation::Observation;

impl TrialOutcome<'_> {
    pub(super) fn set_bottlenecks(&self, set: &mut impl FnMut(&str, Option<f64>)) {
        if self.bottlenecks.is_empty() {
            return;
        }
        let each = |value: &dyn Fn(&Observation) -> f64| -> Vec<f64> {
            self.bottlenecks.iter().map(value).collect()
        };
        let seconds = self.seconds();
        let throughput = each(&|seen| per_second(seen.delivered.bytes, seconds));
        let capacities = self
            .topology
            .bottlenecks()
            .iter()
            .map(|&link| self.capacity(link));
        let used: Vec<f64> = throughput
            .iter()
            .zip(capacities)
            .filter_map(|(throughput, capacity)| Some(throughput / capacity?))
            .collect();
        set("throughput_bps", mean(&throughput));
        set("utilisation", mean(&used));
        set("drops", Some(each(&|seen| seen.dropped as f64).iter().sum()));
        set("losses", Some(each(&|seen| seen.lost as f64).iter().sum()));
        set("marks", Some(each(&|seen| seen.marked as f64).iter().sum()));
        set(
            "queue_mean_packets",
            mean(&each(&|seen| seen.mean_queue_packets(seconds))),
        );
        set(
            "queue_max_packets",
            each(&|seen| seen.max_queue_packets as f64)
                .into_iter()
                .reduce(f64::max),
        );
        if let Some(waits) = merged(self.bottlenecks.iter().filter_map(|seen| seen.waits.as_deref())) {
            let seconds = |nanos: u64| Some(nanos as f64 / 1e9);
            set("queueing_delay_mean_s", Some(waits.mean() / 1e9));
            set("queueing_delay_p50_s", seconds(waits.value_at_quantile(0.5)));
            set("queueing_delay_p99_s", seconds(waits.value_at_quantile(0.99)));
        }
    }

    /// Returns the capacity of a link over the measured time, in bit/s; `None` if unlimited. Packets arrive one propagation
    /// delay after their opportunity, so the interval of a trace starts that much earlier.
    fn capacity(&self, link: LinkId) -> Option<f64> {
        let spec = &self.topology.links()[link.0 as usize].spec;
        match &spec.capacity {
            Capacity::Unlimited => None,
            Capacity::Rate(rate) => Some(rate.bits_per_second() as f64),
            Capacity::Trace(trace) => {
                let sent_at = |arrived: Instant| {
                    let at = self.epoch + arrived.saturating_since(Instant::ZERO);
                    Instant::ZERO + at.saturating_since(Instant::ZERO + spec.delay)
                };
                let bytes = trace.bytes_between(sent_at(self.from), sent_at(self.until));
                Some(per_second(bytes, self.seconds())).filter(|rate| *rate > 0.0)
            }
        }
    }
}
