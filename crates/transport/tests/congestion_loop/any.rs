//! Random events applied to every registered controller: it keeps a usable window and finite numbers.

use std::collections::VecDeque;

use foundation::{Duration, Instant};
use proptest::prelude::*;
use transport::congestion::{
    Acknowledgement, CongestionConfig, Controller, Estimator, Loss, Pacer, Registry, Sibling, Siblings,
    Snapshot,
};

#[derive(Clone, Copy, Debug)]
enum Step {
    Wait(u64),
    /// Sends packets as far as the window allows.
    Send(u8),
    /// Acknowledges this many packets in flight, starting at this position.
    Acknowledge(u8, u8),
    /// Loses the oldest packets.
    Lose(u8),
    TimeOut,
    Mark,
    RunOutOfData,
    /// The last reduction was spurious.
    Undo,
    /// Idle for this many RTOs of 200 ms.
    Idle(u8),
    /// The sender enters or leaves loss recovery.
    Recover(bool),
    /// Another subflow has this window in packets, a round trip of 2 to this power in ns, and this many packets between
    /// losses.
    Sibling(u16, u8, u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0_u64..50).prop_map(|exponent| Step::Wait(1 << exponent.min(36))),
        5 => (1_u8..=255).prop_map(Step::Send),
        8 => (0_u8..8, 1_u8..=64).prop_map(|(skip, count)| Step::Acknowledge(skip, count)),
        2 => (1_u8..=20).prop_map(Step::Lose),
        1 => Just(Step::TimeOut),
        1 => Just(Step::Mark),
        1 => Just(Step::RunOutOfData),
        1 => Just(Step::Undo),
        1 => (0_u8..=255).prop_map(Step::Idle),
        2 => any::<bool>().prop_map(Step::Recover),
        2 => (0_u16..2000, 0_u8..40, 0_u16..2000).prop_map(|(window, rtt, losses)| Step::Sibling(window, rtt, losses)),
    ]
}

struct Model {
    controller: Box<dyn Controller>,
    estimator: Estimator,
    pacer: Pacer,
    segment: u64,
    now: Instant,
    flight: VecDeque<(Instant, Snapshot)>,
    limited: bool,
    initial: u64,
    acknowledged: u64,
    /// Time of the last reduction of a loss-based controller.
    reduced_at: Option<Instant>,
    timed_out: bool,
    recovering: bool,
    /// Whether the controller follows RFC 6582: BBR version 1 reduces its window by one packet per lost packet.
    reduces_once: bool,
    /// Losses reduce the window even if a mark reduced it in the same round trip (RFC 8257, section 3.5).
    separates_marks: bool,
    /// It has siblings, so that OLIA and BALIA may reduce the window to one packet.
    coupled: bool,
}

impl Model {
    fn new(config: &CongestionConfig, segment: u64) -> Self {
        let controller = config.build(segment);
        Self {
            initial: controller.window(),
            controller,
            estimator: Estimator::new(),
            pacer: Pacer::new(),
            segment,
            now: Instant::ZERO,
            flight: VecDeque::new(),
            limited: false,
            acknowledged: 0,
            reduced_at: None,
            timed_out: false,
            recovering: false,
            reduces_once: config.name() != "bbr1",
            separates_marks: config.name() == "dctcp",
            coupled: false,
        }
    }

    fn in_flight(&self) -> u64 {
        self.flight.len() as u64 * self.segment
    }

    fn apply(&mut self, step: Step) {
        self.timed_out &= self.controller.window() < 2 * self.segment;
        match step {
            Step::Wait(nanos) => self.now += Duration::from_nanos(nanos),
            Step::Send(count) => self.send(count),
            Step::Acknowledge(skip, count) => self.acknowledge(skip, count),
            Step::Lose(count) => self.lose(count),
            Step::TimeOut => {
                let in_flight = self.in_flight();
                self.estimator.on_lost(in_flight);
                self.flight.clear();
                self.controller.on_timeout(self.now, in_flight);
                self.timed_out = true;
                self.reduced_at = Some(self.now);
            }
            Step::Mark => {
                if let Some(&(sent_at, _)) = self.flight.back() {
                    let before = self.reduced_at;
                    self.reduce(sent_at, |model| {
                        model.controller.on_congestion_experienced(model.now, sent_at)
                    });
                    if self.separates_marks {
                        self.reduced_at = before;
                    }
                }
            }
            Step::RunOutOfData => {
                self.estimator.set_application_limited(self.in_flight());
                self.limited = false;
            }
            Step::Undo => self.controller.on_spurious(self.now),
            Step::Idle(timeouts) => {
                let rto = Duration::from_millis(200);
                let idle = rto * u64::from(timeouts);
                self.now += idle;
                self.controller.on_idle(self.now, idle, rto);
            }
            Step::Recover(recovering) => self.recovering = recovering,
            Step::Sibling(window, rtt, losses) => self.set_sibling(window, rtt, losses),
        }
    }

    fn set_sibling(&mut self, window: u16, rtt: u8, losses: u16) {
        let own = Sibling {
            window: self.controller.window(),
            rtt: Duration::from_millis(20),
            base_rtt: Duration::from_millis(20),
            between_losses: self.acknowledged,
        };
        let rtt = Duration::from_nanos((1 << rtt) - 1);
        let other = Sibling {
            window: u64::from(window) * self.segment,
            rtt,
            base_rtt: rtt,
            between_losses: u64::from(losses) * self.segment,
        };
        let all = [other, own];
        self.controller.on_siblings(&Siblings {
            all: &all,
            own_index: 1,
        });
        self.coupled = self.controller.is_coupled();
    }

    fn send(&mut self, count: u8) {
        for _ in 0..count {
            let in_flight = self.in_flight() + self.segment;
            self.limited = in_flight > self.controller.window() && !self.flight.is_empty();
            if self.limited {
                return;
            }
            if let Some(rate) = self.controller.pacing_rate()
                && let Some(at) =
                    self.pacer
                        .next_departure(self.now, rate, self.controller.bursts(), self.segment)
            {
                assert!(at > self.now);
                // Pacing may delay packets beyond the end of the test.
                self.now = at.min(self.now + Duration::from_secs(60));
            }
            self.pacer.on_sent(self.now, self.segment);
            let outputs = self.controller.outputs();
            self.controller.on_sent(self.now, self.segment, in_flight);
            if !self.controller.changes_on_sent() {
                assert_eq!(self.controller.outputs(), outputs);
            }
            let snapshot = self.estimator.on_sent(self.now, self.segment, in_flight);
            self.flight.push_back((self.now, snapshot));
        }
    }

    fn acknowledge(&mut self, skip: u8, count: u8) {
        let start = usize::from(skip).min(self.flight.len());
        let end = (start + usize::from(count)).min(self.flight.len());
        if start == end {
            return;
        }
        let mut newest_sent_at = Instant::ZERO;
        for (sent_at, snapshot) in self.flight.drain(start..end) {
            self.estimator
                .on_packet_acknowledged(self.now, &snapshot, self.segment, sent_at);
            newest_sent_at = newest_sent_at.max(sent_at);
        }
        let bytes = (end - start) as u64 * self.segment;
        self.acknowledged += bytes;
        let rtt = self.now - newest_sent_at;
        let ack = Acknowledgement {
            now: self.now,
            bytes,
            marked_bytes: u64::from(count % 4) * bytes / 3,
            rtt: (!count.is_multiple_of(3)).then_some(rtt),
            newest_sent_at,
            smoothed_rtt: rtt,
            bytes_in_flight: self.in_flight(),
            delivered: self.estimator.delivered(),
            rate_sample: self.estimator.finish_ack(Duration::ZERO),
            window_limited: self.limited,
            in_recovery: self.recovering,
        };
        self.controller.on_acknowledged(&ack);
    }

    fn lose(&mut self, count: u8) {
        let prior_in_flight = self.in_flight();
        let count = usize::from(count).min(self.flight.len());
        let Some((newest_sent_at, snapshot)) = self.flight.drain(..count).next_back() else {
            return;
        };
        let bytes = count as u64 * self.segment;
        self.estimator.on_lost(bytes);
        let loss = Loss {
            now: self.now,
            bytes,
            newest_sent_at,
            prior_in_flight,
            bytes_in_flight: self.in_flight(),
            in_flight_at_send: snapshot.in_flight(),
            lost_since_send: self.estimator.lost_since(&snapshot),
            application_limited: snapshot.application_limited(),
            in_recovery: self.recovering,
        };
        self.reduce(newest_sent_at, |model| model.controller.on_lost(&loss));
    }

    /// Packets sent before the last reduction do not reduce the window again (RFC 6582).
    fn reduce(&mut self, sent_at: Instant, event: impl FnOnce(&mut Self)) {
        let before = self.controller.window();
        event(self);
        let after = self.controller.window();
        if after < before {
            assert!(
                !self.reduces_once || self.reduced_at.is_none_or(|at| sent_at > at),
                "reduced twice in one episode"
            );
            self.reduced_at = Some(self.now);
        }
    }

    fn check(&self, name: &str) {
        let window = self.controller.window();
        // Two segments, but one after a timeout (RFC 5681).
        let minimum = if self.timed_out || self.coupled {
            1
        } else {
            self.initial.min(2 * self.segment) / self.segment
        };
        assert!(window >= minimum * self.segment, "{name}: window {window}");
        let maximum = self.initial.max(4 * self.segment) + self.acknowledged + self.segment;
        assert!(window <= maximum, "{name}: window {window} above {maximum}");
        if let Some(threshold) = self.controller.ssthresh() {
            assert_eq!(self.controller.in_slow_start(), window < threshold, "{name}");
        }
        self.controller.metrics(&mut |metric, value| {
            let minimum = if metric == "increase_per_packet" {
                f64::MIN
            } else {
                0.0
            };
            assert!(
                value.is_finite() && value >= minimum,
                "{name}: {metric} = {value}"
            );
        });
    }

    /// All numbers of the state are finite; formatting the state takes longer than all other checks.
    fn check_state(&self, name: &str) {
        let state = format!("{:?}", self.controller);
        assert!(
            !state.contains("NaN") && !state.contains(": inf,"),
            "{name}: {state}"
        );
    }
}

/// Steps between checks of the whole state; a NaN spreads, so later checks find it.
const STEPS_PER_STATE: usize = 16;

const CONFIGS: &[&str] = &[
    r#"{"kind": "reno", "hystart": true, "pacing": true, "initial_window": 1}"#,
    r#"{"kind": "cubic", "c": 100, "beta": 0.99, "pacing": true}"#,
    r#"{"kind": "cubic", "fast_convergence": false, "beta": 0.1, "hystart": false}"#,
    r#"{"kind": "bbr", "loss_threshold": "50%", "initial_window": 1000}"#,
    r#"{"kind": "bbr-tolerant", "loss_threshold": "50%", "random_loss_limit": "50%", "initial_window": 1000}"#,
    r#"{"kind": "bbr", "probe_rtt_interval": "100ms", "probe_rtt_duration": "0ms", "initial_window": 1}"#,
    r#"{"kind": "reno", "rules": "linux", "hystart": "classic"}"#,
    r#"{"kind": "reno", "rules": "ns3"}"#,
    r#"{"kind": "cubic", "rules": "linux"}"#,
    r#"{"kind": "cubic", "rules": "linux", "c": 1000, "beta": 0.99, "fast_convergence": false}"#,
    r#"{"kind": "vegas", "rules": "linux", "gamma": 0}"#,
    r#"{"kind": "vegas", "alpha": 0, "beta": 0, "pacing": true}"#,
    r#"{"kind": "westwood", "rules": "linux", "pacing": true}"#,
    r#"{"kind": "copa", "delta": 0.001, "competitive": false, "initial_window": 1}"#,
    r#"{"kind": "ledbat++", "target": "1s", "initial_window": 1}"#,
    r#"{"kind": "dctcp", "rules": "linux", "pacing": true}"#,
    r#"{"kind": "dctcp", "gain": 1, "initial_alpha": 0, "initial_window": 1}"#,
    r#"{"kind": "prague", "rtt_transition": 0, "rtt_target": "1ms", "classic_fallback": true, "initial_window": 1}"#,
    r#"{"kind": "prague", "rtt_scaling": "additive", "gain": 1}"#,
    r#"{"kind": "prague", "initial_alpha": 1, "rtt_transition": 500}"#,
    r#"{"kind": "prague", "rtt_scaling": "scalable", "rtt_transition": 1}"#,
    r#"{"kind": "bbr", "marks": "share"}"#,
    r#"{"kind": "olia", "rules": "linux", "initial_window": 1}"#,
    r#"{"kind": "balia", "hystart": true, "pacing": true}"#,
    r#"{"kind": "wvegas", "total_alpha": 2, "gamma": 0}"#,
    r#"{"kind": "bbr1", "probe_rtt_interval": "100ms", "probe_rtt_duration": "0ms", "initial_window": 1}"#,
    r#"{"kind": "fixed", "window": 1, "rate": "1bit/s"}"#,
];

fn configs() -> Vec<CongestionConfig> {
    let registry = Registry::builtin();
    let named = registry
        .iter()
        .map(|entry| CongestionConfig::named(entry.name()).unwrap());
    let tables = CONFIGS.iter().map(|text| serde_json::from_str(text).unwrap());
    named.chain(tables).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: testing::cases(400), ..ProptestConfig::default() })]

    #[test]
    fn any_events_leave_a_usable_window(
        steps in prop::collection::vec(step(), 1..400),
        segment in prop_oneof![1_u64..10, 500_u64..2000, 60_000_u64..70_000],
    ) {
        for config in configs() {
            let mut model = Model::new(&config, segment);
            for (number, step) in steps.iter().enumerate() {
                model.apply(*step);
                model.check(config.name());
                if number % STEPS_PER_STATE == 0 {
                    model.check_state(config.name());
                }
            }
            model.check_state(config.name());
        }
    }

    /// The same events give the same results: controllers have no clock and no randomness.
    #[test]
    fn controllers_are_deterministic(steps in prop::collection::vec(step(), 1..200)) {
        for config in configs() {
            let (mut one, mut other) = (Model::new(&config, 1460), Model::new(&config, 1460));
            for step in &steps {
                one.apply(*step);
                other.apply(*step);
            }
            prop_assert_eq!(format!("{:?}", one.controller), format!("{:?}", other.controller));
        }
    }
}
