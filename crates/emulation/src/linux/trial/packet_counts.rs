//! The packets of flows over the project's TCP, which no device of a host shows: the network counts them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use experiment::plan::{Group, Protocol};
use experiment::workload::WorkloadKind;

use super::flow::Flow;
use super::user_tcp;
use crate::linux::tap::SegmentCounts;

/// How long packets that a flow sends last are waited for: an acknowledgement leaves its stack at once.
pub(super) const GRACE: StdDuration = StdDuration::from_millis(5);

/// Whether packets of the measured flows are to be counted so.
pub(super) fn is_configured(groups: &[Group]) -> bool {
    let measured = &groups[0];
    let is_own = matches!(&measured.protocol, Protocol::Tcp(config) if user_tcp::is_configured(config));
    is_own && measured.workload.kind == WorkloadKind::RequestResponse
}

/// Tells each flow how many packets its ends have sent; each listens at a port of its own.
pub(super) fn assign(counts: &SegmentCounts, flows: &[Arc<Flow>]) {
    let of = |to| match to {
        SocketAddr::V4(to) => counts.get(&to).copied(),
        SocketAddr::V6(_) => None,
    };
    for flow in flows.iter().filter(|flow| flow.id.group == 0) {
        flow.set_packets(flow.to().and_then(of));
    }
}
