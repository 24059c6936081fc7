//! TCP Westwood+ (S. Mascolo, C. Casetti, M. Gerla, M. Y. Sanadidi and R. Wang, "TCP Westwood: bandwidth estimation
//! for enhanced transport over wireless links", 2001; L. A. Grieco and S. Mascolo, "Performance evaluation and
//! comparison of Westwood+, New Reno, and Vegas TCP congestion control", 2004): grows as Reno, and resumes after a
//! loss with the measured bandwidth times the minimum round-trip time, so that a random loss costs at most the
//! content of the queue.
//!
//! Parameters: see [`WestwoodSettings`].

use foundation::{Duration, Instant, Problem};

use super::arithmetic::scale;
use super::hystart::HyStartKind;
use super::loss_based::{Avoidance, LossBased, LossBasedSettings};
use super::reno::AdditiveIncrease;
use super::rules::StackRules;
use super::settings::{ConnectionContext, ControllerSettings, check_initial_window};
use super::{Acknowledgement, Controller};

/// Minimum duration of a bandwidth sample, which otherwise spans a round trip (as in Linux's `tcp_westwood.c`).
const MIN_SPAN: Duration = Duration::from_millis(50);
/// Weight of the old value in the low-pass filter, in eighths.
const OLD_WEIGHT: u64 = 7;

/// Westwood+: Reno that resumes with the measured bandwidth-delay product after a loss.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WestwoodSettings {
    /// Initial window in packets (default 10, RFC 6928).
    pub initial_window: u64,
    /// Exit from slow start before a loss: "off", "hystart++" (RFC 9406) or "classic" (default "off").
    pub hystart: HyStartKind,
    /// Rules: "rfc" or "linux" (default those of the TCP profile, else "rfc").
    pub rules: Option<StackRules>,
    /// Pace the window over the round trip instead of sending on each ACK (default false).
    pub pacing: bool,
}

impl Default for WestwoodSettings {
    fn default() -> Self {
        Self {
            initial_window: 10,
            hystart: HyStartKind::Off,
            rules: None,
            pacing: false,
        }
    }
}

impl ControllerSettings for WestwoodSettings {
    fn validate(&self) -> Vec<Problem> {
        check_initial_window(self.initial_window).into_iter().collect()
    }

    fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller> {
        let rules = self.rules.unwrap_or_else(|| context.rules.into());
        let settings = LossBasedSettings {
            initial_window: context.initial_window.unwrap_or(self.initial_window),
            initial_ssthresh: None,
            hystart: self.hystart,
            pacing: self.pacing,
            rules: rules.into(),
        };
        let growth = Westwood {
            reno: AdditiveIncrease::new(context.segment, rules.into()),
            segment: context.segment,
            whole_packets: rules == StackRules::Linux,
            estimate: None,
            min_rtt: None,
            span: None,
            timed_out: false,
        };
        Box::new(LossBased::new(growth, settings, context.segment))
    }
}

#[derive(Clone, Debug)]
struct Westwood {
    reno: AdditiveIncrease,
    segment: u64,
    /// Windows are whole_packets packets.
    whole_packets: bool,
    estimate: Option<Estimate>,
    min_rtt: Option<Duration>,
    span: Option<Span>,
    /// The next sample replaces the minimum round-trip time, since the path may have changed.
    timed_out: bool,
}

/// Current measurement interval.
#[derive(Clone, Copy, Debug)]
struct Span {
    started: Instant,
    bytes: u64,
}

/// Bandwidth in bytes/s, after one and after two filter stages.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    once: u64,
    twice: u64,
}

fn filter(old: u64, new: u64) -> u64 {
    scale(old, OLD_WEIGHT, OLD_WEIGHT + 1).saturating_add(new / (OLD_WEIGHT + 1))
}

impl Westwood {
    /// Adds to the bandwidth sample of a round trip. One sample per round trip keeps compressed ACKs from inflating
    /// the estimate (the + of Westwood+).
    fn sample(&mut self, now: Instant, bytes: u64, rtt: Duration) {
        let span = self.span.get_or_insert(Span {
            started: now,
            bytes: 0,
        });
        let length = now - span.started;
        if length > rtt.max(MIN_SPAN) {
            let sample = scale(span.bytes, 1_000_000_000, length.as_nanos());
            self.estimate = Some(match self.estimate {
                None => Estimate {
                    once: sample,
                    twice: sample,
                },
                Some(old) => {
                    let once = filter(old.once, sample);
                    Estimate {
                        once,
                        twice: filter(old.twice, once),
                    }
                }
            });
            *span = Span {
                started: now,
                bytes: 0,
            };
        }
        span.bytes = span.bytes.saturating_add(bytes);
    }

    /// Returns the estimated bandwidth-delay product in bytes.
    fn bdp(&self) -> Option<u64> {
        let (estimate, rtt) = (self.estimate?, self.min_rtt?);
        Some(scale(estimate.twice, rtt.as_nanos(), 1_000_000_000))
    }
}

impl Avoidance for Westwood {
    fn observe(&mut self, ack: &Acknowledgement) {
        if let Some(rtt) = ack.rtt.filter(|rtt| !rtt.is_zero()) {
            let old = self.min_rtt.filter(|_| !self.timed_out);
            self.min_rtt = Some(old.map_or(rtt, |least| least.min(rtt)));
            self.timed_out = false;
        }
        self.sample(ack.now, ack.bytes, ack.rtt.unwrap_or(ack.smoothed_rtt));
    }

    fn increase(&mut self, ack: &Acknowledgement, bytes: u64, window: u64) -> u64 {
        self.reno.increase(ack, bytes, window)
    }

    /// Returns the bandwidth-delay product, or half of the window before the first estimate.
    fn decrease(&mut self, window: u64) -> u64 {
        let half = self.reno.decrease(window);
        match self.bdp() {
            Some(bdp) if self.whole_packets => bdp / self.segment * self.segment,
            Some(bdp) => bdp,
            None => half,
        }
    }

    fn restart(&mut self) {
        self.reno.restart();
        self.timed_out = true;
    }

    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        if let Some(estimate) = self.estimate {
            report("bandwidth_bps", estimate.twice as f64 * 8.0);
        }
        if let Some(rtt) = self.min_rtt {
            report("min_rtt_seconds", rtt.as_secs_f64());
        }
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

    /// Acknowledges one packet per ms, 8 Mbit/s, for `span` ms with a round-trip time of `rtt` ms.
    fn steady(controller: &mut dyn Controller, from: u64, span: u64, rtt: u64) {
        for now in from..from + span {
            controller.on_acknowledged(&Acknowledgement {
                rtt: Some(Duration::from_millis(rtt)),
                newest_sent_at: ms(now - rtt),
                window_limited: false,
                ..ack(ms(now), SEGMENT)
            });
        }
    }

    #[test]
    fn loss_reduces_window_to_bdp() {
        let mut westwood = WestwoodSettings {
            initial_window: 300,
            ..WestwoodSettings::default()
        }
        .build(SEGMENT);
        steady(westwood.as_mut(), 100, 100, 60);
        steady(westwood.as_mut(), 200, 4000, 100);
        // 1 MB/s × 60 ms for any window (Grieco and Mascolo, equation 1).
        westwood.on_lost(&loss(ms(4200), ms(4190), 300_000));
        let window = westwood.window();
        assert!((59_000..=61_000).contains(&window), "{window}");
        assert_eq!(westwood.ssthresh(), Some(window));
    }

    #[test]
    fn timeout_sets_ssthresh_to_bdp_and_resets_min_rtt() {
        let mut westwood = WestwoodSettings {
            rules: Some(StackRules::Linux),
            initial_window: 300,
            ..WestwoodSettings::default()
        }
        .build(SEGMENT);
        steady(westwood.as_mut(), 100, 4000, 60);
        westwood.on_timeout(ms(5000), 100_000);
        assert_eq!(westwood.window(), SEGMENT);
        let threshold = westwood.ssthresh().unwrap();
        assert!(
            (59_000..=60_000).contains(&threshold) && threshold.is_multiple_of(SEGMENT),
            "{threshold}"
        );
        steady(westwood.as_mut(), 6000, 1, 80);
        let mut least = 0.0;
        westwood.metrics(&mut |name, value| {
            if name == "min_rtt_seconds" {
                least = value;
            }
        });
        assert_eq!(least, 0.08);
    }

    #[test]
    fn is_reno_before_first_estimate() {
        let mut westwood = WestwoodSettings::default().build(SEGMENT);
        westwood.on_lost(&loss(ms(10), ms(5), 10_000));
        assert_eq!(westwood.window(), 5000);
    }
}
