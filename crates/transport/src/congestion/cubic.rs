//! CUBIC (RFC 9438): after a congestion event, the window is a cubic function of the time, flat near the window of
//! that event.
//!
//! Parameters: `c` in packets/s³, `beta` (multiplicative decrease factor), fast convergence.

use foundation::{Duration, Instant, Problem};

use super::arithmetic::cube_root;
use super::cubic_linux::LinuxCubic;
use super::hystart::HyStartKind;
use super::loss_based::{Avoidance, LossBased, LossBasedSettings};
use super::rules::StackRules;
use super::settings::{ConnectionContext, ControllerSettings, check_initial_window};
use super::{Acknowledgement, Controller};

/// CUBIC: the window grows with the cube of the time since the last loss; the default of most systems.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CubicSettings {
    /// Initial window in packets (default 10, RFC 6928).
    pub initial_window: u64,
    /// Scaling constant C in packets per second cubed, above 0 and at most 1000 (default 0.4).
    pub c: f64,
    /// Multiplicative decrease factor, 0.1 to 0.99 (default 0.7).
    pub beta: f64,
    /// Reduce the plateau further if the window shrinks twice in a row (default true).
    pub fast_convergence: bool,
    /// Exit from slow start before a loss: "off", "hystart++" (RFC 9406) or "classic" (default "hystart++", with
    /// rules = "linux" "classic").
    pub hystart: Option<HyStartKind>,
    /// Rules: "rfc" (RFC 9438) or "linux" (default those of the TCP profile, else "rfc").
    pub rules: Option<StackRules>,
    /// Pace the window over the round trip instead of sending on each ACK (default false).
    pub pacing: bool,
}

impl Default for CubicSettings {
    fn default() -> Self {
        Self {
            initial_window: 10,
            c: 0.4,
            beta: 0.7,
            fast_convergence: true,
            hystart: None,
            rules: None,
            pacing: false,
        }
    }
}

impl ControllerSettings for CubicSettings {
    fn validate(&self) -> Vec<Problem> {
        let (c, beta) = (self.c, self.beta);
        let problems = [
            check_initial_window(self.initial_window),
            Problem::range("c", c, c > 0.0 && c <= 1000.0, "above 0, at most 1000"),
            Problem::range("beta", beta, (0.1..=0.99).contains(&beta), "0.1 to 0.99"),
        ];
        problems.into_iter().flatten().collect()
    }

    fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller> {
        let rules = self.rules.unwrap_or_else(|| context.rules.into());
        let (hystart, linux) = match rules {
            StackRules::Rfc => (HyStartKind::PlusPlus, false),
            StackRules::Linux => (HyStartKind::Classic, true),
        };
        let settings = LossBasedSettings {
            initial_window: context.initial_window.unwrap_or(self.initial_window),
            initial_ssthresh: None,
            hystart: self.hystart.unwrap_or(hystart),
            pacing: self.pacing,
            rules: rules.into(),
        };
        if linux {
            let growth = LinuxCubic::new(self.c, self.beta, self.fast_convergence, context.segment);
            Box::new(LossBased::new(growth, settings, context.segment))
        } else {
            let growth = CubicGrowth::new(self, context.segment);
            Box::new(LossBased::new(growth, settings, context.segment))
        }
    }
}

/// Congestion avoidance of RFC 9438, section 4. Windows are in segments, as in the RFC.
#[derive(Clone, Debug)]
struct CubicGrowth {
    segment: f64,
    c: f64,
    beta: f64,
    fast_convergence: bool,
    /// Window at the last congestion event, lowered by fast convergence; `None` after slow start and after a timeout.
    w_max: Option<f64>,
    /// Window before the last reduction.
    prior: f64,
    epoch: Option<Epoch>,
    /// Fractional bytes of growth.
    fraction: f64,
}

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Start of the stage, postponed while the window is not used (RFC 9438, section 5.8).
    start: Instant,
    /// Time from the start to `origin`, in seconds.
    k: f64,
    /// Window at the plateau.
    origin: f64,
    /// Window of Reno (section 4.3).
    reno: f64,
    last_ack: Instant,
}

impl CubicGrowth {
    fn new(settings: &CubicSettings, segment: u64) -> Self {
        Self {
            segment: segment as f64,
            c: settings.c,
            beta: settings.beta,
            fast_convergence: settings.fast_convergence,
            w_max: None,
            prior: 0.0,
            epoch: None,
            fraction: 0.0,
        }
    }

    fn start_epoch(&self, now: Instant, window: f64) -> Epoch {
        let origin = self.w_max.unwrap_or(window).max(window);
        Epoch {
            start: now,
            k: cube_root((origin - window) / self.c),
            origin,
            reno: window,
            last_ack: now,
        }
    }

    /// Returns W_cubic(t) (figure 1 of section 4.2).
    fn w_cubic(&self, epoch: &Epoch, t: Duration) -> f64 {
        let x = t.as_secs_f64() - epoch.k;
        self.c * x * x * x + epoch.origin
    }

    /// Returns the segments of growth per acknowledged window with which the estimate matches Reno despite the milder
    /// decrease (section 4.3).
    fn reno_friendly_slope(&self, epoch: &Epoch) -> f64 {
        if epoch.reno >= self.prior {
            1.0
        } else {
            3.0 * (1.0 - self.beta) / (1.0 + self.beta)
        }
    }
}

impl Avoidance for CubicGrowth {
    fn increase(&mut self, ack: &Acknowledgement, bytes: u64, window: u64) -> u64 {
        let window = window as f64 / self.segment;
        let acknowledged = bytes as f64 / self.segment;
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.start_epoch(ack.now, window),
        };
        epoch.last_ack = ack.now;
        epoch.reno += self.reno_friendly_slope(&epoch) * acknowledged / window;
        self.epoch = Some(epoch);

        let elapsed = ack.now - epoch.start;
        let growth = if self.w_cubic(&epoch, elapsed) < epoch.reno {
            (epoch.reno - window).max(0.0)
        } else {
            // Towards the value of the curve one round trip later, by at most half (section 4.4).
            let target = self.w_cubic(&epoch, elapsed + ack.smoothed_rtt);
            (target.clamp(window, 1.5 * window) - window) * (acknowledged / window).min(1.0)
        };
        self.fraction += growth * self.segment;
        let whole = self.fraction as u64;
        self.fraction -= whole as f64;
        whole
    }

    fn on_unused_window(&mut self, now: Instant) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start += now - epoch.last_ack;
            epoch.last_ack = now;
        }
    }

    fn decrease(&mut self, window: u64) -> u64 {
        let segments = window as f64 / self.segment;
        let shrinking = self.w_max.is_some_and(|w_max| segments < w_max);
        self.w_max = Some(if shrinking && self.fast_convergence {
            segments * (1.0 + self.beta) / 2.0
        } else {
            segments
        });
        self.prior = segments;
        self.epoch = None;
        self.fraction = 0.0;
        (window as f64 * self.beta) as u64
    }

    fn restart(&mut self) {
        self.w_max = None;
        self.epoch = None;
    }

    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        if let Some(w_max) = self.w_max {
            report("w_max_bytes", w_max * self.segment);
        }
        if let Some(epoch) = &self.epoch {
            report("w_est_bytes", epoch.reno * self.segment);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::tests::{ack, loss, metric};

    const SEGMENT: u64 = 1000;

    const fn ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// Returns a controller with 1000 packets after a congestion event.
    fn reduced(settings: CubicSettings) -> Box<dyn Controller> {
        let mut cubic = CubicSettings {
            initial_window: 1000,
            ..settings
        }
        .build(SEGMENT);
        cubic.on_lost(&loss(ms(100), ms(50), 1_000_000));
        cubic
    }

    /// Acknowledges one window every `rtt` for `span`, in ten ACKs.
    fn run(cubic: &mut dyn Controller, start: u64, span: u64, rtt: u64) {
        let mut now = start;
        while now < start + span {
            for part in 1..=10 {
                cubic.on_acknowledged(&Acknowledgement {
                    smoothed_rtt: Duration::from_millis(rtt),
                    ..ack(ms(now + rtt * part / 10), cubic.window() / 10)
                });
            }
            now += rtt;
        }
    }

    #[test]
    fn window_reaches_plateau_after_k_seconds() {
        let mut cubic = reduced(CubicSettings::default());
        assert_eq!(cubic.window(), 700_000, "RFC 9438, section 4.6: beta_cubic = 0.7");
        // K = cbrt((1000 - 700) / 0.4) = 9.086 s (section 4.2); at K/2 the curve is at 1000 - 300/8 = 962.5 segments.
        // A long round trip keeps Reno below the curve.
        run(cubic.as_mut(), 200, 4543, 200);
        let half = cubic.window() as f64 / 1000.0;
        assert!((955.0..968.0).contains(&half), "{half}");
        run(cubic.as_mut(), 4800, 4500, 200);
        let plateau = cubic.window() as f64 / 1000.0;
        assert!((998.0..1002.0).contains(&plateau), "{plateau}");
        // Convex afterwards: 0.4 × 5³ = 50 segments above the plateau 5 s later.
        run(cubic.as_mut(), 9300, 5000, 200);
        let convex = cubic.window() as f64 / 1000.0;
        assert!((1045.0..1060.0).contains(&convex), "{convex}");
    }

    #[test]
    fn fast_convergence_lowers_the_plateau() {
        let mut cubic = reduced(CubicSettings::default());
        cubic.on_lost(&loss(ms(300), ms(200), 700_000));
        // W_max = 700 × (1 + 0.7) / 2 (section 4.7).
        assert_eq!(metric(cubic.as_ref(), "w_max_bytes").round(), 595_000.0);
        let mut without = reduced(CubicSettings {
            fast_convergence: false,
            ..CubicSettings::default()
        });
        without.on_lost(&loss(ms(300), ms(200), 700_000));
        assert_eq!(metric(without.as_ref(), "w_max_bytes").round(), 700_000.0);
    }

    #[test]
    fn matches_reno_on_a_short_path() {
        // alpha = 3 × 0.3 / 1.7 segments per round trip until the prior window is reached (section 4.3).
        let mut cubic = CubicSettings::default().build(SEGMENT);
        cubic.on_lost(&loss(ms(100), ms(50), 10_000));
        run(cubic.as_mut(), 101, 5, 1);
        let expected = 7.0 + 5.0 * 3.0 * 0.3 / 1.7;
        let window = cubic.window() as f64 / 1000.0;
        assert!((window - expected).abs() < 0.35, "{window}, expected {expected}");
    }

    #[test]
    fn idle_time_does_not_advance_the_curve() {
        let mut cubic = reduced(CubicSettings::default());
        run(cubic.as_mut(), 200, 1000, 200);
        let before = cubic.window();
        // A minute without use of the window (RFC 9438, section 5.8).
        cubic.on_sent(ms(61_000), SEGMENT, SEGMENT);
        cubic.on_acknowledged(&Acknowledgement {
            window_limited: false,
            ..ack(ms(61_200), SEGMENT)
        });
        run(cubic.as_mut(), 61_200, 200, 200);
        let after = cubic.window();
        assert!(after < before + 60_000, "{before} to {after}");
    }

    #[test]
    fn validates_settings() {
        let bad = CubicSettings {
            beta: 1.0,
            c: f64::NAN,
            initial_window: 0,
            ..CubicSettings::default()
        };
        let keys: Vec<_> = bad.validate().into_iter().map(|p| p.key).collect();
        assert_eq!(keys, ["initial_window", "c", "beta"]);
    }
}
