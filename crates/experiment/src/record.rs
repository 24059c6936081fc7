//! What a trial gave, as it is kept.

use schemars::JsonSchema;
use serde::Serialize;
use transport::Statistics;

use crate::columns;
use crate::metrics::{Metrics, TrialOutcome, of_transfer};
use crate::outcome::FlowOutcome;

/// One measured flow, or one of the traffic's: a row of the table of flows.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
pub struct FlowRecord {
    /// Its number, in the order in which flows begin.
    pub flow: u32,
    /// The name of the traffic; null for a measured flow.
    pub traffic: Option<String>,
    /// The host that opened it.
    pub from: String,
    /// The host that it goes to.
    pub to: String,
    /// Bytes that it was to send; null where it was to send all that it could.
    pub size_bytes: Option<u64>,
    /// The class of its size, from 0; null where the workload has no classes, or the flow no size.
    pub class: Option<usize>,
    /// Seconds from the trial's beginning to the wish to connect.
    pub opened_s: f64,
    /// Seconds from the wish to connect to the last byte's arrival; null where it has not arrived.
    pub fct_s: Option<f64>,
    /// Goodput over the measured time, or over the flow's own time, in bit/s.
    pub goodput_bps: f64,
    /// Data packets sent in the measured time, retransmissions included.
    pub packets_sent: u64,
    /// Data packets sent again in the measured time.
    pub retransmissions: u64,
    /// Expiries of its retransmission timer in the measured time.
    pub timeouts: u64,
    /// Paths between its hosts that carried its data.
    pub paths: u32,
    /// Payload bytes that each path between its hosts carried in the measured time, retransmissions included, in the order of the paths' numbers.
    pub path_bytes: Vec<u64>,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

/// What a trial gave.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialRecord {
    /// The figures; none where the transfer failed.
    pub metrics: Option<Metrics>,
    /// Why it failed, in one line.
    pub error: Option<String>,
    /// Every flow that began, in that order. There may be very many: they are written as columns.
    #[serde(serialize_with = "columns::serialize", skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowRecord>,
}

impl TrialRecord {
    /// The record of what was measured. `stop` says why the trial ended before its time, if it did.
    #[must_use]
    pub fn of(measured: &TrialOutcome<'_>, stop: Option<String>) -> Self {
        let error = failure(measured).or(stop);
        let flows = measured.flows.iter().map(|flow| flow_record(measured, flow));
        Self {
            metrics: error.is_none().then(|| measured.metrics()),
            flows: flows.collect(),
            error,
        }
    }

    /// The record of one transfer outside of the simulator: what its sender counted, or why it failed.
    #[must_use]
    pub fn of_transfer(sent: Result<&Statistics, &String>) -> Self {
        Self {
            metrics: sent.ok().and_then(of_transfer),
            error: sent.err().cloned(),
            flows: Vec::new(),
        }
    }
}

/// Why the trial failed. A flow that was to do something and could not is a failure. One that runs for a given time and
/// breaks off has only sent less, unless all of them broke off and nothing was delivered: then nothing was measured.
fn failure(measured: &TrialOutcome<'_>) -> Option<String> {
    let group = &measured.groups[0];
    let own: Vec<&FlowOutcome> = measured.flows.iter().filter(|flow| flow.group == 0).collect();
    let has_nothing = |flow: &&FlowOutcome| flow.failure.is_some() && flow.delivered == [0, 0];
    if group.workload.kind.is_timed() && !own.iter().all(has_nothing) {
        return None;
    }
    let failed = own.iter().find(|flow| flow.failure.is_some())?;
    let reason = failed.failure.clone()?;
    if own.len() == 1 {
        return Some(reason);
    }
    let pair = &group.pairs[failed.pair as usize];
    let hosts = measured.topology.hosts();
    let (from, to) = (&hosts[pair.from.0 as usize], &hosts[pair.to.0 as usize]);
    Some(format!("flow {} from {from} to {to}: {reason}", failed.number))
}

fn flow_record(measured: &TrialOutcome<'_>, flow: &FlowOutcome) -> FlowRecord {
    let group = &measured.groups[flow.group as usize];
    let pair = &group.pairs[flow.pair as usize];
    let hosts = measured.topology.hosts();
    FlowRecord {
        flow: flow.number,
        traffic: group.name.clone(),
        from: hosts[pair.from.0 as usize].clone(),
        to: hosts[pair.to.0 as usize].clone(),
        size_bytes: flow.size,
        class: flow
            .size
            .and_then(|size| measured.groups[0].workload.class_of(size)),
        opened_s: flow.opened_at.as_secs_f64(),
        fct_s: flow.received_at.map(|at| (at - flow.opened_at).as_secs_f64()),
        goodput_bps: measured.goodput(flow),
        paths: flow.ways.count_ones(),
        path_bytes: flow.carried.by_way(pair.all_ways),
        packets_sent: flow.sent.packets,
        retransmissions: flow.sent.retransmissions,
        timeouts: flow.sent.timeouts,
        error: flow.failure.clone(),
    }
}
