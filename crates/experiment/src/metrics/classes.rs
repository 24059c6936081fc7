//! Metrics per size class: `fct_mean_s@G0`, `fct_mean_s@G1`, …

use super::{Metrics, TrialOutcome, failed, unfinished};
use crate::censored::Censored;
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
            for (name, value) in self.of_class(flows) {
                metrics.insert(
                    format!("{name}@G{number}"),
                    value.filter(|value| value.is_finite()),
                );
            }
        }
    }

    fn of_class(&self, flows: &[&FlowOutcome]) -> [(&'static str, Option<f64>); 14] {
        let all = flows.iter().copied();
        let slowdowns = self.slowdowns(flows);
        let times = Censored::of(&self.completion_times(flows));
        let sent = flows
            .iter()
            .fold(SendCounters::default(), |sum, flow| sum.and(flow.sent));
        [
            ("fct_mean_s", times.mean()),
            ("fct_p50_s", times.quantile(0.5)),
            ("fct_p95_s", times.quantile(0.95)),
            ("fct_p99_s", times.quantile(0.99)),
            ("slowdown_mean", slowdowns.mean()),
            ("slowdown_p50", slowdowns.quantile(0.5)),
            ("slowdown_p95", slowdowns.quantile(0.95)),
            ("slowdown_p99", slowdowns.quantile(0.99)),
            ("flow_throughput_bps", self.mean_throughput(flows)),
            ("flows_completed", Some(times.measured().len() as f64)),
            ("flows_unfinished", Some(unfinished(all.clone()))),
            ("flows_failed", Some(failed(all))),
            ("retransmissions", Some(sent.retransmissions as f64)),
            ("timeouts", self.timeouts(sent)),
        ]
    }
}
