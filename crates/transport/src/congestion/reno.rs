//! Reno (RFC 5681) with byte counting (RFC 3465) and one reduction per congestion episode (RFC 6582), or with the
//! counting of Linux and ns-3.
//!
//! Parameters: see [`RenoSettings`].

use foundation::{Problem, Size};

use super::hystart::HyStartKind;
use super::loss_based::{Avoidance, LossBased, LossBasedSettings};
use super::rules::{PacketCount, Rules, packets};
use super::settings::{ConnectionContext, ControllerSettings, check_initial_window};
use super::{Acknowledgement, Controller};

/// Reno: additive increase by one packet per round trip, halved at a loss.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RenoSettings {
    /// Initial window in packets (default 10, RFC 6928).
    pub initial_window: u64,
    /// Initial ssthresh, as in ns-3 (default: none).
    pub initial_threshold: Option<Size>,
    /// Exit from slow start before a loss: "off", "hystart++" (RFC 9406) or "classic", as Linux does with CUBIC
    /// (default "off").
    pub hystart: HyStartKind,
    /// Rules: "rfc", "linux" or "ns3" (default those of the TCP profile, else "rfc").
    pub rules: Option<Rules>,
    /// Pace the window over the round trip instead of sending on each ACK (default false).
    pub pacing: bool,
}

impl Default for RenoSettings {
    fn default() -> Self {
        Self {
            initial_window: 10,
            initial_threshold: None,
            hystart: HyStartKind::Off,
            rules: None,
            pacing: false,
        }
    }
}

impl ControllerSettings for RenoSettings {
    fn validate(&self) -> Vec<Problem> {
        check_initial_window(self.initial_window).into_iter().collect()
    }

    fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller> {
        let settings = self.loss_based(context);
        let growth = AdditiveIncrease::new(context.segment, settings.rules);
        Box::new(LossBased::new(growth, settings, context.segment))
    }
}

impl RenoSettings {
    /// Returns the settings of the common part.
    pub(super) fn loss_based(&self, context: &ConnectionContext) -> LossBasedSettings {
        LossBasedSettings {
            initial_window: context.initial_window.unwrap_or(self.initial_window),
            initial_ssthresh: self.initial_threshold.map(Size::bytes),
            hystart: self.hystart,
            pacing: self.pacing,
            rules: self.rules.unwrap_or(context.rules),
        }
    }
}

/// Congestion avoidance of RFC 5681, section 3.1: one segment per round trip, counted in bytes (RFC 3465, section
/// 2.1), packets (Linux) or ACKs (ns-3; RFC 5681, equation 3).
#[derive(Clone, Debug)]
pub(super) struct AdditiveIncrease {
    segment: u64,
    rules: Rules,
    /// Bytes acknowledged since the last growth.
    acknowledged: u64,
    packets: PacketCount,
}

impl AdditiveIncrease {
    pub(super) fn new(segment: u64, rules: Rules) -> Self {
        Self {
            segment,
            rules,
            acknowledged: 0,
            packets: PacketCount::default(),
        }
    }
}

impl AdditiveIncrease {
    /// Forgets what was acknowledged since the last growth (`tcp_init_cwnd_reduction` and `tcp_enter_loss` of Linux's
    /// `net/ipv4/tcp_input.c`).
    pub(super) fn clear_count(&mut self) {
        self.acknowledged = 0;
        self.packets = PacketCount::default();
    }
}

impl Avoidance for AdditiveIncrease {
    fn increase(&mut self, _ack: &Acknowledgement, bytes: u64, window: u64) -> u64 {
        match self.rules {
            Rules::Rfc => {
                self.acknowledged += bytes;
                if self.acknowledged < window {
                    return 0;
                }
                self.acknowledged -= window;
                self.segment
            }
            Rules::Linux => {
                let every = window / self.segment;
                self.packets.grow(packets(bytes, self.segment), every) * self.segment
            }
            Rules::Ns3 => (self.segment * self.segment / window.max(1)).max(1),
        }
    }

    fn decrease(&mut self, window: u64) -> u64 {
        self.clear_count();
        match self.rules {
            Rules::Linux => window / self.segment / 2 * self.segment,
            _ => window / 2,
        }
    }

    fn restart(&mut self) {
        self.clear_count();
    }

    fn metrics(&self, _report: &mut dyn FnMut(&'static str, f64)) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Loss;
    use crate::congestion::tests::{ack, loss};
    use foundation::{Duration, Instant};

    const SEGMENT: u64 = 1000;

    const fn ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn reno() -> Box<dyn Controller> {
        RenoSettings::default().build(SEGMENT)
    }

    #[test]
    fn slow_start_doubles_and_a_loss_halves() {
        let mut reno = reno();
        assert_eq!(reno.window(), 10_000);
        for _ in 0..10 {
            reno.on_acknowledged(&ack(ms(100), SEGMENT));
        }
        assert_eq!(
            reno.window(),
            20_000,
            "RFC 5681, section 3.1: a segment for each one acknowledged"
        );
        reno.on_lost(&loss(ms(200), ms(190), 20_000));
        assert_eq!(reno.window(), 10_000, "RFC 5681, equation 4");
        // A second loss of the same flight belongs to the same episode (RFC 6582, section 3.2).
        reno.on_lost(&loss(ms(210), ms(195), 10_000));
        assert_eq!(reno.window(), 10_000);
        reno.on_lost(&loss(ms(400), ms(300), 10_000));
        assert_eq!(reno.window(), 5000);
    }

    #[test]
    fn congestion_avoidance_adds_one_segment_per_window() {
        let mut reno = reno();
        reno.on_lost(&loss(ms(10), ms(5), 10_000));
        assert_eq!(reno.window(), 5000);
        // Five segments in ACKs of different sizes are one window (RFC 3465, section 2.1).
        for (bytes, window) in [(2000, 5000), (2000, 5000), (1000, 6000), (6000, 7000)] {
            reno.on_acknowledged(&ack(ms(100), bytes));
            assert_eq!(reno.window(), window);
        }
    }

    #[test]
    fn linux_counts_acknowledged_packets_anew_after_a_reduction() {
        let reduce: [fn(&mut dyn Controller); 2] = [
            |reno| reno.on_lost(&loss(ms(300), ms(250), 5000)),
            |reno| {
                reno.on_timeout(ms(300), 5000);
                // Slow start to the threshold of two packets.
                reno.on_acknowledged(&ack(ms(310), SEGMENT));
            },
        ];
        for reduce in reduce {
            let mut reno = RenoSettings {
                rules: Some(Rules::Linux),
                ..RenoSettings::default()
            }
            .build(SEGMENT);
            reno.on_lost(&loss(ms(10), ms(5), 10_000));
            reno.on_acknowledged(&ack(ms(100), 4 * SEGMENT));
            assert_eq!(reno.window(), 5 * SEGMENT, "four of five packets");
            reduce(reno.as_mut());
            reno.on_acknowledged(&ack(ms(400), SEGMENT));
            assert_eq!(reno.window(), 2 * SEGMENT, "one of two packets");
            reno.on_acknowledged(&ack(ms(410), SEGMENT));
            assert_eq!(reno.window(), 3 * SEGMENT);
        }
    }

    #[test]
    fn ignores_acks_of_packets_sent_before_reduction() {
        let mut reno = reno();
        reno.on_lost(&loss(ms(10), ms(5), 10_000));
        for _ in 0..100 {
            let late = Acknowledgement {
                newest_sent_at: ms(9),
                ..ack(ms(12), SEGMENT)
            };
            reno.on_acknowledged(&late);
        }
        assert_eq!(reno.window(), 5000);
    }

    #[test]
    fn timeout_reduces_window_to_one_segment() {
        let mut reno = reno();
        reno.on_timeout(ms(1000), 8000);
        assert_eq!(reno.window(), SEGMENT, "RFC 5681, section 3.1: the loss window");
        let mut threshold = 0.0;
        reno.on_timeout(ms(3000), 1000);
        reno.metrics(&mut |name, value| {
            if name == "ssthresh_bytes" {
                threshold = value;
            }
        });
        // Half of the bytes in flight (RFC 5681, equation 4), unchanged by the second consecutive timeout.
        assert_eq!(threshold, 4000.0);
        for i in 0..3 {
            reno.on_acknowledged(&ack(ms(3100 + i), SEGMENT));
        }
        assert_eq!(reno.window(), 4000, "slow start up to the threshold");
    }

    #[test]
    fn unused_window_does_not_grow_and_flight_is_halved() {
        let mut reno = reno();
        let idle = Acknowledgement {
            window_limited: false,
            ..ack(ms(100), SEGMENT)
        };
        reno.on_acknowledged(&idle);
        assert_eq!(reno.window(), 10_000);
        reno.on_lost(&Loss {
            prior_in_flight: 6000,
            ..loss(ms(200), ms(190), 6000)
        });
        assert_eq!(
            reno.window(),
            3000,
            "RFC 5681, equation 4: half the flight, not half the window"
        );
    }

    #[test]
    fn congestion_experienced_reduces_like_a_loss() {
        let mut reno = reno();
        reno.on_congestion_experienced(ms(50), ms(40));
        assert_eq!(reno.window(), 5000, "RFC 3168, section 6.1.2");
        reno.on_congestion_experienced(ms(55), ms(45));
        assert_eq!(reno.window(), 5000);
    }

    #[test]
    fn pacing_leaves_room_for_the_window_to_grow() {
        let mut reno = RenoSettings {
            pacing: true,
            ..RenoSettings::default()
        }
        .build(SEGMENT);
        assert_eq!(reno.pacing_rate(), None, "no round-trip time yet");
        reno.on_acknowledged(&Acknowledgement {
            smoothed_rtt: Duration::from_millis(100),
            window_limited: false,
            ..ack(ms(100), SEGMENT)
        });
        // 10 kB in 100 ms are 800 kbit/s, doubled in slow start.
        assert_eq!(reno.pacing_rate().unwrap().bits_per_second(), 1_600_000);
        reno.on_lost(&Loss {
            prior_in_flight: 10_000,
            ..loss(ms(200), ms(190), 10_000)
        });
        assert_eq!(
            reno.pacing_rate().unwrap().bits_per_second(),
            500_000,
            "RFC 9002, section 7.7"
        );
    }
}
