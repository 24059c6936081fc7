//! Periodic samples of goodput, congestion windows and queues.

use experiment::goodput::{GoodputSampler, GoodputWindow};
use experiment::observation::Baseline;
use experiment::plan::Group;
use experiment::schedule::Sample;
use experiment::spec::TrialSpec;
use experiment::trace::series::{Sampling, Series};
use foundation::{Duration, Instant};
use network::topology::Topology;
use network::{Network, Observer};

use crate::body::Parcel;
use crate::flow::Flow;
use crate::watch::WorldObserver;

/// Takes periodic samples of a world.
pub(crate) struct Sampler {
    series: Option<Sampling>,
    goodput: GoodputSampler,
    /// Whether the series contain details of each flow.
    details: bool,
    pub(crate) baseline: Baseline,
}

impl Sampler {
    pub(crate) fn new(spec: &TrialSpec, series: Option<Duration>, topology: &Topology) -> Self {
        Self {
            series: series.map(|interval| Sampling::new(interval, topology)),
            goodput: GoodputSampler::new(&spec.workload),
            details: false,
            baseline: Baseline::new(topology),
        }
    }

    /// Adds details of each flow to later samples.
    pub(crate) const fn sample_details(&mut self) {
        self.details = true;
    }

    /// Returns the interval of samples, if any.
    pub(crate) fn interval(&self, sample: Sample) -> Option<Duration> {
        match sample {
            Sample::Goodput => self.goodput.interval(),
            Sample::Series => self.series.as_ref().map(Sampling::interval),
            // Connections record all of them.
            Sample::RoundTrips => None,
        }
    }

    pub(crate) fn series(&self) -> Option<&Series> {
        self.series.as_ref().map(Sampling::series)
    }

    /// Takes the series' samples since the last call.
    pub(crate) fn drain_series(&mut self) -> Option<Series> {
        self.series.as_mut().map(Sampling::drain)
    }

    pub(crate) fn windows(&self) -> &[GoodputWindow] {
        self.goodput.windows()
    }

    /// Starts the measured time.
    pub(crate) fn mark<O: Observer<Parcel>>(&mut self, now: Instant, network: &mut Network<Parcel, O>) {
        self.baseline.mark(now, network);
    }

    /// Takes a sample.
    pub(crate) fn take<O: WorldObserver>(
        &mut self,
        sample: Sample,
        now: Instant,
        flows: &[Option<Flow>],
        groups: &[Group],
        network: &mut Network<Parcel, O>,
        topology: &Topology,
    ) {
        match sample {
            Sample::Goodput => {
                let flows = flows.iter().flatten();
                let delivered = flows.map(|flow| (flow.number, flow.ends[1].port.delivered));
                self.goodput.take(now, delivered);
            }
            Sample::Series => self.take_series(now, flows, groups, network, topology),
            Sample::RoundTrips => {}
        }
    }

    /// Takes a sample of machines and queues.
    fn take_series<O: WorldObserver>(
        &mut self,
        now: Instant,
        flows: &[Option<Flow>],
        groups: &[Group],
        network: &mut Network<Parcel, O>,
        topology: &Topology,
    ) {
        let Some(sampling) = &mut self.series else {
            return;
        };
        for flow in flows.iter().flatten() {
            let group = &groups[flow.start.group as usize];
            let name = || group.flow_name(flow.start.pair, topology);
            let to = group.data_receiver();
            let probe = flow.ends[to.other() as usize].probe(now);
            let delivered = flow.ends[to as usize].port.delivered;
            sampling.take_flow(now, flow.number, name, &probe, delivered);
            if self.details {
                let early = flow.ends[to as usize].early_bytes();
                let subflows = flow.ends[to.other() as usize].subflows();
                let queueing = network.observer_mut().take_wait(flow.number);
                sampling.take_details(now, flow.number, early, queueing, &subflows);
            }
        }
        let queues = topology.observed().map(|link| network.queue(link, now));
        sampling.take_queues(now, queues.map(|waiting| (waiting.packets, waiting.bytes)));
    }
}
