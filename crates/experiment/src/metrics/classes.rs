//! Metrics per size class: `fct_mean_s@G0`, `fct_mean_s@G1`, …

use super::{Metrics, TrialOutcome, mean, quantile};
use crate::outcome::{FlowOutcome, SendCounters};

impl TrialOutcome<'_> {
    /// Adds the metrics of every size class, including empty ones.
    pub(super) fn add_classes(&self, metrics: &mut Metrics) {
        let workload = &self.groups[0].workload;
        let Some(bounds) = &workload.classes else { return };
        let mut classes: Vec<Vec<&FlowOutcome>> = vec![Vec::new(); bounds.len() + 1];
        for flow in self.own() {
            if let Some(class) = flow.size.and_then(|size| workload.class_of(size)) {
                classes[class].push(flow);
            }
        }
        for (number, flows) in classes.iter().enumerate() {
            for (name, value) in of_class(flows) {
                metrics.insert(
                    format!("{name}@G{number}"),
                    value.filter(|value| value.is_finite()),
                );
            }
        }
    }
}

fn of_class(flows: &[&FlowOutcome]) -> [(&'static str, Option<f64>); 8] {
    let mut times: Vec<f64> = flows.iter().filter_map(|flow| flow.completion()).collect();
    times.sort_by(f64::total_cmp);
    let throughputs: Vec<f64> = flows.iter().filter_map(|flow| flow.throughput()).collect();
    let sent = flows
        .iter()
        .fold(SendCounters::default(), |sum, flow| sum.and(flow.sent));
    [
        ("fct_mean_s", mean(&times)),
        ("fct_p50_s", quantile(&times, 0.5)),
        ("fct_p95_s", quantile(&times, 0.95)),
        ("fct_p99_s", quantile(&times, 0.99)),
        ("flow_throughput_bps", mean(&throughputs)),
        ("flows_completed", Some(times.len() as f64)),
        ("retransmissions", Some(sent.retransmissions as f64)),
        ("timeouts", Some(sent.timeouts as f64)),
    ]
}
