//! BBR, version 3 (draft-ietf-ccwg-bbr): a model of the path, its bandwidth and minimum round-trip time, determines
//! the pacing rate and the window.
//!
//! [`model`] holds the state of the path, [`startup`] finds the bandwidth, [`cycle`] probes for more, [`loss`] bounds
//! the bytes in flight, [`probe_rtt`] measures the empty path. Rates are in bit/s, gains in percent, everything else
//! in bytes; the model uses integers.
//!
//! Differences from the draft: an ACK that arrives sooner than the path allows is attributed to an earlier
//! transmission, and congestion marks, which the draft leaves open, are handled. The estimate of random loss in
//! [`ambient`] is used by the controller of [`tolerant`] only.

mod ambient;
mod cycle;
mod loss;
mod marks;
mod model;
mod probe_rtt;
mod settings;
mod startup;
#[cfg(test)]
mod tests;
mod tolerant;
mod train;
mod two_cycle_max;
mod undo;

pub use marks::MarkResponse;
pub use settings::BbrSettings;
pub use tolerant::BbrTolerantSettings;

use foundation::{Duration, Instant, Probability, Rate};

use self::ambient::Ambient;
use self::marks::MarkShare;
use self::probe_rtt::MinRttFilter;
use self::startup::QueueDetector;
use self::tolerant::Additions;
use self::train::Train;
use self::two_cycle_max::TwoCycleMax;
use self::undo::Undo;
use super::arithmetic::scale;
use super::full_pipe::FullPipe;
use super::round_filter::RoundFilter;
use super::{Acknowledgement, Bursts, Controller, Loss, Outputs};

/// Value of an unset bound.
const UNBOUNDED: u64 = u64::MAX;
/// Pacing gain of Startup in percent: 4 ln 2, the smallest that doubles the rate each sample.
const STARTUP_GAIN: u64 = 277;
/// Pacing gain of Startup in percent while a queue suspends its growth.
const SUSPENDED_GAIN: u64 = 100;
/// Margin of the pacing rate below the bandwidth in percent, which drains queues.
const PACING_MARGIN: u64 = 1;
/// Minimum window in segments, sufficient for a receiver that acknowledges every second packet.
const MIN_WINDOW: u64 = 4;
/// Parts per million.
const PPM: u64 = 1_000_000;
/// Rounds of the maximum filter of ACK aggregation once the pipe was full.
const AGGREGATION_ROUNDS: u64 = 10;

/// State machine (section 5.1.1), numbered from 0 as in the metric "state".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    /// Returns the name in traces.
    const fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Drain => "drain",
            Self::Down => "probe-bw-down",
            Self::Cruise => "probe-bw-cruise",
            Self::Refill => "probe-bw-refill",
            Self::Up => "probe-bw-up",
            Self::ProbeRtt => "probe-rtt",
        }
    }

    /// Returns the pacing gain in percent (draft-ietf-ccwg-bbr, section 5.6.1).
    const fn pacing_gain(self) -> u64 {
        match self {
            Self::Startup => STARTUP_GAIN,
            Self::Drain => 50,
            Self::Down => 90,
            Self::Cruise | Self::Refill | Self::ProbeRtt => 100,
            Self::Up => 125,
        }
    }

    /// Returns the window gain in percent.
    const fn window_gain(self) -> u64 {
        match self {
            Self::Up => 225,
            Self::ProbeRtt => 50,
            _ => 200,
        }
    }

    const fn is_probe_bandwidth(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }
}

/// Relation of arriving ACKs to the last probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// Bytes in flight when a packet was sent, and bytes lost since.
#[derive(Clone, Copy, Debug)]
struct Flight {
    in_flight: u64,
    lost: u64,
}

/// Sample of one ACK for the model.
#[derive(Clone, Copy, Debug)]
struct AckSample {
    now: Instant,
    rtt: Option<Duration>,
    acknowledged: u64,
    /// Delivery rate in bit/s, 0 if unknown.
    rate: u64,
    delivered: u64,
    prior_delivered: u64,
    application_limited: bool,
    flight: Flight,
    /// This ACK starts a sample.
    starts_round: bool,
    /// This ACK ends a round of loss accounting.
    starts_loss_round: bool,
}

fn ppm(part: Probability) -> u64 {
    (part.value() * PPM as f64).round() as u64
}

/// BBR of one connection.
#[derive(Clone, Debug)]
pub(super) struct Bbr {
    segment: u64,
    initial_window: u64,
    loss_ppm: u64,
    beta: f64,
    additions: Additions,
    probe_rtt_interval: Duration,
    probe_rtt_duration: Duration,

    state: State,
    window: u64,
    /// Window before a timeout or ProbeRTT.
    prior_window: u64,
    /// Pacing rate in bit/s.
    pacing_rate: u64,
    /// A timeout happened, and no packet sent after it was acknowledged.
    timed_out: bool,

    delivered: u64,
    in_flight: u64,
    round_count: u64,
    round_end: u64,
    /// The window was fully used in this round and in the last one.
    window_limited: [bool; 2],
    /// Rate samples up to this many delivered bytes are limited by ProbeRTT.
    limited_until: u64,
    /// The connection was idle.
    restarting: bool,

    bandwidth: TwoCycleMax,
    /// Minimum of the long-term and the short-term bandwidth.
    bw: u64,
    min_rtt: MinRttFilter,
    aggregation: RoundFilter,
    aggregated: u64,
    aggregation_started: Instant,
    aggregation_delivered: u64,

    full_pipe: FullPipe,
    drain_started: u64,
    startup_queue: QueueDetector,
    train: Train,

    ambient: Ambient,
    loss_round_end: u64,
    loss_in_round: bool,
    marked_in_round: bool,
    marks: MarkShare,
    bursts: Bursts,
    loss_events: u32,
    bw_latest: u64,
    inflight_latest: u64,
    bw_shortterm: u64,
    inflight_shortterm: u64,
    inflight_longterm: u64,
    undo: Undo,

    ack_phase: AckPhase,
    probe_samples: bool,
    previous_probe_too_high: bool,
    previous_probe_precautionary: bool,
    probe_up_rounds: u32,
    probe_up_acknowledged: u64,
    probe_up_bytes_a_segment: u64,
    rounds_since_probe: u64,
    probe_wait: Duration,
    cycle_started: Instant,

    probe_rtt_done_at: Option<Instant>,
    probe_rtt_round_done: bool,
}

impl Bbr {
    fn new(settings: &BbrSettings, additions: Additions, segment: u64) -> Self {
        let window = settings.initial_window.saturating_mul(segment);
        let mut this = Self {
            segment,
            initial_window: window,
            loss_ppm: ppm(settings.loss_threshold),
            beta: settings.beta,
            additions,
            probe_rtt_interval: settings.probe_rtt_interval,
            probe_rtt_duration: settings.probe_rtt_duration,
            state: State::Startup,
            window,
            prior_window: 0,
            pacing_rate: 0,
            timed_out: false,
            delivered: 0,
            in_flight: 0,
            round_count: 0,
            round_end: 0,
            window_limited: [false; 2],
            limited_until: 0,
            restarting: false,
            bandwidth: TwoCycleMax::default(),
            bw: 0,
            min_rtt: MinRttFilter::NONE,
            aggregation: RoundFilter::default(),
            aggregated: 0,
            aggregation_started: Instant::ZERO,
            aggregation_delivered: 0,
            full_pipe: FullPipe::default(),
            drain_started: 0,
            startup_queue: QueueDetector::default(),
            train: Train::default(),
            ambient: Ambient::default(),
            loss_round_end: 0,
            loss_in_round: false,
            marked_in_round: false,
            marks: MarkShare::new(settings.marks),
            bursts: Bursts::usual(settings.whole_bursts),
            loss_events: 0,
            bw_latest: 0,
            inflight_latest: 0,
            bw_shortterm: UNBOUNDED,
            inflight_shortterm: UNBOUNDED,
            inflight_longterm: UNBOUNDED,
            undo: Undo::default(),
            ack_phase: AckPhase::Init,
            probe_samples: false,
            previous_probe_too_high: false,
            previous_probe_precautionary: false,
            probe_up_rounds: 0,
            probe_up_acknowledged: 0,
            probe_up_bytes_a_segment: UNBOUNDED,
            rounds_since_probe: 0,
            probe_wait: Duration::ZERO,
            cycle_started: Instant::ZERO,
            probe_rtt_done_at: None,
            probe_rtt_round_done: false,
        };
        // Initially the round-trip time is assumed to be 1 ms (section 5.6.2).
        this.initialize_pacing(Duration::from_millis(1));
        this
    }

    fn initialize_pacing(&mut self, rtt: Duration) {
        let bits = u128::from(self.window) * 8_000_000_000 * u128::from(STARTUP_GAIN)
            / 100
            / u128::from(rtt.as_nanos().max(1));
        self.pacing_rate = u64::try_from(bits).unwrap_or(u64::MAX).max(1);
    }

    fn start_round(&mut self) {
        self.round_end = self.delivered;
    }

    /// Saves the window unless it is already temporarily reduced.
    fn save_window(&mut self) {
        self.prior_window = if self.timed_out {
            self.prior_window.max(self.window)
        } else {
            self.window
        };
    }

    /// Returns the pacing gain in percent.
    fn pacing_gain(&self) -> u64 {
        match self.state {
            State::Startup if self.startup_queue.is_full => SUSPENDED_GAIN,
            State::Startup if self.is_near_train_rate() => train::GAIN,
            state => state.pacing_gain(),
        }
    }

    fn set_pacing_rate(&mut self, gain: u64) {
        let rate = self.with_ambient_loss(scale(self.bw, gain * (100 - PACING_MARGIN), 10_000));
        let rate = rate.max(self.jump_rate());
        let is_known = self.startup_queue.is_full || self.is_near_train_rate();
        if self.full_pipe.ever || is_known || rate > self.pacing_rate {
            self.pacing_rate = rate.max(1);
        }
    }

    fn set_window(&mut self, acknowledged: u64) {
        let target = self.with_quanta(self.bdp(self.state.window_gain()).saturating_add(self.aggregated));
        if self.full_pipe.ever {
            self.window = self.window.saturating_add(acknowledged).min(target);
        } else if self.window < target || self.delivered < self.initial_window {
            self.window = self.window.saturating_add(acknowledged);
        }
        self.window = self.window.max(self.min_window()).max(self.jump_window());
        let cap = match self.state {
            State::ProbeRtt => self.inflight_with_headroom().min(self.probe_rtt_window()),
            State::Cruise => self.inflight_with_headroom(),
            state if state.is_probe_bandwidth() => self.inflight_longterm,
            _ => UNBOUNDED,
        };
        let cap = cap.min(self.inflight_shortterm).max(self.min_window());
        self.window = self.window.min(cap);
    }
}

impl Controller for Bbr {
    /// A third window: BBR may enter slow start in recovery (`bbr_sndbuf_expand` of Linux).
    fn buffered_windows(&self) -> u64 {
        3
    }

    fn on_sent(&mut self, now: Instant, bytes: u64, bytes_in_flight: u64) {
        self.in_flight = bytes_in_flight;
        // Pacing limits as well, but only the window counts here.
        self.window_limited[0] |= bytes_in_flight + self.segment > self.window;
        if bytes_in_flight > bytes {
            return;
        }
        self.train.start(self.delivered);
        if self.delivered == 0 {
            return;
        }
        // Nothing was in flight: the queue is as empty as possible, and ACK aggregation restarts (section 5.4).
        self.restarting = true;
        self.aggregation_started = now;
        self.aggregation_delivered = 0;
        if self.state.is_probe_bandwidth() {
            self.set_pacing_rate(100);
        } else if self.state == State::ProbeRtt {
            self.leave_probe_rtt_when_done(now);
        }
    }

    fn on_acknowledged(&mut self, ack: &Acknowledgement) {
        self.delivered = ack.delivered;
        self.in_flight = ack.bytes_in_flight;
        let Some(mut sample) = self.observe(ack) else {
            return;
        };
        if self.timed_out && sample.starts_round {
            self.timed_out = false;
            self.window = self.window.max(self.prior_window);
        }
        if let (None, Some(rtt)) = (self.min_rtt.value, sample.rtt) {
            self.initialize_pacing(rtt);
        }
        self.marks.count(ack.bytes, ack.marked_bytes);
        self.check_mark_share(ack.now, &sample);
        self.update_congestion_signals(&mut sample);
        self.train.on_acknowledged(&sample);
        self.update_ambient_loss(&sample);
        self.update_aggregation(&sample);
        self.check_startup_and_drain(&sample);
        self.update_cycle(&sample);
        self.update_min_rtt(&sample);
        if sample.starts_loss_round {
            self.bw_latest = sample.rate;
            self.inflight_latest = sample.delivered;
        }
        self.bw = self.max_bw().min(self.bw_shortterm);
        self.set_pacing_rate(self.pacing_gain());
        self.set_window(sample.acknowledged);
    }

    fn on_lost(&mut self, loss: &Loss) {
        self.in_flight = loss.bytes_in_flight;
        self.note_loss(loss);
    }

    fn on_timeout(&mut self, _now: Instant, _bytes_in_flight: u64) {
        self.save_window();
        self.timed_out = true;
        self.in_flight = 0;
        self.window = self.segment;
        self.start_round();
    }

    fn on_congestion_experienced(&mut self, now: Instant, _sent_at: Instant) {
        self.note_mark(now);
    }

    fn on_spurious(&mut self, now: Instant) {
        self.undo_losses(now);
    }

    fn bursts(&self) -> Bursts {
        self.bursts
    }

    fn outputs(&self) -> Outputs {
        Outputs {
            window: self.window,
            pacing_rate: Rate::from_bits_per_second(self.train_rate().unwrap_or(self.pacing_rate)),
            in_slow_start: self.state == State::Startup,
        }
    }

    fn phase(&self) -> &'static str {
        self.state.name()
    }

    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("window_bytes", self.window as f64);
        report("pacing_rate_bps", self.pacing_rate as f64);
        report("bandwidth_bps", self.bw as f64);
        report("max_bandwidth_bps", self.max_bw() as f64);
        if let Some(rtt) = self.min_rtt.value {
            report("min_rtt_seconds", rtt.as_secs_f64());
        }
        for (name, bound) in [
            ("inflight_longterm_bytes", self.inflight_longterm),
            ("inflight_shortterm_bytes", self.inflight_shortterm),
        ] {
            if bound != UNBOUNDED {
                report(name, bound as f64);
            }
        }
        report("random_loss", self.ambient.ppm() as f64 / PPM as f64);
        report("extra_acked_bytes", self.aggregated as f64);
        report("rounds", self.round_count as f64);
        report("state", f64::from(self.state as u8));
    }
}
