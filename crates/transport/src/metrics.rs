//! Metrics of a transfer, calculated the same way in every world.

use serde::Serialize;

use crate::statistics::Statistics;

/// Description of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Description {
    /// The key in records.
    pub name: &'static str,
    /// The unit; empty for counts and ratios.
    pub unit: &'static str,
    /// Help in one line.
    pub help: &'static str,
    /// "higher" or "lower".
    pub better: &'static str,
    /// The smallest and the largest possible value; `None` without one.
    pub range: (Option<Bound>, Option<f64>),
    /// How the metric is censored, if it can be.
    pub censoring: Option<Censoring>,
    /// Whether each link has it on request.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub of_links: bool,
}

/// A bound of the range of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Bound {
    /// A constant.
    At(f64),
    /// The reciprocal of another metric of the same trial.
    OneOver {
        /// Name of that metric.
        one_over: &'static str,
    },
}

/// How a metric is censored: it lacks a value, because times without an end exceed all measured ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Censoring {
    /// Metrics that count such times. A missing value is unknown if one of them is above 0, else undefined.
    pub beyond: &'static [&'static str],
    /// The metric that counts the measured times, if there is one.
    pub measured: Option<&'static str>,
    /// A metric that lacks a value if the times are not recorded; then they are undefined. `None`: always recorded.
    pub recorded: Option<&'static str>,
}

impl Description {
    /// The settings of most metrics: not negative, never censored.
    pub const USUAL: Self = Self {
        name: "",
        unit: "",
        help: "",
        better: "",
        range: (Some(Bound::At(0.0)), None),
        censoring: None,
        of_links: false,
    };
}

/// The range of a share.
pub const SHARE: (Option<Bound>, Option<f64>) = (Some(Bound::At(0.0)), Some(1.0));

/// Returns the censoring of a metric of requests in datagrams; `recorded` as in [`Censoring`].
#[must_use]
pub const fn requests(recorded: &'static str) -> Option<Censoring> {
    Some(Censoring {
        beyond: &["requests_unanswered"],
        measured: Some("flows_completed"),
        recorded: Some(recorded),
    })
}

const SETUPS: Option<Censoring> = Some(Censoring {
    beyond: &["flows_unstarted"],
    measured: None,
    recorded: None,
});

/// Declares the metrics of a transfer with their descriptions.
macro_rules! metrics {
    ($($name:ident: $type:ty, $unit:literal, $better:ident $(, $field:ident($value:expr))*: $help:literal;)+) => {
        /// Metrics of a transfer. The completion time is measured at the sender, from the first data frame sent to the ACK of the
        /// last byte. Connection setup is a separate metric.
        #[derive(Clone, Copy, Debug, PartialEq, Serialize)]
        pub struct Metrics {
            $(#[doc = $help] pub $name: $type,)+
        }

        /// Descriptions of all [`Metrics`], in the order of reports.
        pub const DESCRIPTIONS: &[Description] = &[$(Description {
            name: stringify!($name),
            unit: $unit,
            better: stringify!($better),
            help: $help,
            $($field: $value,)*
            ..Description::USUAL
        },)+];
    };
}

metrics! {
    goodput_bps: Option<f64>, "bit/s", higher: "useful payload over completion time; with a duration, distinct payload bytes that arrive in the measured time over this time";
    completion_s: f64, "s", lower: "time from the first data frame sent to the ACK of the last byte";
    setup_s: f64, "s", lower, censoring(SETUPS): "time from opening the connection to the first data frame sent";
    packets_sent: u64, "", lower: "data frames sent, retransmissions included";
    retransmissions: u64, "", lower: "retransmitted data frames";
    timeouts: u64, "", lower: "expiries of the retransmission timer, without those of SYNs and tail loss probes";
    efficiency: f64, "", higher, range(SHARE): "payload bytes acknowledged in the measured time over the sum of these and of the bytes retransmitted in it, 0 to 1; bytes in flight at its start or end do not count";
    rtt_p50_s: Option<f64>, "s", lower, censoring(requests("rtt_min_s")): "median round-trip time of a frame and its ACK";
    rtt_p99_s: Option<f64>, "s", lower, censoring(requests("rtt_min_s")): "99th percentile of the round-trip time of a frame and its ACK";
}

/// Returns the share of acknowledged payload bytes in these and the retransmitted ones: 1 without retransmissions, NaN if both
/// are 0.
///
/// Bytes sent are acknowledged, retransmitted, or in flight. Bytes in flight are neither useful nor wasted yet, so they do not
/// count. A finished transfer has none: the result is payload bytes over payload bytes sent.
#[must_use]
pub fn efficiency(acknowledged: u64, retransmitted: u64) -> f64 {
    acknowledged as f64 / (acknowledged + retransmitted) as f64
}

impl Metrics {
    /// Returns the metrics of a finished transfer; `None` before any acknowledgement.
    #[must_use]
    pub fn of(statistics: &Statistics) -> Option<Self> {
        let first = statistics.first_data_at?;
        let completion_s = (statistics.last_acknowledged_at? - first).as_secs_f64();
        let useful = statistics.bytes_acknowledged as f64;
        let quantile = |q| statistics.rtt_quantile(q).map(|rtt| rtt.as_secs_f64());
        Some(Self {
            goodput_bps: (completion_s > 0.0).then(|| useful * 8.0 / completion_s),
            completion_s,
            setup_s: (first - statistics.opened_at?).as_secs_f64(),
            packets_sent: statistics.packets_sent,
            retransmissions: statistics.retransmissions,
            timeouts: statistics.timeouts,
            efficiency: efficiency(statistics.bytes_acknowledged, statistics.bytes_retransmitted),
            rtt_p50_s: quantile(0.5),
            rtt_p99_s: quantile(0.99),
        })
    }
}

#[cfg(test)]
mod tests {
    use foundation::Instant;

    use super::*;

    #[test]
    fn transfer_in_no_time_has_no_goodput() {
        let found = Metrics::of(&Statistics {
            bytes_acknowledged: 1000,
            opened_at: Some(Instant::ZERO),
            first_data_at: Some(Instant::ZERO),
            last_acknowledged_at: Some(Instant::ZERO),
            ..Statistics::default()
        })
        .unwrap();
        assert_eq!(found.goodput_bps, None);
        assert_eq!(found.completion_s, 0.0);
    }

    #[test]
    fn bytes_in_flight_do_not_reduce_the_efficiency() {
        let statistics = |acknowledged, retransmitted| Statistics {
            bytes_sent: 1000,
            bytes_acknowledged: acknowledged,
            bytes_retransmitted: retransmitted,
            opened_at: Some(Instant::ZERO),
            first_data_at: Some(Instant::ZERO),
            last_acknowledged_at: Some(Instant::from_nanos(1)),
            ..Statistics::default()
        };
        let efficiency = |acknowledged, retransmitted| {
            Metrics::of(&statistics(acknowledged, retransmitted))
                .unwrap()
                .efficiency
        };
        assert_eq!(efficiency(900, 0), 1.0);
        assert_eq!(efficiency(800, 200), 0.8);
        assert_eq!(efficiency(600, 200), 0.75);
    }
}
