//! Names, units and descriptions of the metrics of a trial.

use transport::metrics::Description;

/// Declares descriptions: the name, the unit, the better direction and the help.
macro_rules! descriptions {
    ($($name:literal, $unit:literal, $better:ident: $help:literal;)+) => {
        &[$(Description { name: $name, unit: $unit, better: stringify!($better), help: $help },)+]
    };
}

/// The metrics of a trial in addition to those of a single transfer, in the order of reports.
pub(super) const OF_A_TRIAL: &[Description] = descriptions! {
    "flow_goodput_bps", "bit/s", higher: "mean goodput per measured flow";
    "throughput_bps", "bit/s", higher: "throughput of the bottleneck link, including headers and retransmissions (mean over several bottlenecks)";
    "utilisation", "", higher: "share of the measured time in which the bottleneck transmits, or throughput over the capacity of its trace (mean over several bottlenecks)";
    "rtt_mean_s", "s", lower: "mean round-trip time";
    "rtt_min_s", "s", lower: "minimum round-trip time";
    "queueing_delay_mean_s", "s", lower: "mean queueing delay at the bottleneck";
    "queueing_delay_p50_s", "s", lower: "median queueing delay at the bottleneck";
    "queueing_delay_p99_s", "s", lower: "99th percentile of the queueing delay at the bottleneck";
    "queue_mean_packets", "", lower: "mean queue length at the bottleneck, in packets";
    "queue_max_packets", "", lower: "maximum queue length at the bottleneck since the start of the trial, in packets";
    "drops", "", lower: "packets dropped by the queues of the bottlenecks";
    "losses", "", lower: "packets lost by the loss models of the bottlenecks";
    "marks", "", lower: "packets marked by the queues of all links (ECN)";
    "rwnd_limited_s", "s", lower: "time in which the receive window, not the congestion window, kept a measured TCP flow from sending (tcpi_rwnd_limited in netns), mean over the flows";
    "sndbuf_limited_s", "s", lower: "time in which the send buffer, not the congestion window, kept a measured TCP flow from sending (tcpi_sndbuf_limited in netns), mean over the flows";
    "jain", "", higher: "Jain's fairness index of the goodput of all flows that respond to congestion";
    "max_min_distance", "", lower: "distance of their goodput from the max-min fair shares, over the sum of the shares";
    "convergence_s", "s", lower: "time from the start of the last flow until Jain's index is at least 0.9 in 5 consecutive samples";
    "share", "", higher: "goodput of the measured flows over the total goodput including traffic";
    "traffic_goodput_bps", "bit/s", higher: "total goodput of the traffic";
    "fct_mean_s", "s", lower: "mean flow completion time: from opening to the arrival of the last byte; for requests, to the complete response";
    "fct_min_s", "s", lower: "minimum flow completion time";
    "fct_p50_s", "s", lower: "median flow completion time";
    "fct_p95_s", "s", lower: "95th percentile of the flow completion time";
    "fct_p99_s", "s", lower: "99th percentile of the flow completion time";
    "flow_throughput_bps", "bit/s", higher: "mean over flows of size over flow completion time";
    "flows_completed", "", higher: "completed measured flows (or requests)";
    "flows_unfinished", "", lower: "measured flows incomplete at the end of the trial";
    "flows_failed", "", lower: "failed measured flows";
    "requests_unanswered", "", lower: "requests in datagrams without a response within 2 s";
    "packets_per_request", "", lower: "packets sent by both ends, including those without payload, per answered request";
    "wire_min_s", "s", lower: "minimum time of a request on the wire: from its first packet to the last one of the response, by kernel timestamps; none in sim";
    "wire_p50_s", "s", lower: "median time of a request on the wire; none in sim";
    "stack_p50_s", "s", lower: "median time of a request in the stack of the client: response time minus time on the wire; none in sim";
    "paths_mean", "", lower: "mean number of paths that carried data of a measured flow";
    "emulator_late_p99_s", "s", lower: "99th percentile of the emulator's lateness in forwarding packets, since the start of the trial; none in sim";
    "emulator_late_max_s", "s", lower: "maximum of the emulator's lateness; none in sim";
    "host_drops", "", lower: "packets dropped by the kernels of the hosts since the start of the trial (full socket buffers and device queues), not by links; none in sim";
};
