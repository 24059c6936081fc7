//! Counters of a TCP relay.

use foundation::Duration;
use hdrhistogram::Histogram;
use network::LinkCounters;

use crate::target::Target;

/// Quantiles of the delays of one direction, from the sending of a packet to its arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// Median.
    pub p50: Duration,
    /// 90th percentile.
    pub p90: Duration,
    /// 99th percentile.
    pub p99: Duration,
    /// Maximum.
    pub max: Duration,
}

impl Delays {
    pub(crate) fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| Duration::from_nanos(histogram.value_at_quantile(quantile));
        Self {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: Duration::from_nanos(histogram.max()),
        }
    }
}

/// A target that could not be reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Failure {
    /// The target.
    pub target: Target,
    /// The system's reason.
    pub reason: String,
}

/// Counters of a relay.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The link from the clients to the targets.
    pub forward: LinkCounters,
    /// The link back.
    pub reverse: LinkCounters,
    /// Delays of packets on the way forward.
    pub forward_delays: Delays,
    /// Delays of packets on the way back.
    pub reverse_delays: Delays,
    /// Connections that clients opened.
    pub accepted: u64,
    /// Connections now open, at either end.
    pub open: u64,
    /// Connections whose two streams ended in order, at the client's end.
    pub completed: u64,
    /// Connections that were reset or timed out, at the client's end.
    pub reset: u64,
    /// Connections whose target could not be reached.
    pub failed: u64,
    /// Bytes that clients sent.
    pub sent: u64,
    /// Bytes that clients received.
    pub received: u64,
    /// Retransmitted segments of both ends.
    pub retransmissions: u64,
    /// Clients of UDP so far.
    pub udp_clients: u64,
    /// Datagrams of UDP that were dropped because they were larger than the path's MTU or 65,507 bytes, of too many clients,
    /// damaged, or refused by the system.
    pub udp_dropped: u64,
    /// Median lateness of departures.
    pub late_p50: Duration,
    /// 99th percentile of the lateness of departures.
    pub late_p99: Duration,
}
