//! Metrics of links: utilisation, queue length and queueing delay of the bottlenecks, and of links by name.

use std::collections::BTreeMap;

use foundation::Instant;
use hdrhistogram::Histogram;
use network::{Capacity, LinkId};

use super::{Metrics, TrialOutcome, mean, merged, per_second};
use crate::observation::Observation;

/// The metric that records have only with outages.
pub(super) const OUTAGE_DROPS: &str = "outage_drops";
/// The metric that records have only with address translators.
pub(super) const NAT_DROPS: &str = "nat_drops";

impl TrialOutcome<'_> {
    /// Returns whether a link fails in the trial.
    pub(super) fn has_outages(&self) -> bool {
        self.topology
            .links()
            .iter()
            .any(|link| !link.spec.down.is_empty())
    }

    /// Returns whether a link has an address translator.
    pub(super) fn has_translators(&self) -> bool {
        self.topology.links().iter().any(|link| link.spec.nat.is_some())
    }

    /// Metrics of the bottlenecks together.
    pub(super) fn set_bottlenecks(&self, set: &mut impl FnMut(&str, Option<f64>)) {
        let bottlenecks = self.topology.bottlenecks();
        // The bottlenecks come first.
        let seen: Vec<(LinkId, &Observation)> = bottlenecks.iter().copied().zip(self.links).collect();
        if seen.is_empty() {
            return;
        }
        for (name, value) in self.of_links(&seen) {
            set(name, value);
        }
        set("marks", Some(self.marked as f64));
    }

    /// Adds the metrics of each link observed on request: `drops@uplink/1/2`.
    pub(super) fn add_links(&self, metrics: &mut Metrics) {
        let observed: BTreeMap<LinkId, &Observation> = self.topology.observed().zip(self.links).collect();
        for link in self.topology.requested() {
            // Without an outcome, there is no observation.
            let Some(&seen) = observed.get(link) else { continue };
            let name = &self.topology.links()[link.0 as usize].name;
            for (metric, value) in self.of_links(&[(*link, seen)]) {
                metrics.insert(
                    format!("{metric}@{name}"),
                    value.filter(|value| value.is_finite()),
                );
            }
        }
    }

    /// Returns the metrics of links: sums of counts, the largest queue, and else means.
    fn of_links(&self, links: &[(LinkId, &Observation)]) -> Vec<(&'static str, Option<f64>)> {
        let each = |value: &dyn Fn(&Observation) -> f64| -> Vec<f64> {
            links.iter().map(|(_, seen)| value(seen)).collect()
        };
        let sum = |value: &dyn Fn(&Observation) -> f64| Some(each(value).iter().sum());
        let seconds = self.seconds();
        let rates = links.iter().map(|&(link, seen)| self.throughput(link, seen));
        let rates: Vec<(Option<f64>, Option<f64>)> = rates.collect();
        let throughput: Vec<f64> = rates.iter().filter_map(|&(throughput, _)| throughput).collect();
        let used: Vec<f64> = rates.iter().filter_map(|&(_, used)| used).collect();
        let mut found = vec![
            ("throughput_bps", mean(&throughput)),
            ("utilisation", mean(&used)),
            ("drops", sum(&|seen| seen.dropped as f64)),
            ("losses", sum(&|seen| seen.lost as f64)),
            (OUTAGE_DROPS, sum(&|seen| seen.outage_dropped as f64)),
            (NAT_DROPS, sum(&|seen| seen.nat_dropped as f64)),
            ("marks", sum(&|seen| seen.marked as f64)),
            (
                "queue_mean_packets",
                mean(&each(&|seen| seen.mean_queue_packets(seconds))).filter(|_| seconds > 0.0),
            ),
            (
                "queue_max_packets",
                each(&|seen| seen.max_queue_packets as f64)
                    .into_iter()
                    .reduce(f64::max),
            ),
        ];
        let waits = merged(links.iter().filter_map(|(_, seen)| seen.waits.as_deref()));
        let waited = |value: &dyn Fn(&Histogram<u64>) -> f64| Some(value(waits.as_deref()?) / 1e9);
        if !self.has_translators() {
            found.retain(|&(name, _)| name != NAT_DROPS);
        }
        if !self.has_outages() {
            found.retain(|&(name, _)| name != OUTAGE_DROPS);
        }
        found.extend([
            ("queueing_delay_mean_s", waited(&|waits| waits.mean())),
            (
                "queueing_delay_p50_s",
                waited(&|waits| waits.value_at_quantile(0.5) as f64),
            ),
            (
                "queueing_delay_p99_s",
                waited(&|waits| waits.value_at_quantile(0.99) as f64),
            ),
        ]);
        found
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
            // What the other users of a medium leave is not known.
            Capacity::Unlimited | Capacity::Cell(_) | Capacity::Wifi(_) => (Some(delivered), None),
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
