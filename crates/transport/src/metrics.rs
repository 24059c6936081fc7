//! Metrics of a transfer, calculated the same way in every world.

use serde::Serialize;

use crate::statistics::Statistics;

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

/// Declares the metrics of a transfer with their descriptions.
macro_rules! metrics {
    ($($name:ident: $type:ty, $unit:literal, $better:ident: $help:literal;)+) => {
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
        },)+];
    };
}

metrics! {
    goodput_bps: f64, "bit/s", higher: "useful payload over completion time; with a duration, distinct payload bytes that arrive in the measured time over this time";
    completion_s: f64, "s", lower: "time from the first data frame sent to the ACK of the last byte";
    setup_s: f64, "s", lower: "time from opening the connection to the first data frame sent";
    packets_sent: u64, "", lower: "data frames sent, retransmissions included";
    retransmissions: u64, "", lower: "retransmitted data frames";
    timeouts: u64, "", lower: "expiries of the retransmission timer";
    efficiency: f64, "", higher: "payload bytes acknowledged in the measured time over the sum of these and of the bytes retransmitted in it, 0 to 1; bytes in flight at its start or end do not count";
    rtt_p50_s: Option<f64>, "s", lower: "median round-trip time of a frame and its ACK";
    rtt_p99_s: Option<f64>, "s", lower: "99th percentile of the round-trip time of a frame and its ACK";
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
            goodput_bps: useful * 8.0 / completion_s,
            completion_s,
            setup_s: (first - statistics.opened_at?).as_secs_f64(),
            packets_sent: statistics.packets_sent,
            retransmissions: statistics.retransmissions,
            timeouts: statistics.timeouts,
            efficiency: efficiency(statistics.bytes_acknowledged, statistics.bytes_retransmitted),
            rtt_p50_s: quantile(0.5),
            rtt_p99_s: quantile(0.99),
        })
        .filter(|m| m.goodput_bps.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use foundation::Instant;

    use super::*;

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
