//! Periodic samples of goodput, congestion windows and queues.

use experiment::metrics::GoodputWindow;
use experiment::observation::{self, Observation};
use experiment::plan::Group;
use experiment::spec::TrialSpec;
use experiment::trace::series::{Sampling, Series};
use experiment::workload::WorkloadKind;
use foundation::{Duration, Instant};
use network::topology::Topology;
use network::{Network, Observer};

use crate::body::Parcel;
use crate::flow::Flow;

/// Takes periodic samples of a world.
pub(crate) struct Sampler {
    series: Option<Sampling>,
    /// Interval of goodput samples, for workloads with long-lived flows.
    window: Option<Duration>,
    windows: Vec<GoodputWindow>,
    last: Vec<u64>,
    /// Whether the series contain details of each flow.
    details: bool,
    /// The observed links at the start of the measured time.
    pub(crate) before: Vec<Observation>,
    /// Packets marked by all links before it.
    pub(crate) marked_before: u64,
}

impl Sampler {
    pub(crate) fn new(spec: &TrialSpec, series: Option<Duration>, topology: &Topology) -> Self {
        let kind = spec.workload.kind;
        Self {
            series: series.map(|interval| Sampling::new(interval, topology)),
            window: matches!(kind, WorkloadKind::Bulk | WorkloadKind::OnOff).then(|| spec.workload.sample()),
            windows: Vec::new(),
            last: Vec::new(),
            details: false,
            before: vec![Observation::default(); topology.observed().count()],
            marked_before: 0,
        }
    }

    /// Adds details of each flow to later samples.
    pub(crate) const fn sample_details(&mut self) {
        self.details = true;
    }

    /// Returns the interval of goodput samples, if any.
    pub(crate) const fn window(&self) -> Option<Duration> {
        self.window
    }

    /// Returns the interval of series, if any.
    pub(crate) fn interval(&self) -> Option<Duration> {
        self.series.as_ref().map(Sampling::interval)
    }

    pub(crate) fn series(&self) -> Option<&Series> {
        self.series.as_ref().map(Sampling::series)
    }

    /// Takes the series' samples since the last call.
    pub(crate) fn drain_series(&mut self) -> Option<Series> {
        self.series.as_mut().map(Sampling::drain)
    }

    pub(crate) fn windows(&self) -> &[GoodputWindow] {
        &self.windows
    }

    /// Starts the measured time.
    pub(crate) fn mark<O: Observer<Parcel>>(
        &mut self,
        now: Instant,
        network: &mut Network<Parcel, O>,
        topology: &Topology,
    ) {
        let links = topology.observed();
        self.before = links.map(|link| Observation::mark(now, network, link)).collect();
        self.marked_before = observation::marked(network, topology.links().len());
    }

    /// Takes a goodput sample.
    pub(crate) fn take_window(&mut self, now: Instant, flows: &[Option<Flow>]) {
        let mut delivered = Vec::new();
        for flow in flows.iter().flatten() {
            let number = flow.number as usize;
            if number >= self.last.len() {
                self.last.resize(number + 1, 0);
            }
            let total = flow.ends[1].port.delivered;
            delivered.push((flow.number, total - self.last[number]));
            self.last[number] = total;
        }
        self.windows.push(GoodputWindow { at: now, delivered });
    }

    /// Takes a sample of machines and queues.
    pub(crate) fn take_series<O: Observer<Parcel>>(
        &mut self,
        now: Instant,
        flows: &[Option<Flow>],
        groups: &[Group],
        network: &Network<Parcel, O>,
        topology: &Topology,
    ) {
        let Some(sampling) = &mut self.series else {
            return;
        };
        for flow in flows.iter().flatten() {
            let group = &groups[flow.group as usize];
            let name = || group.flow_name(flow.pair, topology);
            let to = group.data_receiver();
            let probe = flow.ends[to.other() as usize].probe(now);
            let delivered = flow.ends[to as usize].port.delivered;
            sampling.take_flow(now, flow.number, name, &probe, delivered);
            if self.details {
                let early = flow.ends[to as usize].early_bytes();
                let subflows = flow.ends[to.other() as usize].subflows();
                sampling.take_details(now, flow.number, early, &subflows);
            }
        }
        let queues = topology.observed().map(|link| network.queue(link, now));
        sampling.take_queues(now, queues.map(|waiting| (waiting.packets, waiting.bytes)));
    }
}
