//! Machines and queues, read at regular times.

use foundation::{Duration, Instant};
use network::topology::Topology;
use serde::Serialize;

use super::content::Side;
use super::probe::Probe;
use crate::plan::Group;

/// Flows beyond this many are not followed one by one.
const MOST_FOLLOWED: usize = 64;

/// What one flow did over time. All lists are as long as `time`; those that have no value at all are left out of JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlowSeries {
    /// The flow's number.
    pub flow: u32,
    /// The host that sends the data, and for traffic its name.
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
    #[serde(skip_serializing_if = "is_unknown")]
    pub rtt_s: Vec<Option<f64>>,
    /// Mean deviation of the round-trip time in seconds.
    #[serde(skip_serializing_if = "is_unknown")]
    pub rttvar_s: Vec<Option<f64>>,
    /// Payload bytes in flight.
    pub in_flight_bytes: Vec<u64>,
    /// The rate at which packets leave, in bit/s, where they are paced.
    #[serde(skip_serializing_if = "is_unknown")]
    pub pacing_bps: Vec<Option<f64>>,
    /// The latest sample of the rate at which payload is delivered, in bit/s.
    #[serde(skip_serializing_if = "is_unknown")]
    pub delivery_bps: Vec<Option<f64>>,
    /// Payload that the receiver read since the sample before, in bit/s.
    pub goodput_bps: Vec<f64>,
    /// Data packets sent again so far.
    #[serde(skip_serializing_if = "is_unknown")]
    pub retransmissions: Vec<Option<u64>>,
    /// Seconds so far in which the receiver's window held the sender back.
    #[serde(skip_serializing_if = "is_unknown")]
    pub rwnd_limited_s: Vec<Option<f64>>,
    /// Seconds so far in which the room of the sender's buffer held it back.
    #[serde(skip_serializing_if = "is_unknown")]
    pub sndbuf_limited_s: Vec<Option<f64>>,
    /// What the sender is doing about losses.
    pub state: Vec<&'static str>,
    #[serde(skip)]
    delivered: u64,
}

/// Whether a world has told nothing of it.
fn is_unknown<T>(values: &[Option<T>]) -> bool {
    values.iter().all(Option::is_none)
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

/// Gathers samples.
#[derive(Clone, Debug)]
pub struct Sampling {
    interval: Duration,
    series: Series,
}

impl Sampling {
    /// Nothing yet; a sample every `interval`, of the flows and the bottlenecks of `topology`.
    #[must_use]
    pub fn new(interval: Duration, topology: &Topology) -> Self {
        let queues = topology.bottlenecks().iter().map(|&link| QueueSeries {
            link: topology.links()[link.0 as usize].name.clone(),
            ..QueueSeries::default()
        });
        Self {
            interval,
            series: Series {
                interval_s: interval.as_secs_f64(),
                flows: Vec::new(),
                queues: queues.collect(),
            },
        }
    }

    /// The time from sample to sample.
    #[must_use]
    pub const fn interval(&self) -> Duration {
        self.interval
    }

    /// What was gathered.
    #[must_use]
    pub const fn series(&self) -> &Series {
        &self.series
    }

    /// Adds a sample of flow `number`, whose receiver has read `delivered` bytes so far. `name` is asked at the first.
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
            None if flows.len() >= MOST_FOLLOWED => return,
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
        // Where samples are not at their exact times, goodput is over the time that was.
        let since = line
            .time
            .last()
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
        line.delivered = delivered;
    }

    /// Adds a sample of all bottlenecks' queues, each as packets and bytes, in the topology's order.
    pub fn take_queues(&mut self, now: Instant, queues: impl IntoIterator<Item = (u64, u64)>) {
        for (line, (packets, bytes)) in self.series.queues.iter_mut().zip(queues) {
            line.time.push(now.as_secs_f64());
            line.packets.push(packets);
            line.bytes.push(bytes);
        }
    }
}

/// What a flow of a group is called: after the host that sends the data, and for traffic after its name.
#[must_use]
pub fn flow_name(group: &Group, pair: u32, topology: &Topology) -> String {
    let pair = &group.pairs[pair as usize];
    let host = match group.data_receiver() {
        Side::Receiver => pair.from,
        Side::Sender => pair.to,
    };
    let host = &topology.hosts()[host.0 as usize];
    match &group.name {
        Some(name) => format!("{name} ({host})"),
        None => host.clone(),
    }
}
