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
        let links = self.topology.bottlenecks().iter();
        let rates: Vec<(Option<f64>, Option<f64>)> = links
            .zip(self.bottlenecks)
            .map(|(&link, seen)| self.throughput(link, seen))
            .collect();
        let throughput: Vec<f64> = rates.iter().filter_map(|&(throughput, _)| throughput).collect();
        let used: Vec<f64> = rates.iter().filter_map(|&(_, used)| used).collect();
        set("throughput_bps", mean(&throughput));
        set("utilisation", mean(&used));
        set("drops", Some(each(&|seen| seen.dropped as f64).iter().sum()));
        set("losses", Some(each(&|seen| seen.lost as f64).iter().sum()));
        set("marks", Some(self.marked as f64));
        set(
            "queue_mean_packets",
            mean(&each(&|seen| seen.mean_queue_packets(seconds))).filter(|_| seconds > 0.0),
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

    /// Returns the throughput of a link in bit/s, and its share in the capacity; `None` over no time, and the share
    /// also without a limit.
    ///
    /// A constant rate counts the time in transmission, so that a packet at the edge of the measured time counts in part.
    /// Whole packets that leave in the measured time may exceed the rate by one. With a trace, packets arrive one propagation
    /// delay after their opportunity, so its interval starts that much earlier; a packet may have used an opportunity before.
    fn throughput(&self, link: LinkId, seen: &Observation) -> (Option<f64>, Option<f64>) {
        let spec = &self.topology.links()[link.0 as usize].spec;
        let Some(delivered) = per_second(seen.delivered.bytes, self.seconds()) else {
            return (None, None);
        };
        match &spec.capacity {
            Capacity::Unlimited => (Some(delivered), None),
            Capacity::Rate(rate) => {
                let used = seen.busy.as_secs_f64() / self.seconds();
                (Some(used * rate.bits_per_second() as f64), Some(used))
            }
            Capacity::Trace(trace) => {
                let sent_at = |arrived: Instant| {
                    let at = self.epoch + arrived.saturating_since(Instant::ZERO);
                    Instant::ZERO + at.saturating_since(Instant::ZERO + spec.delay)
                };
                let bytes = trace.bytes_between(sent_at(self.from), sent_at(self.until));
                let capacity = per_second(bytes, self.seconds());
                (
                    Some(delivered),
                    capacity
                        .filter(|capacity| *capacity > 0.0)
                        .map(|capacity| (delivered / capacity).min(1.0)),
                )
            }
        }
    }
}
