//! What the metrics of a trial are called, and what they mean.

use transport::metrics::Description;

/// Every metric of a trial of whole topologies besides those of a lone transfer, in the order of reports.
pub(super) const OF_A_TRIAL: [Description; 29] = [
    Description::new(
        "flow_goodput_bps",
        "bit/s",
        "higher",
        "mean goodput of a measured flow",
    ),
    Description::new(
        "throughput_bps",
        "bit/s",
        "higher",
        "bits on the bottleneck, headers and retransmissions included",
    ),
    Description::new(
        "utilisation",
        "",
        "higher",
        "throughput over the bottleneck's rate (mean of several)",
    ),
    Description::new("rtt_mean_s", "s", "lower", "mean round-trip time"),
    Description::new("rtt_min_s", "s", "lower", "least round-trip time"),
    Description::new(
        "queueing_delay_mean_s",
        "s",
        "lower",
        "mean wait in the bottleneck's queue",
    ),
    Description::new(
        "queueing_delay_p50_s",
        "s",
        "lower",
        "median wait in the bottleneck's queue",
    ),
    Description::new(
        "queueing_delay_p99_s",
        "s",
        "lower",
        "99th percentile of that wait",
    ),
    Description::new(
        "queue_mean_packets",
        "",
        "lower",
        "packets in the bottleneck's queue, mean over time",
    ),
    Description::new(
        "queue_max_packets",
        "",
        "lower",
        "most packets in the bottleneck's queue, from the trial's beginning",
    ),
    Description::new(
        "drops",
        "",
        "lower",
        "packets that the bottleneck's queue dropped",
    ),
    Description::new(
        "losses",
        "",
        "lower",
        "packets that the bottleneck's loss model dropped",
    ),
    Description::new("marks", "", "lower", "packets that the bottleneck marked (ECN)"),
    Description::new(
        "jain",
        "",
        "higher",
        "Jain's fairness index of the goodput of all flows that answer congestion",
    ),
    Description::new(
        "max_min_distance",
        "",
        "lower",
        "distance of these flows' goodput from the max-min fair shares, over their sum",
    ),
    Description::new(
        "convergence_s",
        "s",
        "lower",
        "from the last flow's start until Jain's index of 5 samples in a row is 0.9 or more",
    ),
    Description::new(
        "share",
        "",
        "higher",
        "goodput of the measured flows over that of measured flows and traffic",
    ),
    Description::new(
        "traffic_goodput_bps",
        "bit/s",
        "higher",
        "goodput of all traffic beside the measured flows",
    ),
    Description::new(
        "fct_mean_s",
        "s",
        "lower",
        "mean flow completion time: wish to connect to the last byte's arrival; of a request: to its answer",
    ),
    Description::new("fct_p50_s", "s", "lower", "median flow completion time"),
    Description::new(
        "fct_p95_s",
        "s",
        "lower",
        "95th percentile of the flow completion time",
    ),
    Description::new(
        "fct_p99_s",
        "s",
        "lower",
        "99th percentile of the flow completion time",
    ),
    Description::new(
        "flow_throughput_bps",
        "bit/s",
        "higher",
        "mean over flows of size over completion time",
    ),
    Description::new(
        "flows_completed",
        "",
        "higher",
        "measured flows (or requests) that were completed",
    ),
    Description::new(
        "flows_unfinished",
        "",
        "lower",
        "measured flows that were not done when the trial ended",
    ),
    Description::new("flows_failed", "", "lower", "measured flows that failed"),
    Description::new(
        "paths_mean",
        "",
        "lower",
        "paths that carried data of a measured flow, mean over flows",
    ),
    Description::new(
        "emulator_late_p99_s",
        "s",
        "lower",
        "how late the emulator moved packets that were due, 99th percentile of its turns from the trial's beginning; none in simulation",
    ),
    Description::new("emulator_late_max_s", "s", "lower", "the most that it was late"),
];
