//! Packet counts of flows over the project's TCP. They pass no device of a host, so the network counts them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use experiment::plan::{Group, Protocol};
use experiment::workload::WorkloadKind;

use super::flow::Flow;
use super::user_tcp;
use crate::tap::SegmentCounts;

/// How long to wait for the last packets: acknowledgements leave the stack at once.
pub(super) const GRACE: StdDuration = StdDuration::from_millis(5);

/// Whether the measured flows need these counts.
pub(super) fn is_configured(groups: &[Group]) -> bool {
    let measured = &groups[0];
    let is_own = matches!(&measured.protocol, Protocol::Tcp(config) if user_tcp::is_configured(config));
    is_own && measured.workload.kind == WorkloadKind::RequestResponse
}

/// Stores each flow's number of packets; each flow has its own server port.
pub(super) fn assign(counts: &SegmentCounts, flows: &[Arc<Flow>]) {
    let of = |to| match to {
        SocketAddr::V4(to) => counts.get(&to).copied(),
        SocketAddr::V6(_) => None,
    };
    for flow in flows.iter().filter(|flow| flow.id.group == 0) {
        flow.set_packets(flow.to().and_then(of));
    }
}
