//! Names, units and descriptions of the metrics of a trial.

use transport::metrics::{Bound, Censoring, Description, SHARE, requests};

/// Declares descriptions: the name, the unit, the better direction and the help.
macro_rules! descriptions {
    ($($name:literal, $unit:literal, $better:ident $(, $field:ident($value:expr))*: $help:literal;)+) => {
        &[$(Description {
            name: $name,
            unit: $unit,
            better: stringify!($better),
            help: $help,
            $($field: $value,)*
            ..Description::USUAL
        },)+]
    };
}

/// The range of Jain's index.
const JAIN: (Option<Bound>, Option<f64>) = (
    Some(Bound::OneOver {
        one_over: "flows_sharing",
    }),
    Some(1.0),
);

const TIMES: Option<Censoring> = Some(Censoring {
    beyond: &["requests_unanswered", "flows_unfinished", "flows_failed"],
    measured: Some("flows_completed"),
    recorded: None,
});

const FLOWS: Option<Censoring> = Some(Censoring {
    beyond: &["flows_unfinished", "flows_failed"],
    measured: Some("flows_completed"),
    recorded: None,
});

const FRAMES: Option<Censoring> = Some(Censoring {
    beyond: &["frames_missing"],
    measured: Some("frames_arrived"),
    recorded: None,
});

const CONVERGENCE: Option<Censoring> = Some(Censoring {
    beyond: &["unconverged"],
    measured: None,
    recorded: None,
});

/// The metrics of a trial in addition to those of a single transfer, in the order of reports.
pub(super) const OF_A_TRIAL: &[Description] = descriptions! {
    "flow_goodput_bps", "bit/s", higher: "mean goodput per measured flow: its payload over the measured time, however short the flow is; without a duration, over the trial (a file: over its completion time). For short flows, see fct_mean and slowdown_mean";
    "throughput_bps", "bit/s", higher, of_links(true): "throughput of the bottleneck link, including headers and retransmissions (mean over several bottlenecks)";
    "utilisation", "", higher, range(SHARE), of_links(true): "share of the measured time in which the bottleneck transmits, or throughput over the capacity of its trace (mean over several bottlenecks)";
    "rtt_mean_s", "s", lower, censoring(requests("rtt_min_s")): "mean round-trip time";
    "rtt_min_s", "s", lower: "minimum round-trip time, up to 0.1 % less: the lower end of its bin";
    "one_way_delay_mean_s", "s", lower: "mean one-way delay of the datagrams that arrive; only of measured UDP flows with a rate, none in netns";
    "one_way_delay_p50_s", "s", lower: "median one-way delay of the datagrams that arrive; as one_way_delay_mean_s";
    "one_way_delay_p95_s", "s", lower: "95th percentile of the one-way delay of the datagrams that arrive; as one_way_delay_mean_s";
    "one_way_delay_p99_s", "s", lower: "99th percentile of the one-way delay of the datagrams that arrive; as one_way_delay_mean_s";
    "queueing_delay_mean_s", "s", lower, of_links(true): "mean queueing delay at the bottleneck of the packets that it did not drop";
    "queueing_delay_p50_s", "s", lower, of_links(true): "median queueing delay at the bottleneck, in steps of 0.5 µs, above 0.5 ms of 0.2 %";
    "queueing_delay_p99_s", "s", lower, of_links(true): "99th percentile of the queueing delay at the bottleneck; as queueing_delay_p50_s";
    "queue_mean_packets", "", lower, of_links(true): "mean queue length at the bottleneck, in packets";
    "queue_max_packets", "", lower, of_links(true): "maximum queue length at the bottleneck since the start of the trial, in packets";
    "drops", "", lower, of_links(true): "packets dropped by the queues of the bottlenecks";
    "losses", "", lower, of_links(true): "packets lost by the loss models of the bottlenecks";
    "outage_drops", "", lower, of_links(true): "packets dropped by the bottlenecks because they were down; only with outages (down)";
    "nat_drops", "", lower, of_links(true): "packets dropped by the address translators of the bottlenecks; only with nat";
    "marks", "", lower, of_links(true): "packets marked by the queues of all links (ECN)";
    "rwnd_limited_s", "s", lower: "time in which the receive window, not the congestion window, kept a measured TCP flow from sending (tcpi_rwnd_limited in netns), mean over the flows";
    "sndbuf_limited_s", "s", lower: "time in which the send buffer, not the congestion window, kept a measured TCP flow from sending (tcpi_sndbuf_limited in netns), mean over the flows";
    "jain", "", higher, range(JAIN): "Jain's fairness index of the goodput of all flows that respond to congestion";
    "flows_sharing", "", higher: "flows that respond to congestion, traffic included: the number of flows in Jain's index";
    "max_min_distance", "", lower: "distance of their goodput from the max-min fair shares, over the sum of the shares";
    "convergence_s", "s", lower, censoring(CONVERGENCE): "time from the start of the last flow until Jain's index is at least 0.9 in 5 consecutive samples";
    "unconverged", "", lower: "1 if Jain's index does not reach 0.9 in 5 consecutive samples before the end of the trial, else 0";
    "share", "", higher, range(SHARE): "goodput of the measured flows over the total goodput including traffic";
    "traffic_goodput_bps", "bit/s", higher: "total goodput of the traffic";
    "fct_mean_s", "s", lower, censoring(TIMES): "mean flow completion time: from opening to the arrival of the last byte; for requests, from the request to the complete response, with the connection setup for the first of a connection; for a web page, to its last object; flows that the end of the trial cuts off count by the product-limit estimator (Kaplan and Meier 1958); null if the longest time is that of such a flow, a flow failed or a request was not answered";
    "fct_min_s", "s", lower, censoring(TIMES): "minimum flow completion time";
    "fct_p50_s", "s", lower, censoring(TIMES): "median flow completion time, by the product-limit estimator as the mean; failed flows and unanswered requests count as slower than all others: null if it falls among times that are unknown";
    "fct_p95_s", "s", lower, censoring(TIMES): "95th percentile of the flow completion time; null as fct_p50_s";
    "fct_p99_s", "s", lower, censoring(TIMES): "99th percentile of the flow completion time; null as fct_p50_s";
    "object_mean_s", "s", lower: "mean time of the objects of a web page that arrived, each from the opening of the connection to its last byte; only of web pages";
    "frame_in_time_share", "", higher, range(SHARE): "share of the real-time frames that are complete within deadline of being sent; of those sent in the measured time whose deadline is in it, too";
    "frame_delay_p50_s", "s", lower, censoring(FRAMES): "median time from sending a real-time frame to the arrival of its last byte; frames that have not arrived by the end of the trial count as slower than all others: null if it falls among them";
    "frame_delay_p95_s", "s", lower, censoring(FRAMES): "95th percentile of the time of a real-time frame; null as frame_delay_p50_s";
    "frame_delay_p99_s", "s", lower, censoring(FRAMES): "99th percentile of the time of a real-time frame; null as frame_delay_p50_s";
    "frames_sent", "", higher: "real-time frames sent in the measured time whose deadline is in it, too";
    "frames_arrived", "", higher: "those of them that arrived by the end of the trial, in time or late";
    "frames_missing", "", lower: "those of them that did not";
    "slowdown_mean", "", lower, censoring(FLOWS): "mean slowdown of flows with a size: flow completion time over that of the flow alone on its empty path, without waiting for a window (connection setup, full packets with headers at the rates of the links, propagation); with several paths, alone on the fastest one; weighted and null as fct_mean_s";
    "slowdown_p50", "", lower, censoring(FLOWS): "median slowdown; null as fct_p50_s";
    "slowdown_p95", "", lower, censoring(FLOWS): "95th percentile of the slowdown; null as fct_p50_s";
    "slowdown_p99", "", lower, censoring(FLOWS): "99th percentile of the slowdown; null as fct_p50_s";
    "flow_throughput_bps", "bit/s", higher, censoring(FLOWS): "mean over flows of size over flow completion time; weighted and null as fct_mean_s";
    "flows_completed", "", higher: "completed measured flows (or requests)";
    "flows_unfinished", "", lower: "measured flows incomplete at the end of the trial, which for arrivals is up to twice their duration";
    "flows_failed", "", lower: "failed measured flows";
    "flows_unstarted", "", lower: "measured flows without data sent at the end of the trial";
    "requests_unanswered", "", lower: "requests in datagrams without a response within response_timeout";
    "round_mean_s", "s", lower: "mean time of a round of requests that start together (barrier), from the first request to the last response; of an all-reduce, until all hosts have the result";
    "round_p50_s", "s", lower: "median time of a round of requests (barrier) or of an all-reduce";
    "round_p99_s", "s", lower: "99th percentile of the time of a round of requests (barrier) or of an all-reduce";
    "round_timeout_share", "", lower, range(SHARE): "share of the rounds of requests (barrier) or of all-reduces in which a measured flow had a retransmission timeout; only in sim";
    "packets_per_request", "", lower: "packets sent by both ends, including those without payload, per answered request";
    "wire_min_s", "s", lower: "minimum time of a request on the wire: from its first packet to the last one of the response, by kernel timestamps; none in sim";
    "wire_p50_s", "s", lower, censoring(requests("wire_min_s")): "median time of a request on the wire; unanswered requests count as slower than all others; none in sim";
    "stack_p50_s", "s", lower, range((None, None)): "median time of an answered request in the stack of the client: response time minus time on the wire; none in sim";
    "paths_mean", "", lower: "mean number of paths that carried data of a measured flow";
    "emulator_late_p99_s", "s", lower: "99th percentile of the emulator's lateness in forwarding packets, since the start of the trial; none in sim";
    "emulator_late_max_s", "s", lower: "maximum of the emulator's lateness; none in sim";
    "host_drops", "", lower: "packets dropped by the kernels of the hosts since the start of the trial (full socket buffers and device queues), not by links; none in sim";
};
