//! Metrics of a transfer, calculated the same way in every world.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::statistics::Statistics;

/// Metrics of a transfer. The completion time is measured at the sender, from the first data frame sent to the ACK of the
/// last byte. Connection setup is a separate metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metrics {
    /// Useful payload over completion time, in bit/s.
    pub goodput_bps: f64,
    /// Time from the first data frame sent to the ACK of the last byte, in seconds.
    pub completion_s: f64,
    /// Time from opening the connection to the first data frame sent, in seconds.
    pub setup_s: f64,
    /// Data frames sent, retransmissions included.
    pub packets_sent: u64,
    /// Retransmitted data frames.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Useful payload bytes over payload bytes sent, 0 to 1.
    pub efficiency: f64,
    /// Median round-trip time of a frame and its ACK, in seconds; null without a sample.
    pub rtt_p50_s: Option<f64>,
    /// 99th percentile of the round-trip time, in seconds; null without a sample.
    pub rtt_p99_s: Option<f64>,
}

/// Description of a metric: name, unit, help, and which direction is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Description {
    /// The key in records.
    pub name: &'static str,
    /// The unit; empty for counts and ratios.
    pub unit: &'static str,
    /// Help in one line.
    pub help: &'static str,
    /// "higher" or "lower".
    pub better: &'static str,
}

impl Description {
    /// Returns a description; `better` is "higher" or "lower".
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

/// Descriptions of all [`Metrics`], in the order of reports.
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
        "time from the first data frame sent to the ACK of the last byte",
    ),
    Description::new(
        "setup_s",
        "s",
        "lower",
        "time from opening the connection to the first data frame sent",
    ),
    Description::new(
        "packets_sent",
        "",
        "lower",
        "data frames sent, retransmissions included",
    ),
    Description::new("retransmissions", "", "lower", "retransmitted data frames"),
    Description::new("timeouts", "", "lower", "expiries of the retransmission timer"),
    Description::new(
        "efficiency",
        "",
        "higher",
        "payload bytes acknowledged over payload bytes sent, in the measured time",
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
        "99th percentile of the round-trip time of a frame and its ACK",
    ),
];

impl Metrics {
    /// Returns the metrics of a finished transfer; `None` before any acknowledgement.
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
