//! The hash of flows, to which fair queues assign their queues.

use foundation::random::finalize;

use crate::packet::RouteId;

/// Returns the hash of a flow of a route. Workloads cannot target the queue of another flow without the perturbation (RFC 8290,
/// section 4.1.1).
pub(super) const fn flow_hash(perturbation: u64, route: RouteId, flow: u64) -> u64 {
    finalize(finalize(perturbation ^ route.0 as u64) ^ flow)
}
