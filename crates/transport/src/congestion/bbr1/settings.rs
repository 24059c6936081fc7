//! Settings of BBR version 1.

use foundation::{Duration, Problem};

use super::Bbr1;
use crate::congestion::Controller;
use crate::congestion::rules::Rules;
use crate::congestion::settings::{
    ConnectionContext, ControllerSettings, check_initial_window, check_probe_rtt,
};

/// Variant of BBR version 1.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Bbr1Rules {
    /// The draft of 2017: bytes, paced at the measured bandwidth.
    #[default]
    Draft,
    /// Linux: whole packets, room for aggregated ACKs, paced at 99 % of the bandwidth, by bursts of 1/1024 s, with
    /// the detection of policers. Not included: packets in the network at their departure
    /// (`bbr_packets_in_net_at_edt`), and the restart of the epoch of aggregation after idle times.
    Linux,
}

impl From<Rules> for Bbr1Rules {
    fn from(rules: Rules) -> Self {
        match rules {
            Rules::Linux => Self::Linux,
            Rules::Rfc | Rules::Ns3 => Self::Draft,
        }
    }
}

/// BBR version 1: sends at the measured bandwidth and keeps two bandwidth-delay products in flight; ignores loss.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Bbr1Settings {
    /// Initial window in packets (default 10, RFC 6928).
    pub initial_window: u64,
    /// Interval of ProbeRTT, at least "100ms" (default "10s").
    pub probe_rtt_interval: Duration,
    /// Duration of ProbeRTT, at most "1s" (default "200ms").
    pub probe_rtt_duration: Duration,
    /// Variant: "draft" or "linux" (default "linux" in TCP with profile = "linux", else "draft").
    pub rules: Option<Bbr1Rules>,
    /// Send whole bursts of 1 ms, as hosts with segmentation offload do (`tcp_tso_autosize` of Linux); otherwise half a burst at a time (default false).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub whole_bursts: bool,
}

impl Default for Bbr1Settings {
    fn default() -> Self {
        Self {
            initial_window: 10,
            probe_rtt_interval: Duration::from_secs(10),
            probe_rtt_duration: Duration::from_millis(200),
            rules: None,
            whole_bursts: false,
        }
    }
}

impl ControllerSettings for Bbr1Settings {
    fn validate(&self) -> Vec<Problem> {
        let probe_rtt = check_probe_rtt(self.probe_rtt_interval, self.probe_rtt_duration);
        let window = check_initial_window(self.initial_window);
        window
            .into_iter()
            .chain(probe_rtt.into_iter().flatten())
            .collect()
    }

    fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller> {
        let settings = Self {
            initial_window: context.initial_window.unwrap_or(self.initial_window),
            rules: self.rules.or_else(|| Some(context.rules.into())),
            ..self.clone()
        };
        Box::new(Bbr1::new(&settings, context.segment))
    }
}

#[cfg(test)]
mod tests {
    use foundation::Rate;

    use super::*;

    /// Returns the pacing rate of a new connection.
    fn initial_pacing(rules: Option<Bbr1Rules>, stack: Rules) -> Rate {
        let context = ConnectionContext {
            rules: stack,
            ..ConnectionContext::new(1000)
        };
        let settings = Bbr1Settings {
            rules,
            ..Bbr1Settings::default()
        };
        settings.build_for(&context).outputs().pacing_rate.unwrap()
    }

    #[test]
    fn rules_are_those_of_the_stack_unless_chosen() {
        // 10 packets of 1000 B per ms, times 2.885; Linux: 99 % of that.
        let (draft, linux) = (230_800_000, 228_492_000);
        for (rules, stack, rate) in [
            (None, Rules::Rfc, draft),
            (None, Rules::Ns3, draft),
            (None, Rules::Linux, linux),
            (Some(Bbr1Rules::Draft), Rules::Linux, draft),
            (Some(Bbr1Rules::Linux), Rules::Rfc, linux),
        ] {
            assert_eq!(
                initial_pacing(rules, stack).bits_per_second(),
                rate,
                "{rules:?}, {stack:?}"
            );
        }
    }
}
