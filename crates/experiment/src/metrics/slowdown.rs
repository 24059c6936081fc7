//! Slowdowns: flow completion times over the ideal ones.

use super::TrialOutcome;
use crate::censored::{Censored, Time};
use crate::outcome::FlowOutcome;

impl TrialOutcome<'_> {
    /// Returns the slowdowns of flows, of which some may be unknown; empty if a flow has no ideal time.
    pub(super) fn slowdowns(&self, flows: &[&FlowOutcome]) -> Censored {
        let times = self.completion_times(flows);
        let slowdowns = flows.iter().zip(times).map(|(flow, time)| {
            let ideal = flow.ideal?;
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
