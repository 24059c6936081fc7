//! Reading goodput, windows and queues at regular times.

use experiment::metrics::Window;
use experiment::observation::Observation;
use experiment::plan::Group;
use experiment::spec::TrialSpec;
use experiment::workload::Kind;
use foundation::{Duration, Instant};
use network::topology::Topology;
use network::{Network, Observer};
use serde::Serialize;

use crate::body::Parcel;
use crate::world::Flow;

/// Flows beyond this many are not followed one by one.
const MOST_FOLLOWED: u32 = 64;

/// What one flow did over time. All lists are as long as `time`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlowSeries {
    /// The flow's number.
    pub flow: u32,
    /// The host that sends, and for traffic its name.
    pub name: String,
    /// Seconds since the trial began.
    pub time: Vec<f64>,
    /// Congestion window in bytes.
    pub cwnd_bytes: Vec<Option<u64>>,
    /// Slow-start threshold in bytes, once there is one.
    pub ssthresh_bytes: Vec<Option<u64>>,
    /// Smoothed round-trip time in seconds.
    pub srtt_s: Vec<Option<f64>>,
    /// The latest round-trip sample in seconds.
    pub rtt_s: Vec<Option<f64>>,
    /// Payload bytes in flight.
    pub in_flight_bytes: Vec<u64>,
    /// Payload that the receiver read since the sample before, in bit/s.
    pub goodput_bps: Vec<f64>,
    /// What the sender is doing about losses.
    pub state: Vec<&'static str>,
    #[serde(skip)]
    delivered: u64,
}

/// What one queue held over time. All lists are as long as `time`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QueueSeries {
    /// The link that the queue is in front of.
    pub link: String,
    /// Seconds since the trial began.
    pub time: Vec<f64>,
    /// Packets, the one being sent included.
    pub packets: Vec<u64>,
    /// Their bytes.
    pub bytes: Vec<u64>,
}

/// Machines and queues, read at regular times.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Series {
    /// Seconds from sample to sample.
    pub interval_s: f64,
    /// The flows, in the order in which they began.
    pub flows: Vec<FlowSeries>,
    /// The queues of the bottlenecks.
    pub queues: Vec<QueueSeries>,
}

/// Reads a world at regular times.
pub(crate) struct Sampler {
    series: Option<(Duration, Series)>,
    /// The length of a window of goodput, kept of flows that all last.
    window: Option<Duration>,
    windows: Vec<Window>,
    last: Vec<u64>,
    /// The bottlenecks when measuring began.
    pub(crate) before: Vec<Observation>,
}

impl Sampler {
    pub(crate) fn new(spec: &TrialSpec, series: Option<Duration>, topology: &Topology) -> Self {
        let queues = topology.bottlenecks().iter().map(|&link| QueueSeries {
            link: topology.links()[link.0 as usize].name.clone(),
            ..QueueSeries::default()
        });
        let kind = spec.workload.kind;
        Self {
            series: series.map(|interval| {
                let series = Series {
                    interval_s: interval.as_secs_f64(),
                    flows: Vec::new(),
                    queues: queues.collect(),
                };
                (interval, series)
            }),
            window: matches!(kind, Kind::Bulk | Kind::OnOff).then(|| spec.workload.sample()),
            windows: Vec::new(),
            last: Vec::new(),
            before: vec![Observation::default(); topology.bottlenecks().len()],
        }
    }

    /// How often windows of goodput are read, where they are.
    pub(crate) const fn window(&self) -> Option<Duration> {
        self.window
    }

    /// How often series are read, where they are.
    pub(crate) fn interval(&self) -> Option<Duration> {
        self.series.as_ref().map(|(interval, _)| *interval)
    }

    pub(crate) fn series(&self) -> Option<&Series> {
        self.series.as_ref().map(|(_, series)| series)
    }

    pub(crate) fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// Measuring begins.
    pub(crate) fn mark<O: Observer<Parcel>>(
        &mut self,
        now: Instant,
        network: &Network<Parcel, O>,
        topology: &Topology,
    ) {
        let bottlenecks = topology.bottlenecks().iter();
        self.before = bottlenecks
            .map(|&link| Observation::of(now, network, link))
            .collect();
    }

    /// Reads goodput.
    pub(crate) fn take_window(&mut self, now: Instant, flows: &[Option<Flow>]) {
        let mut delivered = Vec::new();
        for flow in flows.iter().flatten() {
            let number = flow.number as usize;
            if number >= self.last.len() {
                self.last.resize(number + 1, 0);
            }
            let total = flow.ends[1].delivered;
            delivered.push((flow.number, total - self.last[number]));
            self.last[number] = total;
        }
        self.windows.push(Window { at: now, delivered });
    }

    /// Reads machines and queues.
    pub(crate) fn take_series<O: Observer<Parcel>>(
        &mut self,
        now: Instant,
        flows: &[Option<Flow>],
        groups: &[Group],
        network: &Network<Parcel, O>,
        topology: &Topology,
    ) {
        let Some((interval, series)) = &mut self.series else {
            return;
        };
        for flow in flows.iter().flatten() {
            let end = &flow.ends[0];
            let found = series.flows.iter().position(|known| known.flow == flow.number);
            let place = found.unwrap_or_else(|| {
                let group = &groups[flow.group as usize];
                let host = &topology.hosts()[group.pairs[flow.pair as usize].from.0 as usize];
                let name = match &group.name {
                    Some(name) => format!("{name} ({host})"),
                    None => host.clone(),
                };
                series.flows.push(FlowSeries {
                    flow: flow.number,
                    name,
                    ..FlowSeries::default()
                });
                series.flows.len() - 1
            });
            if place >= MOST_FOLLOWED as usize {
                series.flows.truncate(MOST_FOLLOWED as usize);
                continue;
            }
            let line = &mut series.flows[place];
            let probe = end.probe(now);
            let delivered = flow.ends[1].delivered;
            line.time.push(now.as_secs_f64());
            line.cwnd_bytes.push(probe.window);
            line.ssthresh_bytes.push(probe.threshold);
            line.srtt_s.push(probe.smoothed_rtt);
            line.rtt_s.push(probe.rtt);
            line.in_flight_bytes.push(probe.in_flight);
            let bits = (delivered - line.delivered) as f64 * 8.0;
            line.goodput_bps.push(bits / interval.as_secs_f64());
            line.state.push(probe.state);
            line.delivered = delivered;
        }
        for (line, &link) in series.queues.iter_mut().zip(topology.bottlenecks()) {
            let waiting = network.queue(link, now);
            line.time.push(now.as_secs_f64());
            line.packets.push(waiting.packets);
            line.bytes.push(waiting.bytes);
        }
    }
}
