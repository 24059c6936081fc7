//! Slowdowns: flow completion times over the ideal ones.

use super::TrialOutcome;
use crate::censored::{Censored, Time};
use crate::ideal;
use crate::outcome::FlowOutcome;
use crate::workload::WorkloadKind;

impl TrialOutcome<'_> {
    /// Returns the slowdown of a flow; `None` if it has no size, is incomplete, or takes no time.
    #[must_use]
    pub fn slowdown(&self, flow: &FlowOutcome) -> Option<f64> {
        Some(flow.completion()? / self.ideal(flow)?)
    }

    fn ideal(&self, flow: &FlowOutcome) -> Option<f64> {
        let group = &self.groups[flow.group as usize];
        if !matches!(group.workload.kind, WorkloadKind::File | WorkloadKind::Arrivals) {
            return None;
        }
        ideal::completion(group, &group.pairs[flow.pair as usize], flow.size?, self.topology)
    }

    /// Returns the slowdowns of flows, of which some may be unknown; empty if a flow has no ideal time.
    pub(super) fn slowdowns(&self, flows: &[&FlowOutcome]) -> Censored {
        let times = self.completion_times(flows);
        let slowdowns = flows.iter().zip(times).map(|(flow, time)| {
            let ideal = self.ideal(flow)?;
            Some(match time {
                Time::Measured(seconds) => Time::Measured(seconds / ideal),
                Time::Above(seconds) => Time::Above(seconds / ideal),
                Time::Never => Time::Never,
            })
        });
        let slowdowns: Option<Vec<Time>> = slowdowns.collect();
        Censored::of(&slowdowns.unwrap_or_default())
    }

    pub(super) fn set_slowdown(&self, set: &mut impl FnMut(&str, Option<f64>)) {
        let own: Vec<&FlowOutcome> = self.own().collect();
        let slowdowns = self.slowdowns(&own);
        set("slowdown_mean", slowdowns.mean());
        set("slowdown_p50", slowdowns.quantile(0.5));
        set("slowdown_p95", slowdowns.quantile(0.95));
        set("slowdown_p99", slowdowns.quantile(0.99));
    }
}
