//! The metrics of a trial, from the outcomes of its flows and the observations of its links.

mod classes;
mod descriptions;
mod frames;
mod links;
mod rounds;
mod slowdown;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use foundation::Instant;
use hdrhistogram::Histogram;
use network::topology::Topology;
use transport::metrics::{DESCRIPTIONS as OF_A_TRANSFER, Description, efficiency};
use transport::{Metrics as TransferMetrics, Statistics};

use crate::censored::{self, Censored, Time};
use crate::fairness::{jain, max_min_distance};
use crate::goodput::GoodputWindow;
use crate::layout::{Member, fair_shares};
use crate::observation::Observation;
use crate::outcome::{FlowOutcome, SendCounters};
use crate::plan::{Group, Pair, Plan, Protocol};
use crate::workload::WorkloadKind;
use descriptions::OF_A_TRIAL;
use links::{NAT_DROPS, OUTAGE_DROPS};

/// Returns every metric, in the order of reports.
pub fn descriptions() -> impl Iterator<Item = &'static Description> {
    OF_A_TRANSFER.iter().chain(OF_A_TRIAL)
}

/// Values by name; `None` if the metric does not apply.
pub type Metrics = BTreeMap<String, Option<f64>>;

/// Returns the metrics of a single transfer; `None` if no bytes were acknowledged.
#[must_use]
pub fn of_transfer(statistics: &Statistics) -> Option<Metrics> {
    let figures = serde_json::to_value(TransferMetrics::of(statistics)?).ok()?;
    let figures = figures.as_object()?.iter();
    Some(
        figures
            .map(|(name, value)| (name.clone(), value.as_f64()))
            .collect(),
    )
}

/// Numbers of senders with separate goodput metrics.
const HOSTS: std::ops::RangeInclusive<usize> = 2..=16;
/// Convergence criterion: number of consecutive samples, and minimum of Jain's index in them.
const CONVERGED: (usize, f64) = (5, 0.9);

/// The outcome of a trial, from which metrics and record are computed.
pub struct TrialOutcome<'a> {
    /// Hosts and links.
    pub topology: &'a Topology,
    /// The measured flows, then each kind of traffic.
    pub groups: &'a [Group],
    /// Outcomes of all flows, in order of start.
    pub flows: &'a [FlowOutcome],
    /// Goodput over time, for workloads with long-lived flows.
    pub windows: &'a [GoodputWindow],
    /// The observed links of the topology over the measured time, in its order.
    pub links: &'a [Observation],
    /// Packets marked by all links over the measured time (ECN).
    pub marked: u64,
    /// Lateness of the emulator in nanoseconds, on wall time.
    pub lateness: Option<&'a Histogram<u64>>,
    /// Time of the network's clock at the start of the trial.
    pub epoch: Instant,
    /// Packets dropped by the kernels of the hosts, if any.
    pub host_drops: Option<u64>,
    /// Start of the measured time.
    pub from: Instant,
    /// End of the measured time.
    pub until: Instant,
}

/// The start of the names of metrics that only records of datagrams have.
const ONE_WAY_DELAY: &str = "one_way_delay";
/// A metric that only records of web pages have.
const OBJECT_MEAN: &str = "object_mean_s";
/// The start of the names of metrics that only records of real-time frames have.
const FRAMES: &str = "frame";

impl TrialOutcome<'_> {
    fn kind(&self) -> WorkloadKind {
        self.groups[0].workload.kind
    }

    /// Returns the retransmission timeouts of flows with these counters, if their protocol counts them.
    fn timeouts(&self, sent: SendCounters) -> Option<f64> {
        let counts = self.groups[0].protocol.counts_timeouts();
        counts.then_some(sent.timeouts as f64)
    }

    /// Returns the measured flows; of arrivals, those after the warm-up.
    fn own(&self) -> impl Iterator<Item = &FlowOutcome> + Clone {
        let arrives = self.kind() == WorkloadKind::Arrivals;
        self.flows
            .iter()
            .filter(move |flow| flow.group == 0 && !(arrives && flow.opened_at < self.from))
    }

    fn seconds(&self) -> f64 {
        (self.until - self.from).as_secs_f64()
    }

    /// Returns the goodput of a flow in bit/s, over the measured time or its own duration; `None` if that is 0.
    #[must_use]
    pub fn goodput(&self, flow: &FlowOutcome) -> Option<f64> {
        let own = &self.groups[flow.group as usize];
        let timed = self.kind().is_timed();
        if own.is_measured() && !timed && own.workload.kind == WorkloadKind::File {
            return over_time(
                flow.sent.acknowledged,
                flow.first_data_at,
                flow.last_acknowledged_at,
            );
        }
        let bytes = flow.delivered[0] + flow.delivered[1];
        let seconds = if timed {
            self.seconds()
        } else {
            self.until.as_secs_f64()
        };
        per_second(bytes, seconds)
    }

    /// Computes the metrics.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let has_outages = self.has_outages();
        let has_translators = self.has_translators();
        let has_datagrams = self.has_datagrams();
        let has_objects = self.kind() == WorkloadKind::WebPage;
        let has_frames = self.kind() == WorkloadKind::Frames;
        let mut metrics: Metrics = descriptions()
            .filter(|d| has_outages || d.name != OUTAGE_DROPS)
            .filter(|d| has_translators || d.name != NAT_DROPS)
            .filter(|d| has_datagrams || !d.name.starts_with(ONE_WAY_DELAY))
            .filter(|d| has_objects || d.name != OBJECT_MEAN)
            .filter(|d| has_frames || !d.name.starts_with(FRAMES))
            .map(|d| (d.name.to_owned(), None))
            .collect();
        let mut set = |name: &str, value: Option<f64>| {
            let known = metrics.insert(name.to_owned(), value.filter(|value| value.is_finite()));
            debug_assert!(known.is_some(), "{name} is not described");
        };
        self.set_volume(&mut set);
        self.set_time(&mut set);
        self.set_slowdown(&mut set);
        self.set_requests(&mut set);
        self.set_objects(&mut set);
        self.set_frames(&mut set);
        self.set_rounds(&mut set);
        self.set_round_trips(&mut set);
        self.set_one_way_delays(&mut set);
        self.set_bottlenecks(&mut set);
        self.set_fairness(&mut set);
        self.set_lateness(&mut set);
        self.add_hosts(&mut metrics);
        self.add_classes(&mut metrics);
        self.add_links(&mut metrics);
        metrics
    }

    fn set_volume(&self, set: &mut impl FnMut(&str, Option<f64>)) {
        let sent = self
            .own()
            .fold(SendCounters::default(), |sum, flow| sum.and(flow.sent));
        let flows = self.own().count() as f64;
        let each: Option<f64> = self.own().map(|flow| self.goodput(flow)).sum();
        let first = self.own().filter_map(|flow| flow.first_data_at).min();
        let last = self.own().filter_map(|flow| flow.last_acknowledged_at).max();
        let whole = match self.kind() {
            WorkloadKind::File => over_time(sent.acknowledged, first, last),
            _ => each,
        };
        set("goodput_bps", whole);
        set(
            "flow_goodput_bps",
            each.filter(|_| flows > 0.0).map(|each| each / flows),
        );
        if self.kind() == WorkloadKind::File {
            set(
                "completion_s",
                first.zip(last).map(|(first, last)| (last - first).as_secs_f64()),
            );
        }
        let own: Vec<&FlowOutcome> = self.own().collect();
        let setups = self.times(&own, |flow| {
            Some((flow.first_data_at? - flow.opened_at).as_secs_f64())
        });
        set("setup_s", Censored::of(&setups).mean());
        let unstarted = own.iter().filter(|flow| flow.first_data_at.is_none()).count();
        set("flows_unstarted", Some(unstarted as f64));
        set("packets_sent", Some(sent.packets as f64));
        set("retransmissions", Some(sent.retransmissions as f64));
        set("timeouts", self.timeouts(sent));
        if matches!(self.groups[0].protocol, Protocol::Tcp(_)) && flows > 0.0 {
            let each = |nanos: u64| Some(nanos as f64 / 1e9 / flows);
            set("rwnd_limited_s", each(sent.receiver_limited_ns));
            set("sndbuf_limited_s", each(sent.buffer_limited_ns));
        }
        // Datagrams are not acknowledged.
        let is_acknowledged = self.groups[0].responds_to_congestion();
        set(
            "efficiency",
            is_acknowledged.then(|| efficiency(sent.acknowledged, sent.bytes_again)),
        );
        set("flows_failed", Some(failed(self.own())));
        let paths: Vec<f64> = self
            .own()
            .filter(|flow| flow.ways != 0)
            .map(|flow| f64::from(flow.ways.count_ones()))
            .collect();
        set("paths_mean", mean(&paths));
    }

    /// Flow completion times, or response times of requests.
    fn set_time(&self, set: &mut impl FnMut(&str, Option<f64>)) {
        let kind = self.kind();
        if matches!(
            kind,
            WorkloadKind::Bulk | WorkloadKind::OnOff | WorkloadKind::AllReduce | WorkloadKind::Frames
        ) {
            return;
        }
        let own: Vec<&FlowOutcome> = self.own().collect();
        let times = match self.kind() {
            WorkloadKind::WebPage => Censored::of(&self.page_times(&own)),
            WorkloadKind::RequestResponse => {
                let answered = self.own().flat_map(|flow| &flow.transactions);
                let times = answered.map(|transaction| transaction.time().as_secs_f64());
                Censored::new(times.collect(), self.unanswered())
            }
            _ => Censored::of(&self.completion_times(&own)),
        };
        set("fct_mean_s", times.mean());
        set("fct_min_s", times.minimum());
        set("fct_p50_s", times.quantile(0.5));
        set("fct_p95_s", times.quantile(0.95));
        set("fct_p99_s", times.quantile(0.99));
        set("flow_throughput_bps", self.mean_throughput(&own));
        set("flows_completed", Some(times.measured().len() as f64));
        set("flows_unfinished", Some(unfinished(self.own())));
    }

    /// Returns the time of each page, from the opening of its connection to its last object.
    fn page_times(&self, flows: &[&FlowOutcome]) -> Vec<Time> {
        let objects = self.groups[0].workload.exchanges().unwrap_or_default();
        let objects: u64 = objects.iter().map(|group| u64::from(group.count)).sum();
        self.times(flows, |flow| {
            let last = flow.transactions.last()?;
            let is_complete = flow.transactions.len() as u64 == objects;
            is_complete.then(|| (last.responded_at - flow.opened_at).as_secs_f64())
        })
    }

    /// Times of the objects of pages.
    fn set_objects(&self, set: &mut impl FnMut(&str, Option<f64>)) {
        if self.kind() != WorkloadKind::WebPage {
            return;
        }
        let objects = self.own().flat_map(|flow| {
            let opened_at = flow.opened_at;
            flow.transactions
                .iter()
                .map(move |object| object.responded_at - opened_at)
        });
        let times: Vec<f64> = objects.map(|time| time.as_secs_f64()).collect();
        set(OBJECT_MEAN, mean(&times));
    }

    fn completion_times(&self, flows: &[&FlowOutcome]) -> Vec<Time> {
        self.times(flows, FlowOutcome::completion)
    }

    /// Returns times since the opening of flows; the end of the trial cuts off those without one.
    fn times(&self, flows: &[&FlowOutcome], seconds: impl Fn(&FlowOutcome) -> Option<f64>) -> Vec<Time> {
        let time = |flow: &&FlowOutcome| match seconds(flow) {
            Some(seconds) => Time::Measured(seconds),
            None if flow.failure.is_some() || flow.finished => Time::Never,
            None => Time::Above(self.until.saturating_since(flow.opened_at).as_secs_f64()),
        };
        flows.iter().map(time).collect()
    }

    /// Returns the mean of size over flow completion time in bit/s.
    fn mean_throughput(&self, flows: &[&FlowOutcome]) -> Option<f64> {
        censored::mean_of(&self.completion_times(flows), |position| {
            flows[position].throughput()
        })
    }

    /// Metrics of requests: losses, packets per request, and time on the wire.
    fn set_requests(&self, set: &mut impl FnMut(&str, Option<f64>)) {
        if self.kind() != WorkloadKind::RequestResponse {
            return;
        }
        if matches!(self.groups[0].protocol, Protocol::Udp(_) | Protocol::Icmp) {
            set("requests_unanswered", Some(self.unanswered() as f64));
        }
        let answered = self.own().map(|flow| flow.transactions.len()).sum::<usize>();
        let packets: Option<u64> = self.own().map(|flow| flow.packets).sum();
        set(
            "packets_per_request",
            packets
                .filter(|_| answered > 0)
                .map(|packets| packets as f64 / answered as f64),
        );
        let seen = || {
            let all = self.own().flat_map(|flow| &flow.transactions);
            all.filter_map(|transaction| Some((transaction.time(), transaction.on_wire?)))
        };
        let wire = seen().map(|(_, wire)| wire.as_secs_f64()).collect();
        let wire = Censored::new(wire, self.unanswered());
        let stack = seen().map(|(whole, wire)| whole.as_secs_f64() - wire.as_secs_f64());
        set("wire_min_s", wire.minimum());
        set("wire_p50_s", wire.quantile(0.5));
        // A request without a response has no time in the stack that could be the largest.
        set("stack_p50_s", Censored::new(stack.collect(), 0).quantile(0.5));
    }

    fn set_round_trips(&self, set: &mut impl FnMut(&str, Option<f64>)) {
        let Some(all) = merged(self.own().filter_map(|flow| flow.rtt.as_deref())) else {
            return;
        };
        // The round trip of a datagram is the time of its request.
        let beyond = self.unanswered();
        let quantile = |q: f64| {
            let rank = censored::rank(q, all.len() + beyond);
            let q = if beyond == 0 {
                q
            } else {
                rank as f64 / all.len() as f64
            };
            (rank <= all.len()).then(|| all.value_at_quantile(q) as f64 / 1e9)
        };
        set("rtt_p50_s", quantile(0.5));
        set("rtt_p99_s", quantile(0.99));
        set("rtt_mean_s", (beyond == 0).then(|| all.mean() / 1e9));
        set("rtt_min_s", Some(all.min() as f64 / 1e9));
    }

    /// Returns whether the measured flows are datagrams without feedback.
    fn has_datagrams(&self) -> bool {
        matches!(self.groups[0].protocol, Protocol::Udp(_))
            && matches!(self.kind(), WorkloadKind::Bulk | WorkloadKind::OnOff)
    }

    /// One-way delays of datagrams.
    fn set_one_way_delays(&self, set: &mut impl FnMut(&str, Option<f64>)) {
        let Some(all) = merged(self.own().filter_map(|flow| flow.one_way.as_deref())) else {
            return;
        };
        if all.is_empty() {
            return;
        }
        let quantile = |q: f64| Some(all.value_at_quantile(q) as f64 / 1e9);
        set("one_way_delay_mean_s", Some(all.mean() / 1e9));
        set("one_way_delay_p50_s", quantile(0.5));
        set("one_way_delay_p95_s", quantile(0.95));
        set("one_way_delay_p99_s", quantile(0.99));
    }

    /// Delays and losses caused by the emulating machine.
    fn set_lateness(&self, set: &mut impl FnMut(&str, Option<f64>)) {
        set("host_drops", self.host_drops.map(|packets| packets as f64));
        let Some(late) = self.lateness else { return };
        let seconds = |nanos: u64| Some(nanos as f64 / 1e9);
        set("emulator_late_p99_s", seconds(late.value_at_quantile(0.99)));
        set("emulator_late_max_s", seconds(late.max()));
    }

    /// Returns the flows that respond to congestion, traffic included.
    fn sharing(&self) -> Vec<&FlowOutcome> {
        let answers = |flow: &&FlowOutcome| self.groups[flow.group as usize].responds_to_congestion();
        self.flows.iter().filter(answers).collect()
    }

    fn set_fairness(&self, set: &mut impl FnMut(&str, Option<f64>)) {
        let total = |measured: bool| -> Option<f64> {
            let of = |flow: &&FlowOutcome| (flow.group == 0) == measured;
            self.flows.iter().filter(of).map(|flow| self.goodput(flow)).sum()
        };
        if self.groups.len() > 1 {
            let (own, others) = (total(true), total(false));
            set("traffic_goodput_bps", others);
            set("share", own.zip(others).map(|(own, others)| own / (own + others)));
        }
        if !matches!(
            self.kind(),
            WorkloadKind::Bulk | WorkloadKind::OnOff | WorkloadKind::File
        ) {
            return;
        }
        let sharing = self.sharing();
        if sharing.len() < 2 {
            return;
        }
        set("flows_sharing", Some(sharing.len() as f64));
        let goodput: Option<Vec<f64>> = sharing.iter().map(|flow| self.goodput(flow)).collect();
        set("jain", goodput.as_deref().and_then(jain));
        if matches!(self.kind(), WorkloadKind::Bulk | WorkloadKind::OnOff) {
            set(
                "max_min_distance",
                goodput.and_then(|goodput| max_min_distance(&goodput, &self.shares()?)),
            );
            let convergence = self.convergence(&sharing);
            set("convergence_s", convergence);
            set("unconverged", Some(f64::from(u8::from(convergence.is_none()))));
        }
    }

    /// Returns the max-min fair goodput of the flows that respond to congestion, from the capacity left by the others.
    fn shares(&self) -> Option<Vec<f64>> {
        let members = self.flows.iter().map(|flow| {
            Some(Member {
                group: flow.group,
                pair: flow.pair,
                goodput: self.goodput(flow)?,
            })
        });
        let members: Vec<Member> = members.collect::<Option<_>>()?;
        let shares = fair_shares(self.topology, self.groups, &members);
        Some(shares.into_iter().flatten().collect())
    }

    /// Returns the number of requests without a response in time.
    fn unanswered(&self) -> u64 {
        self.own().map(|flow| flow.unanswered).sum()
    }

    fn convergence(&self, sharing: &[&FlowOutcome]) -> Option<f64> {
        let last_start = sharing.iter().map(|flow| flow.opened_at).max()?;
        let (row, least) = CONVERGED;
        let is_fair: Vec<(Instant, bool)> = self
            .windows
            .iter()
            .filter(|window| window.at > last_start)
            .map(|window| {
                let delivered: HashMap<u32, u64> = window.delivered.iter().copied().collect();
                let of = |flow: &&FlowOutcome| delivered.get(&flow.number).map_or(0.0, |&bytes| bytes as f64);
                let index = jain(&sharing.iter().map(of).collect::<Vec<_>>());
                (window.at, index.is_some_and(|index| index >= least))
            })
            .collect();
        let first = is_fair
            .windows(row)
            .find(|some| some.iter().all(|(_, fair)| *fair))?;
        Some((first[0].0 - last_start).as_secs_f64())
    }

    /// Goodput by the host that sends, and by the name of traffic: `goodput_bps@s1`.
    fn add_hosts(&self, metrics: &mut Metrics) {
        let mut of: BTreeMap<&str, Option<f64>> = BTreeMap::new();
        for flow in self.flows {
            let group = &self.groups[flow.group as usize];
            let name = source(group, &group.pairs[flow.pair as usize], self.topology);
            let sum = of.entry(name).or_insert(Some(0.0));
            *sum = sum.zip(self.goodput(flow)).map(|(sum, goodput)| sum + goodput);
        }
        if !HOSTS.contains(&of.len()) {
            return;
        }
        for (name, goodput) in of {
            metrics.insert(host_column(name), goodput);
        }
    }
}

/// Returns the name under which the goodput of a flow counts: that of its traffic, or of the host that sends.
fn source<'a>(group: &'a Group, pair: &Pair, topology: &'a Topology) -> &'a str {
    let host = &topology.hosts()[pair.from.0 as usize];
    group.name.as_deref().unwrap_or(host)
}

fn host_column(name: &str) -> String {
    format!("goodput_bps@{name}")
}

/// Returns the names of the metrics of single hosts and of traffic that a trial has.
#[must_use]
pub fn host_columns(plan: &Plan) -> Vec<String> {
    let groups = plan.groups.iter();
    let names = groups.flat_map(|group| group.pairs.iter().map(|pair| source(group, pair, &plan.topology)));
    let names: BTreeSet<&str> = names.collect();
    match HOSTS.contains(&names.len()) {
        true => names.into_iter().map(host_column).collect(),
        false => Vec::new(),
    }
}

/// Merges histograms with the same bounds; `None` without a sample.
fn merged<'h>(mut histograms: impl Iterator<Item = &'h Histogram<u64>>) -> Option<Cow<'h, Histogram<u64>>> {
    let mut all = Cow::Borrowed(histograms.next()?);
    for histogram in histograms {
        all.to_mut().add(histogram).expect("all have the same bounds");
    }
    Some(all).filter(|all| !all.is_empty())
}

/// Returns a rate in bit/s; `None` over no time.
fn per_second(bytes: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds)
}

/// Returns bytes over a time in bit/s; `None` if the time is 0 or a bound is missing.
fn over_time(bytes: u64, first: Option<Instant>, last: Option<Instant>) -> Option<f64> {
    per_second(bytes, last?.saturating_since(first?).as_secs_f64())
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the number of flows that neither completed nor failed.
fn unfinished<'f>(flows: impl Iterator<Item = &'f FlowOutcome>) -> f64 {
    let incomplete = |flow: &&FlowOutcome| !flow.finished && flow.completion().is_none();
    flows
        .filter(incomplete)
        .filter(|flow| flow.failure.is_none())
        .count() as f64
}

/// Returns the number of failed flows.
fn failed<'f>(flows: impl Iterator<Item = &'f FlowOutcome>) -> f64 {
    flows.filter(|flow| flow.failure.is_some()).count() as f64
}
