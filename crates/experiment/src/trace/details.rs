//! Samples of the parts of a flow: its subflows, its queueing delay, and the data that waits at the receiver.

use serde::Serialize;
use transport::mptcp::SubflowInfo;

/// The samples of one flow. All lists are as long as `time`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlowDetails {
    /// The flow's number.
    pub flow: u32,
    /// Seconds since the start of the trial.
    pub time: Vec<f64>,
    /// Payload bytes at the receiver that wait for earlier ones.
    pub early_bytes: Vec<u64>,
    /// Mean queueing delay on the observed links in seconds, of the data packets since the sample before; `None` without any.
    pub queueing_s: Vec<Option<f64>>,
    /// The subflows of a multipath connection, in the order of their opening.
    pub subflows: Vec<SubflowSeries>,
}

/// The samples of one subflow. All lists are as long as `time`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SubflowSeries {
    /// Its path, from 0.
    pub path: u8,
    /// Seconds since the start of the trial.
    pub time: Vec<f64>,
    /// Congestion window in bytes.
    pub cwnd_bytes: Vec<u64>,
    /// Smoothed round-trip time in seconds.
    pub srtt_s: Vec<f64>,
    /// Payload bytes in flight.
    pub in_flight_bytes: Vec<u64>,
    /// Payload bytes sent so far, retransmissions included.
    pub sent_bytes: Vec<u64>,
}

impl FlowDetails {
    /// Adds a sample.
    pub(super) fn add(&mut self, time: f64, early: u64, queueing: Option<f64>, subflows: &[SubflowInfo]) {
        self.time.push(time);
        self.early_bytes.push(early);
        self.queueing_s.push(queueing);
        for (number, subflow) in subflows.iter().enumerate() {
            if number == self.subflows.len() {
                self.subflows.push(SubflowSeries::default());
            }
            let line = &mut self.subflows[number];
            line.path = subflow.path.0;
            line.time.push(time);
            line.cwnd_bytes.push(subflow.window);
            line.srtt_s.push(subflow.srtt.as_secs_f64());
            line.in_flight_bytes.push(subflow.in_flight);
            line.sent_bytes.push(subflow.bytes_sent);
        }
    }
}
