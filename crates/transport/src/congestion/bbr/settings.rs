//! Settings of BBR as specified by the draft.

use foundation::{Duration, Probability, Problem};

use super::Bbr;
use super::marks::MarkResponse;
use super::tolerant::Additions;
use crate::congestion::Controller;
use crate::congestion::settings::{
    ConnectionContext, ControllerSettings, check_initial_window, check_probe_rtt,
};

/// BBR: sends at the measured bandwidth and keeps the queue short; every loss counts as congestion, as in the draft.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BbrSettings {
    /// Initial window in packets (default 10, RFC 6928).
    pub initial_window: u64,
    /// Loss per round trip above which the network counts as congested, 0.1% to 50% (default "2%").
    pub loss_threshold: Probability,
    /// Reduction factor of the short-term bounds after a round trip with too much loss, 0.1 to 0.99 (default 0.7).
    pub beta: f64,
    /// Interval of ProbeRTT, at least "100ms" (default "5s").
    pub probe_rtt_interval: Duration,
    /// Duration of ProbeRTT, at most "1s" (default "200ms").
    pub probe_rtt_duration: Duration,
    /// Response to congestion marks: "loss" (as a round trip with too much loss), "share" (BBRv3 of google/bbr with low-latency marking, at round-trip times up to 5 ms) or "none" (BBRv3 of google/bbr otherwise) (default "loss").
    #[serde(skip_serializing_if = "MarkResponse::is_default")]
    pub marks: MarkResponse,
    /// Send whole bursts of 1 ms, as hosts with segmentation offload do (`tcp_tso_autosize` of Linux); otherwise half a burst at a time (default false).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub whole_bursts: bool,
}

impl Default for BbrSettings {
    fn default() -> Self {
        Self {
            initial_window: 10,
            loss_threshold: Probability::new(0.02).unwrap_or_default(),
            beta: 0.7,
            probe_rtt_interval: Duration::from_secs(5),
            probe_rtt_duration: Duration::from_millis(200),
            marks: MarkResponse::Loss,
            whole_bursts: false,
        }
    }
}

impl ControllerSettings for BbrSettings {
    fn validate(&self) -> Vec<Problem> {
        let (loss, beta) = (self.loss_threshold, self.beta);
        let problems = [
            check_initial_window(self.initial_window),
            Problem::range(
                "loss_threshold",
                loss,
                (0.001..=0.5).contains(&loss.value()),
                "0.1% to 50%",
            ),
            Problem::range("beta", beta, (0.1..=0.99).contains(&beta), "0.1 to 0.99"),
        ];
        let probe_rtt = check_probe_rtt(self.probe_rtt_interval, self.probe_rtt_duration);
        problems.into_iter().chain(probe_rtt).flatten().collect()
    }

    fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller> {
        Box::new(Bbr::new(
            &self.with_context(context),
            Additions::default(),
            context.segment,
        ))
    }
}

impl BbrSettings {
    /// Returns the settings with the initial window of the connection, if it sets one.
    pub(super) fn with_context(&self, context: &ConnectionContext) -> Self {
        Self {
            initial_window: context.initial_window.unwrap_or(self.initial_window),
            ..self.clone()
        }
    }
}
