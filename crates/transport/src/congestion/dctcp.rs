//! DCTCP (RFC 8257; Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010): Reno that reduces its window by half of the
//! average share of marked bytes, or with the arithmetic of Linux (`net/ipv4/tcp_dctcp.c`).
//!
//! Parameters: see [`DctcpSettings`].

use foundation::{Instant, Problem};

use super::hystart::HyStartKind;
use super::loss_based::{Avoidance, LossBased, LossBasedSettings};
use super::reno::AdditiveIncrease;
use super::rules::{StackRules, packets};
use super::settings::{ConnectionContext, ControllerSettings, MarkUse, check_initial_window};
use super::{Acknowledgement, Controller};

/// Units of alpha in Linux (`DCTCP_MAX_ALPHA`).
const LINUX_UNITS: f64 = 1024.0;

/// DCTCP: reduces the window in proportion to the share of marked bytes (RFC 8257).
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DctcpSettings {
    /// Initial window in packets (default 10, RFC 6928).
    pub initial_window: u64,
    /// Weight g of the last window of data in the average share of marked bytes; above 0, at most 1 (default 0.0625, RFC 8257, section 4.2).
    pub gain: f64,
    /// Initial average share alpha of marked bytes, 0 to 1 (default 1, RFC 8257, section 3.3).
    pub initial_alpha: f64,
    /// Rules: "rfc" or "linux" (default those of the TCP profile, else "rfc").
    pub rules: Option<StackRules>,
    /// Pace the window over the round trip instead of sending on each ACK (default false).
    pub pacing: bool,
}

impl Default for DctcpSettings {
    fn default() -> Self {
        Self {
            initial_window: 10,
            gain: 1.0 / 16.0,
            initial_alpha: 1.0,
            rules: None,
            pacing: false,
        }
    }
}

impl ControllerSettings for DctcpSettings {
    fn validate(&self) -> Vec<Problem> {
        let (gain, alpha) = (self.gain, self.initial_alpha);
        [
            check_initial_window(self.initial_window),
            Problem::range("gain", gain, gain > 0.0 && gain <= 1.0, "above 0, at most 1"),
            Problem::range("initial_alpha", alpha, (0.0..=1.0).contains(&alpha), "0 to 1"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn mark_use(&self) -> MarkUse {
        MarkUse::Count
    }

    fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller> {
        let rules = self.rules.unwrap_or_else(|| context.rules.into());
        let settings = LossBasedSettings {
            initial_window: context.initial_window.unwrap_or(self.initial_window),
            initial_ssthresh: None,
            hystart: HyStartKind::Off,
            pacing: self.pacing,
            rules: rules.into(),
        };
        let dctcp = Dctcp {
            reno: AdditiveIncrease::new(context.segment, rules.into()),
            segment: context.segment,
            rules,
            gain: self.gain,
            alpha: self.initial_alpha,
            window_end: Instant::ZERO,
            acknowledged: 0,
            marked: 0,
        };
        Box::new(LossBased::new(dctcp, settings, context.segment))
    }
}

#[derive(Clone, Debug)]
struct Dctcp {
    reno: AdditiveIncrease,
    segment: u64,
    rules: StackRules,
    gain: f64,
    /// Average share of marked bytes; under Linux's rules a multiple of 1/1024.
    alpha: f64,
    /// Packets sent from then on belong to the next window of data.
    window_end: Instant,
    /// Bytes acknowledged in this window of data, and those that were marked.
    acknowledged: u64,
    marked: u64,
}

impl Dctcp {
    /// Returns alpha after a window of data (RFC 8257, section 3.3, steps 6 and 7).
    fn updated_alpha(&self) -> f64 {
        match self.rules {
            StackRules::Rfc => {
                let share = self.marked as f64 / self.acknowledged.max(1) as f64;
                self.alpha * (1.0 - self.gain) + self.gain * share
            }
            // `dctcp_update_alpha`: counts packets, and rounds down.
            StackRules::Linux => {
                let units = self.alpha * LINUX_UNITS;
                let decay = match (units * self.gain).floor() {
                    0.0 => units,
                    decay => decay,
                };
                let marked = packets(self.marked, self.segment) as f64 * self.gain * LINUX_UNITS;
                let delivered = packets(self.acknowledged, self.segment).max(1) as f64;
                (units - decay + (marked / delivered).floor()).min(LINUX_UNITS) / LINUX_UNITS
            }
        }
    }
}

impl Avoidance for Dctcp {
    fn observe(&mut self, ack: &Acknowledgement) {
        self.acknowledged += ack.bytes;
        self.marked += ack.marked_bytes;
        if ack.newest_sent_at < self.window_end {
            return;
        }
        self.alpha = self.updated_alpha();
        self.window_end = ack.now;
        (self.acknowledged, self.marked) = (0, 0);
    }

    fn increase(&mut self, ack: &Acknowledgement, bytes: u64, window: u64) -> u64 {
        self.reno.increase(ack, bytes, window)
    }

    /// A loss halves the window as in Reno (RFC 8257, section 3.5).
    fn decrease(&mut self, window: u64) -> u64 {
        self.reno.decrease(window)
    }

    /// Returns `window * (1 - alpha / 2)` (RFC 8257, section 3.3, step 9).
    fn decrease_for_mark(&mut self, window: u64) -> u64 {
        self.reno.clear_count();
        match self.rules {
            StackRules::Rfc => (window as f64 * (1.0 - self.alpha / 2.0)) as u64,
            // `dctcp_ssthresh`.
            StackRules::Linux => {
                let packets = window / self.segment;
                let reduction = (packets as f64 * self.alpha / 2.0) as u64;
                (packets - reduction) * self.segment
            }
        }
    }

    /// RFC 8257, section 3.5: a sender reacts to a loss as conventional TCP does.
    fn separates_marks(&self) -> bool {
        true
    }

    fn restart(&mut self) {
        self.reno.restart();
    }

    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("alpha", self.alpha);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::tests::{ack, loss};

    const SEGMENT: u64 = 1000;

    const fn ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn build(settings: &DctcpSettings) -> Box<dyn Controller> {
        settings.build(SEGMENT)
    }

    fn alpha(controller: &dyn Controller) -> f64 {
        let mut found = f64::NAN;
        controller.metrics(&mut |name, value| {
            if name == "alpha" {
                found = value;
            }
        });
        found
    }

    /// Acknowledges a window of data of `packets`, of which the first `marked` are marked, in the round trip before `now`.
    fn acknowledge(controller: &mut dyn Controller, now: u64, packets: u64, marked: u64) {
        for number in 0..packets {
            let is_last = number + 1 == packets;
            controller.on_acknowledged(&Acknowledgement {
                marked_bytes: if number < marked { SEGMENT } else { 0 },
                newest_sent_at: if is_last { ms(now - 10) } else { ms(now - 11) },
                window_limited: false,
                ..ack(ms(now), SEGMENT)
            });
        }
    }

    /// RFC 8257, section 3.3: alpha = alpha * (1 - g) + g * M, with M = 3/10 in one window, then 0.
    #[test]
    fn alpha_averages_the_share_of_marked_bytes_per_window() {
        let mut dctcp = build(&DctcpSettings {
            initial_alpha: 0.5,
            ..DctcpSettings::default()
        });
        // The first ACK ends the window before the connection's first.
        acknowledge(&mut *dctcp, 20, 1, 0);
        assert_eq!(alpha(&*dctcp), 0.46875);
        acknowledge(&mut *dctcp, 30, 10, 3);
        assert!((alpha(&*dctcp) - (0.46875 * 15.0 / 16.0 + 0.3 / 16.0)).abs() < 1e-12);
        acknowledge(&mut *dctcp, 40, 10, 0);
        assert!((alpha(&*dctcp) - 0.429_565).abs() < 1e-6);
    }

    /// `dctcp_update_alpha`: of 1024 units, 1024 >> 4 are subtracted and (3 << 6) / 10 added.
    #[test]
    fn linux_rounds_alpha_down_to_units() {
        let mut dctcp = build(&DctcpSettings {
            rules: Some(StackRules::Linux),
            ..DctcpSettings::default()
        });
        acknowledge(&mut *dctcp, 20, 1, 0);
        assert_eq!(alpha(&*dctcp) * LINUX_UNITS, 960.0);
        acknowledge(&mut *dctcp, 30, 10, 3);
        assert_eq!(alpha(&*dctcp) * LINUX_UNITS, 919.0);
        for window in 4..200 {
            acknowledge(&mut *dctcp, 10 * window, 10, 0);
        }
        assert_eq!(
            alpha(&*dctcp),
            0.0,
            "below 16 units, min_not_zero subtracts all of them"
        );
    }

    /// RFC 8257, section 3.3, step 9: cwnd = cwnd * (1 - alpha / 2), once per window of data.
    #[test]
    fn a_mark_reduces_the_window_by_half_of_alpha() {
        for (rules, window) in [(StackRules::Rfc, 9000), (StackRules::Linux, 9000)] {
            let mut dctcp = build(&DctcpSettings {
                initial_alpha: 0.2,
                rules: Some(rules),
                ..DctcpSettings::default()
            });
            dctcp.on_congestion_experienced(ms(50), ms(50));
            assert_eq!(dctcp.window(), window, "{rules:?}");
            dctcp.on_congestion_experienced(ms(55), ms(45));
            assert_eq!(dctcp.window(), window, "{rules:?}");
        }
    }

    /// RFC 8257, section 3.5: losses count as in conventional TCP, regardless of alpha.
    #[test]
    fn a_loss_halves_the_window() {
        for alpha in [0.0, 0.3, 1.0] {
            let mut dctcp = build(&DctcpSettings {
                initial_alpha: alpha,
                ..DctcpSettings::default()
            });
            dctcp.on_acknowledged(&ack(ms(90), 0));
            dctcp.on_lost(&loss(ms(100), ms(95), 10_000));
            assert_eq!(dctcp.window(), 5000);
            dctcp.on_timeout(ms(300), 5000);
            assert_eq!(dctcp.window(), SEGMENT);
        }
    }

    /// A mark reduces the window by little, so that it does not stand for the losses of the same round trip.
    #[test]
    fn a_loss_after_a_mark_halves_the_window() {
        let mut dctcp = build(&DctcpSettings {
            initial_alpha: 0.2,
            ..DctcpSettings::default()
        });
        dctcp.on_congestion_experienced(ms(90), ms(90));
        assert_eq!(dctcp.window(), 9000);
        dctcp.on_lost(&loss(ms(100), ms(85), 9_000));
        assert_eq!(dctcp.window(), 4500);
        dctcp.on_lost(&loss(ms(101), ms(95), 4_500));
        assert_eq!(dctcp.window(), 4500, "the same episode");
    }
}
