//! Periodic samples of machines and queues.

use std::collections::BTreeMap;

use foundation::{Duration, Instant};
use network::topology::Topology;
use serde::Serialize;
use transport::mptcp::SubflowInfo;

use super::details::FlowDetails;
use super::probe::Probe;

/// Limit of flows with a series.
const MAX_FLOWS: usize = 64;

/// The samples of one flow. All lists are as long as `time`; lists without any value are omitted from JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlowSeries {
    /// The flow's number.
    pub flow: u32,
    /// The host that sends the data, and for traffic its name.
    pub name: String,
    /// Seconds since the start of the trial.
    pub time: Vec<f64>,
    /// Congestion window in bytes.
    pub cwnd_bytes: Vec<Option<u64>>,
    /// Slow-start threshold in bytes, once set.
    pub ssthresh_bytes: Vec<Option<u64>>,
    /// Smoothed round-trip time in seconds.
    pub srtt_s: Vec<Option<f64>>,
    /// The latest round-trip sample in seconds.
    #[serde(skip_serializing_if = "is_unknown")]
    pub rtt_s: Vec<Option<f64>>,
    /// Mean deviation of the round-trip time in seconds.
    #[serde(skip_serializing_if = "is_unknown")]
    pub rttvar_s: Vec<Option<f64>>,
    /// Payload bytes in flight.
    pub in_flight_bytes: Vec<u64>,
    /// Pacing rate in bit/s, if paced.
    #[serde(skip_serializing_if = "is_unknown")]
    pub pacing_bps: Vec<Option<f64>>,
    /// Latest sample of the delivery rate of payload, in bit/s.
    #[serde(skip_serializing_if = "is_unknown")]
    pub delivery_bps: Vec<Option<f64>>,
    /// Goodput since the previous sample, in bit/s.
    pub goodput_bps: Vec<f64>,
    /// Retransmitted data packets so far.
    #[serde(skip_serializing_if = "is_unknown")]
    pub retransmissions: Vec<Option<u64>>,
    /// Seconds so far in which the receive window limited the sender.
    #[serde(skip_serializing_if = "is_unknown")]
    pub rwnd_limited_s: Vec<Option<f64>>,
    /// Seconds so far in which the send buffer limited the sender.
    #[serde(skip_serializing_if = "is_unknown")]
    pub sndbuf_limited_s: Vec<Option<f64>>,
    /// Loss recovery state of the sender.
    pub state: Vec<&'static str>,
    /// State of the controller by name, such as "w_max_bytes"; `None` while a controller reports no value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub controller: BTreeMap<&'static str, Vec<Option<f64>>>,
    #[serde(skip)]
    delivered: u64,
    /// Time of the last sample, also if it was taken away.
    #[serde(skip)]
    last: Option<f64>,
}

/// Returns whether the world reports no value.
fn is_unknown<T>(values: &[Option<T>]) -> bool {
    values.iter().all(Option::is_none)
}

impl FlowSeries {
    /// Adds the controller's values of the newest sample.
    fn push_controller(&mut self, values: &[(&'static str, f64)]) {
        let before = self.time.len() - 1;
        for &(name, value) in values {
            let column = self.controller.entry(name).or_default();
            // A name that was not reported before, or is reported twice: the last value counts.
            column.resize(before, None);
            column.push(value.is_finite().then_some(value));
        }
        for column in self.controller.values_mut() {
            column.resize(before + 1, None);
        }
    }

    /// Returns the flow without its samples, to add later ones.
    fn continuation(&self) -> Self {
        Self {
            flow: self.flow,
            name: self.name.clone(),
            delivered: self.delivered,
            last: self.last,
            ..Self::default()
        }
    }
}

/// The samples of one queue. All lists are as long as `time`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QueueSeries {
    /// The link of the queue.
    pub link: String,
    /// Seconds since the start of the trial.
    pub time: Vec<f64>,
    /// Packets, the one in transmission included.
    pub packets: Vec<u64>,
    /// Bytes of these packets.
    pub bytes: Vec<u64>,
}

impl QueueSeries {
    /// Returns the queue without its samples, to add later ones.
    fn continuation(&self) -> Self {
        Self {
            link: self.link.clone(),
            ..Self::default()
        }
    }
}

/// Periodic samples of machines and queues.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Series {
    /// Seconds from sample to sample.
    pub interval_s: f64,
    /// The flows, in the order of their start.
    pub flows: Vec<FlowSeries>,
    /// The queues of the bottlenecks and of the other observed links.
    pub queues: Vec<QueueSeries>,
    /// Details of the flows, if sampled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<FlowDetails>,
}

/// Collects samples.
#[derive(Clone, Debug)]
pub struct Sampling {
    interval: Duration,
    series: Series,
}

impl Sampling {
    /// Returns an empty collection for a sample every `interval` of the flows and the observed links of `topology`.
    #[must_use]
    pub fn new(interval: Duration, topology: &Topology) -> Self {
        let queues = topology.observed().map(|link| QueueSeries {
            link: topology.links()[link.0 as usize].name.clone(),
            ..QueueSeries::default()
        });
        Self {
            interval,
            series: Series {
                interval_s: interval.as_secs_f64(),
                flows: Vec::new(),
                queues: queues.collect(),
                details: Vec::new(),
            },
        }
    }

    /// Returns the sampling interval.
    #[must_use]
    pub const fn interval(&self) -> Duration {
        self.interval
    }

    /// Returns the samples.
    #[must_use]
    pub const fn series(&self) -> &Series {
        &self.series
    }

    /// Takes the samples so far; later ones continue them.
    pub fn drain(&mut self) -> Series {
        let rest = Series {
            interval_s: self.series.interval_s,
            flows: self.series.flows.iter().map(FlowSeries::continuation).collect(),
            queues: self.series.queues.iter().map(QueueSeries::continuation).collect(),
            details: Vec::new(),
        };
        std::mem::replace(&mut self.series, rest)
    }

    /// Adds a sample of flow `number`, whose receiver has read `delivered` bytes so far. Calls `name` for the first sample.
    pub fn take_flow(
        &mut self,
        now: Instant,
        number: u32,
        name: impl FnOnce() -> String,
        probe: &Probe,
        delivered: u64,
    ) {
        let flows = &mut self.series.flows;
        let found = flows.iter().position(|known| known.flow == number);
        let place = match found {
            Some(place) => place,
            None if flows.len() >= MAX_FLOWS => return,
            None => {
                flows.push(FlowSeries {
                    flow: number,
                    name: name(),
                    ..FlowSeries::default()
                });
                flows.len() - 1
            }
        };
        let line = &mut flows[place];
        // Samples on wall time are inexact, so goodput uses the actual interval.
        let since = line
            .last
            .map_or(self.interval.as_secs_f64(), |last| now.as_secs_f64() - last);
        line.time.push(now.as_secs_f64());
        line.cwnd_bytes.push(probe.window);
        line.ssthresh_bytes.push(probe.threshold);
        line.srtt_s.push(probe.smoothed_rtt);
        line.rtt_s.push(probe.rtt);
        line.rttvar_s.push(probe.rtt_variation);
        line.in_flight_bytes.push(probe.in_flight);
        line.pacing_bps.push(probe.pacing_rate);
        line.delivery_bps.push(probe.delivery_rate);
        line.goodput_bps
            .push((delivered - line.delivered) as f64 * 8.0 / since);
        line.retransmissions.push(probe.retransmissions);
        line.rwnd_limited_s.push(probe.receiver_limited);
        line.sndbuf_limited_s.push(probe.buffer_limited);
        line.state.push(probe.state);
        line.push_controller(&probe.controller);
        line.delivered = delivered;
        line.last = Some(now.as_secs_f64());
    }

    /// Adds a sample of the parts of flow `number`, whose receiver holds `early` bytes that wait for earlier ones, and whose data
    /// waited `queueing` seconds on average.
    pub fn take_details(
        &mut self,
        now: Instant,
        number: u32,
        early: u64,
        queueing: Option<f64>,
        subflows: &[SubflowInfo],
    ) {
        let details = &mut self.series.details;
        let found = details.iter().position(|known| known.flow == number);
        let place = match found {
            Some(place) => place,
            None if details.len() >= MAX_FLOWS => return,
            None => {
                details.push(FlowDetails {
                    flow: number,
                    ..FlowDetails::default()
                });
                details.len() - 1
            }
        };
        details[place].add(now.as_secs_f64(), early, queueing, subflows);
    }

    /// Adds a sample of all observed links' queues, each as packets and bytes, in the topology's order.
    pub fn take_queues(&mut self, now: Instant, queues: impl IntoIterator<Item = (u64, u64)>) {
        for (line, (packets, bytes)) in self.series.queues.iter_mut().zip(queues) {
            line.time.push(now.as_secs_f64());
            line.packets.push(packets);
            line.bytes.push(bytes);
        }
    }
}
