//! The figures of one transfer, computed alike in every world.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::statistics::Statistics;

/// What one transfer came to. The clock starts when the first data frame leaves and stops when the
/// ACK of the last byte arrives, both at the sender; set-up is a figure of its own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metrics {
    /// Useful payload over completion time, in bit/s.
    pub goodput_bps: f64,
    /// From the first data frame's departure to the ACK of the last byte, in seconds.
    pub completion_s: f64,
    /// From the wish to connect to the first data frame's departure, in seconds.
    pub setup_s: f64,
    /// Data frames sent, retransmissions included.
    pub packets_sent: u64,
    /// Data frames sent again.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Useful payload bytes over payload bytes sent, 0 to 1.
    pub efficiency: f64,
    /// Median round-trip time of a frame and its ACK, in seconds; null without a sample.
    pub rtt_p50_s: Option<f64>,
    /// 99th percentile of that time, in seconds; null without a sample.
    pub rtt_p99_s: Option<f64>,
}

/// A metric for people: its name, unit, help, and whether more of it is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Description {
    /// The key in records.
    pub name: &'static str,
    /// The unit; empty for counts and ratios.
    pub unit: &'static str,
    /// One line.
    pub help: &'static str,
    /// "higher" or "lower".
    pub better: &'static str,
}

impl Description {
    /// A metric with this name, unit, "higher" or "lower", and help.
    #[must_use]
    pub const fn new(
        name: &'static str,
        unit: &'static str,
        better: &'static str,
        help: &'static str,
    ) -> Self {
        Self {
            name,
            unit,
            help,
            better,
        }
    }
}

/// Every metric of [`Metrics`], in the order in which reports show them.
pub const DESCRIPTIONS: [Description; 9] = [
    Description::new(
        "goodput_bps",
        "bit/s",
        "higher",
        "useful payload over completion time",
    ),
    Description::new(
        "completion_s",
        "s",
        "lower",
        "first data frame's departure to ACK of the last byte",
    ),
    Description::new(
        "setup_s",
        "s",
        "lower",
        "wish to connect to first data frame's departure",
    ),
    Description::new(
        "packets_sent",
        "",
        "lower",
        "data frames sent, retransmissions included",
    ),
    Description::new("retransmissions", "", "lower", "data frames sent again"),
    Description::new("timeouts", "", "lower", "expiries of the retransmission timer"),
    Description::new(
        "efficiency",
        "",
        "higher",
        "payload bytes acknowledged over payload bytes sent, both of the measured time",
    ),
    Description::new(
        "rtt_p50_s",
        "s",
        "lower",
        "median round-trip time of a frame and its ACK",
    ),
    Description::new(
        "rtt_p99_s",
        "s",
        "lower",
        "99th percentile of that round-trip time",
    ),
];

impl Metrics {
    /// The figures of a finished transfer; `None` as long as nothing was acknowledged.
    #[must_use]
    pub fn of(statistics: &Statistics) -> Option<Self> {
        let first = statistics.first_data_at?;
        let completion_s = (statistics.last_acknowledged_at? - first).as_secs_f64();
        let useful = statistics.bytes_acknowledged as f64;
        let quantile = |q| statistics.rtt_quantile(q).map(|rtt| rtt.as_secs_f64());
        Some(Self {
            goodput_bps: useful * 8.0 / completion_s,
            completion_s,
            setup_s: (first - statistics.opened_at?).as_secs_f64(),
            packets_sent: statistics.packets_sent,
            retransmissions: statistics.retransmissions,
            timeouts: statistics.timeouts,
            efficiency: useful / statistics.bytes_sent as f64,
            rtt_p50_s: quantile(0.5),
            rtt_p99_s: quantile(0.99),
        })
        .filter(|m| m.goodput_bps.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_described() {
        let schema = serde_json::to_value(schemars::schema_for!(Metrics)).unwrap();
        let fields = schema["properties"].as_object().unwrap();
        let mut described: Vec<&str> = DESCRIPTIONS.iter().map(|d| d.name).collect();
        described.sort_unstable();
        let mut fields: Vec<&str> = fields.keys().map(String::as_str).collect();
        fields.sort_unstable();
        assert_eq!(described, fields);
    }
}
