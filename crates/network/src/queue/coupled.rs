//! The linear PI controller and the coupled signals of PI2 and DualPI2 (De Schepper et al., "PI2: A Linearized AQM for both
//! Classic and Scalable TCP", CoNEXT 2016; RFC 9332, appendix A).
//!
//! The controller adjusts a base probability p'. Scalable flows receive marks with probability k p', to which their rate is
//! inversely proportional; classic flows receive marks or drops with p'^2, to whose root their rate is inversely proportional.

use foundation::{Duration, Generator, Probability, Problem};

use super::{QueueActions, QueuedPacket};
use crate::impairment::Chance;

/// Shortest period of probability updates. Updates between two packets are computed one by one.
const MIN_UPDATE: Duration = Duration::from_micros(1);
/// Limit of the weights of the controller, in Hz.
const MAX_WEIGHT: f64 = 100.0;
/// Limit of the coupling factor.
const MAX_COUPLING: f64 = 100.0;

/// The parameters of the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Parameters {
    pub(super) target: Duration,
    pub(super) update: Duration,
    pub(super) alpha: f64,
    pub(super) beta: f64,
    pub(super) coupling: f64,
    /// Whether ECN-capable packets are dropped once k p' exceeds 1. Otherwise p' stays at or below 1/k.
    pub(super) drop_on_overload: bool,
}

impl Parameters {
    /// Returns all values out of range.
    pub(super) fn validate(&self) -> Vec<Problem> {
        let quoted = |key, span: Duration, valid, allowed: &str| {
            Problem::range(key, format_args!("\"{span}\""), valid, allowed)
        };
        let weight = |key, value: f64| {
            let valid = value > 0.0 && value <= MAX_WEIGHT;
            Problem::range(key, value, valid, "above 0, at most 100")
        };
        let coupling = (1.0..=MAX_COUPLING).contains(&self.coupling);
        let problems = [
            quoted("target", self.target, !self.target.is_zero(), "above 0"),
            quoted(
                "update",
                self.update,
                self.update >= MIN_UPDATE,
                "at least \"1us\"",
            ),
            weight("alpha", self.alpha),
            weight("beta", self.beta),
            Problem::range("coupling", self.coupling, coupling, "1 to 100"),
        ];
        problems.into_iter().flatten().collect()
    }

    /// Returns the largest base probability.
    fn max_probability(&self) -> f64 {
        if self.drop_on_overload {
            1.0
        } else {
            1.0 / self.coupling
        }
    }
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Signal {
    None,
    /// A mark, or a drop if the packet is not ECN-capable.
    Mark,
    Drop,
}

impl Signal {
    /// Marks or drops the packet. Returns it unless it is dropped.
    pub(super) fn apply(self, packet: QueuedPacket, actions: &mut dyn QueueActions) -> Option<QueuedPacket> {
        let keeps = match self {
            Self::None => true,
            Self::Mark => actions.mark(&packet),
            Self::Drop => false,
        };
        if keeps {
            return Some(packet);
        }
        actions.drop(packet);
        None
    }
}

/// The controller of the base probability. Between packets its state changes only at fixed times, so missed updates are
/// applied at the next packet, without an event.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Controller {
    parameters: Parameters,
    /// The base probability p'.
    probability: f64,
    /// Queueing delay at the last update, in nanoseconds.
    delay: u64,
    /// When the next update is due, in nanoseconds.
    next: u64,
}

impl Controller {
    pub(super) const fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            probability: 0.0,
            delay: 0,
            next: parameters.update.as_nanos(),
        }
    }

    /// Applies all updates due since the last call. `head` is when the oldest waiting packet joined, in nanoseconds; the
    /// queueing delay is its age (RFC 9332, appendix A.1: the sojourn time of the head packet).
    pub(super) fn catch_up(&mut self, now: u64, head: Option<u64>) {
        let period = self.parameters.update.as_nanos();
        while self.next <= now {
            let before = (self.probability, self.delay);
            let delay = head.map_or(0, |since| self.next.saturating_sub(since));
            self.update(delay);
            self.next += period;
            let is_settled = if head.is_some() {
                // The age of the head only grows.
                let is_above = delay >= self.parameters.target.as_nanos();
                is_above && self.probability == self.parameters.max_probability()
            } else {
                before == (self.probability, self.delay)
            };
            if is_settled && self.next <= now {
                // The probability is constant until the next packet.
                self.next += ((now - self.next) / period + 1) * period;
                self.delay = head.map_or(0, |since| (self.next - period).saturating_sub(since));
            }
        }
    }

    /// RFC 9332, figure 6, with the limit on p' of Linux's sch_dualpi2 if overload causes no drops.
    fn update(&mut self, delay: u64) {
        let Parameters {
            target, alpha, beta, ..
        } = self.parameters;
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let (current, before) = (seconds(delay), seconds(self.delay));
        let step = alpha * (current - seconds(target.as_nanos())) + beta * (current - before);
        self.probability = (self.probability + step).clamp(0.0, self.parameters.max_probability());
        self.delay = delay;
    }

    /// Returns the signal for a packet. `is_scalable` selects the coupled probability k p' instead of p'^2 (RFC 9332,
    /// section 2.1; overload: appendix A.2).
    pub(super) fn signal(&self, is_scalable: bool, stream: &mut Generator) -> Signal {
        let base = self.probability;
        let coupled = self.parameters.coupling * base;
        let is_overloaded = self.parameters.drop_on_overload && coupled > 1.0;
        // Two draws square the probability (CoNEXT 2016, section 5: "think twice to drop").
        match (is_scalable, is_overloaded) {
            (false, false) if hits(base, stream) && hits(base, stream) => Signal::Mark,
            (_, true) if hits(base, stream) && hits(base, stream) => Signal::Drop,
            (true, true) => Signal::Mark,
            (true, false) if hits(coupled, stream) => Signal::Mark,
            _ => Signal::None,
        }
    }
}

/// Returns whether an event of this probability occurs; takes one draw.
fn hits(probability: f64, stream: &mut Generator) -> bool {
    Chance::new(Probability::new(probability.min(1.0)).unwrap_or_default()).draw(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use foundation::Streams;
    use proptest::prelude::*;

    const PARAMETERS: Parameters = Parameters {
        target: Duration::from_millis(15),
        update: Duration::from_millis(16),
        alpha: 0.16,
        beta: 3.2,
        coupling: 2.0,
        drop_on_overload: true,
    };
    const MILLI: u64 = 1_000_000;

    fn controller(probability: f64, delay: u64) -> Controller {
        Controller {
            probability,
            delay: delay * MILLI,
            ..Controller::new(PARAMETERS)
        }
    }

    /// RFC 9332, figure 6, by hand: p' += alpha (delay - target) + beta (delay - previous delay), with the figures of
    /// appendix A.1: target 15 ms, alpha 0.16 Hz, beta 3.2 Hz.
    #[test]
    fn a_step_is_proportional_and_integral() {
        for (probability, before, delay, expected) in [
            // 0.16 * 0.005 + 3.2 * 0.01
            (0.2, 10, 20, 0.2328),
            // 0.16 * 0.005: at a constant delay only the integral term is left.
            (0.2, 20, 20, 0.2008),
            // 0.16 * -0.01 + 3.2 * -0.005
            (0.2, 10, 5, 0.1824),
            (0.2, 15, 15, 0.2),
            // 0.16 * -0.015 + 3.2 * -0.1
            (0.2, 100, 0, 0.0),
            // 0.16 * 0.285 + 3.2 * 0.3
            (0.2, 0, 300, 1.0),
        ] {
            let mut pi = controller(probability, before);
            pi.update(delay * MILLI);
            let found = pi.probability;
            assert!((found - expected).abs() < 1e-12, "{before} {delay}: {found}");
        }
    }

    /// A packet that joins at 24 ms and never leaves: the delay at update n is 16 n - 24 ms.
    #[test]
    fn updates_use_the_age_of_the_head() {
        let mut pi = Controller::new(PARAMETERS);
        pi.catch_up(24 * MILLI, None);
        assert_eq!(pi.probability, 0.0);
        // n = 2: 0.16 * -0.007 + 3.2 * 0.008; n = 3: 0.16 * 0.009 + 3.2 * 0.016; n = 4: 0.16 * 0.025 + 3.2 * 0.016.
        for (update, step) in [(2, 0.02448), (3, 0.05264), (4, 0.0552)] {
            let before = pi.probability;
            pi.catch_up(update * 16 * MILLI - 1, Some(24 * MILLI));
            assert_eq!(pi.probability, before);
            pi.catch_up(update * 16 * MILLI, Some(24 * MILLI));
            assert!((pi.probability - before - step).abs() < 1e-12, "{update}");
        }
    }

    /// Late updates give the same result as timely ones.
    #[test]
    fn updates_may_come_late() {
        for head in [None, Some(0), Some(100 * MILLI)] {
            let mut late = controller(0.3, 30);
            let mut timely = late.clone();
            for end in [101, 50_000, 3_600_001] {
                late.catch_up(end * MILLI, head);
                for milli in 0..=end {
                    timely.catch_up(milli * MILLI, head);
                }
                assert_eq!(late, timely, "{head:?} {end}");
            }
        }
    }

    proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(testing::cases(256)))]

        /// The probability stays between 0 and its limit, whatever the delays and the parameters.
        #[test]
        fn the_probability_stays_within_its_limits(
            alpha in 0.001..100.0, beta in 0.001..100.0, coupling in 1.0..100.0, drop_on_overload: bool,
            target in 1_u64..100_000_000, update in 1_000_u64..100_000_000,
            packets in proptest::collection::vec((0_u64..10_000_000, proptest::option::of(0_u64..500_000_000)), 1..60),
        ) {
            let parameters = Parameters {
                target: Duration::from_nanos(target),
                update: Duration::from_nanos(update),
                alpha,
                beta,
                coupling,
                drop_on_overload,
            };
            prop_assert_eq!(parameters.validate(), []);
            let most = if drop_on_overload { 1.0 } else { 1.0 / coupling };
            let mut pi = Controller::new(parameters);
            let mut now = 0_u64;
            for (gap, age) in packets {
                // The head has waited for `age` when the time starts to pass.
                let head = age.map(|age| now.saturating_sub(age));
                now += gap;
                pi.catch_up(now, head);
                prop_assert!((0.0..=most).contains(&pi.probability), "{}", pi.probability);
                prop_assert!(pi.next > now && pi.next - now <= update);
            }
        }
    }

    /// Returns the shares of marks and drops.
    fn shares(pi: &Controller, is_scalable: bool) -> (f64, f64) {
        let mut stream = Streams::new(1, 0).stream("coupled");
        let count = 200_000;
        let signals: Vec<Signal> = (0..count).map(|_| pi.signal(is_scalable, &mut stream)).collect();
        let share = |of| signals.iter().filter(|&&signal| signal == of).count() as f64 / f64::from(count);
        (share(Signal::Mark), share(Signal::Drop))
    }

    /// RFC 9332, equation 1: p_C = (p_CL / k)^2. Above k p' = 1 every packet is dropped with p'^2, and scalable ones are
    /// marked otherwise (appendix A.2).
    #[test]
    fn signals_are_coupled() {
        for (probability, coupling, classic, scalable) in [
            (0.0, 2.0, (0.0, 0.0), (0.0, 0.0)),
            (0.1, 2.0, (0.01, 0.0), (0.2, 0.0)),
            (0.4, 2.0, (0.16, 0.0), (0.8, 0.0)),
            (0.2, 4.0, (0.04, 0.0), (0.8, 0.0)),
            (0.5, 2.0, (0.25, 0.0), (1.0, 0.0)),
            (0.6, 2.0, (0.0, 0.36), (0.64, 0.36)),
            (1.0, 2.0, (0.0, 1.0), (0.0, 1.0)),
        ] {
            let mut pi = controller(probability, 0);
            pi.parameters.coupling = coupling;
            for (is_scalable, expected) in [(false, classic), (true, scalable)] {
                let found = shares(&pi, is_scalable);
                // Four standard deviations of 200 000 draws are at most 0.0045.
                let is_near = |a: f64, b: f64| (a - b).abs() < 0.0045;
                assert!(
                    is_near(found.0, expected.0) && is_near(found.1, expected.1),
                    "{probability} {coupling} {is_scalable}: {found:?}"
                );
            }
        }
    }

    /// Without drops on overload p' stops at 1/k: scalable packets are all marked, and classic ones with 1/k^2.
    #[test]
    fn the_probability_has_a_limit_without_drops_on_overload() {
        let mut pi = controller(0.3, 0);
        pi.parameters.drop_on_overload = false;
        pi.catch_up(10_000 * MILLI, Some(0));
        assert_eq!(pi.probability, 0.5);
        assert_eq!(shares(&pi, true), (1.0, 0.0));
        let (marks, drops) = shares(&pi, false);
        assert!((marks - 0.25).abs() < 0.0045 && drops == 0.0, "{marks} {drops}");
    }

    #[test]
    fn refuses_values_out_of_range() {
        assert_eq!(PARAMETERS.validate(), []);
        let wrong = Parameters {
            target: Duration::ZERO,
            update: Duration::from_nanos(999),
            alpha: 0.0,
            beta: f64::NAN,
            coupling: 0.5,
            drop_on_overload: true,
        };
        let messages: Vec<String> = wrong.validate().iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            [
                "target: \"0ns\" is out of range: above 0",
                "update: \"999ns\" is out of range: at least \"1us\"",
                "alpha: 0 is out of range: above 0, at most 100",
                "beta: NaN is out of range: above 0, at most 100",
                "coupling: 0.5 is out of range: 1 to 100",
            ]
        );
    }
}
