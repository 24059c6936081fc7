//! The record of a trial.

use serde::Serialize;
use transport::Statistics;

use crate::flow_table::{self, FlowRecord};
use crate::metrics::{Metrics, TrialOutcome, of_transfer};
use crate::outcome::FlowOutcome;

/// The record of a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialRecord {
    /// Metrics; `None` if the trial failed.
    pub metrics: Option<Metrics>,
    /// Reason of a failure, in one line.
    pub error: Option<String>,
    /// All flows, in order of start. There may be very many, so they are serialized as columns.
    #[serde(
        serialize_with = "flow_table::serialize",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub flows: Vec<FlowRecord>,
}

impl TrialRecord {
    /// Returns the record of a trial. `stop` is the reason of an early stop.
    #[must_use]
    pub fn of(measured: &TrialOutcome<'_>, stop: Option<String>) -> Self {
        let error = failure(measured).or(stop);
        let flows = measured.flows.iter().map(|flow| flow_record(measured, flow));
        let mut flows: Vec<FlowRecord> = flows.collect();
        if let Some(first) = flows.iter_mut().find(|flow| flow.traffic.is_none()) {
            first.round_ns = measured.rounds().iter().map(|round| round.as_nanos()).collect();
        }
        Self {
            metrics: error.is_none().then(|| measured.metrics()),
            flows,
            error,
        }
    }

    /// Returns the record of one transfer outside the simulator, from the sender's counters or the reason of its failure.
    #[must_use]
    pub fn of_transfer(sent: Result<&Statistics, &String>) -> Self {
        Self {
            metrics: sent.ok().and_then(of_transfer),
            error: sent.err().cloned(),
            flows: Vec::new(),
        }
    }
}

/// Returns the reason of a failure. A failed flow fails the trial, unless the workload is timed: then the flow has only sent
/// less, and the trial fails only if all flows failed without delivering anything.
fn failure(measured: &TrialOutcome<'_>) -> Option<String> {
    let group = &measured.groups[0];
    let own: Vec<&FlowOutcome> = measured.flows.iter().filter(|flow| flow.group == 0).collect();
    let has_nothing = |flow: &&FlowOutcome| flow.failure.is_some() && flow.delivered == [0, 0];
    if group.workload.kind.is_timed() && !own.iter().all(has_nothing) {
        return None;
    }
    let failed = own.iter().find(|flow| flow.failure.is_some())?;
    let reason = failed.failure.as_deref()?;
    if own.len() == 1 {
        return Some(reason.to_owned());
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
        slowdown: flow.slowdown(),
        goodput_bps: measured.goodput(flow),
        paths: flow.ways.count_ones(),
        path_bytes: flow.carried.by_way(pair.all_ways),
        packets_sent: flow.sent.packets,
        retransmissions: flow.sent.retransmissions,
        timeouts: group.protocol.counts_timeouts().then_some(flow.sent.timeouts),
        round_ns: Vec::new(),
        error: flow.failure.as_deref().map(str::to_owned),
    }
}
