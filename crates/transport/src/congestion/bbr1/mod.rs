//! BBR, version 1 (N. Cardwell, Y. Cheng, C. S. Gunn, S. H. Yeganeh and V. Jacobson, "BBR: congestion-based
//! congestion control", 2016; draft-cardwell-iccrg-bbr-congestion-control-00): sends at the maximum delivery rate of
//! ten rounds and keeps at most two bandwidth-delay products in flight, regardless of losses. Kept for comparison
//! with version 3. With the rules of Linux (`net/ipv4/tcp_bbr.c`), windows are whole packets with room for aggregated
//! ACKs, packets leave at 99 % of the bandwidth, and losses at one rate reveal a policer.
//!
//! Parameters: see [`Bbr1Settings`].

mod aggregation;
mod policer;
mod settings;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use foundation::{Duration, Instant, Rate};

use super::arithmetic::{bytes_in, scale};
use super::full_pipe::FullPipe;
use super::round_filter::RoundFilter;
use super::{Acknowledgement, Bursts, Controller, Loss, Outputs};
use aggregation::Aggregation;
use policer::{Policer, Progress};
use settings::Bbr1Rules;
pub use settings::Bbr1Settings;

/// Denominator of gains.
const UNIT: u64 = 1000;
/// 2 / ln 2: the smallest pacing gain that doubles the rate each round (section 4.1.1.4).
const HIGH_GAIN: u64 = 2885;
/// Drains in one round the queue that Startup builds in one.
const DRAIN_GAIN: u64 = UNIT * UNIT / HIGH_GAIN;
/// Window gain while probing for bandwidth (section 4.2.3.2).
const WINDOW_GAIN: u64 = 2 * UNIT;
/// Pacing gains of the phases of ProbeBW (section 4.3.4.2).
const CYCLE: [u64; 8] = [1250, 750, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Rounds of the maximum filter of the delivery rate (section 4.1.1.1).
const BANDWIDTH_ROUNDS: u64 = 10;
/// Minimum window in packets, also that of ProbeRTT (section 4.2.3.2).
const MIN_WINDOW: u64 = 4;
/// Bursts added to the window (section 4.2.3.2).
const QUANTA: u64 = 3;
/// Linux: packets added to the window in the phase that probes for bandwidth (`bbr_quantization_budget`).
const PROBE_PACKETS: u64 = 2;
/// Linux: thousandths of the bandwidth at which packets leave (`bbr_pacing_margin_percent`).
const MARGIN: u64 = 990;

/// State machine (section 4.3.1), numbered from 0 as in the metric "state".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

#[derive(Clone, Debug)]
struct Bbr1 {
    segment: u64,
    initial_window: u64,
    interval: Duration,
    duration: Duration,

    state: State,
    window: u64,
    /// Window before recovery or ProbeRTT.
    prior_window: u64,
    /// Pacing rate in bit/s.
    pacing_rate: u64,
    delivered: u64,
    in_flight: u64,

    round_count: u64,
    round_end: u64,
    bandwidth: RoundFilter,
    /// Maximum delivery rate in bit/s.
    bw: u64,
    full_pipe: FullPipe,

    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    probe_rtt_done_at: Option<Instant>,
    probe_rtt_round_done: bool,
    /// Rate samples up to this many delivered bytes are limited by ProbeRTT.
    limited_until: u64,
    restarting: bool,

    phase: usize,
    phase_started: Instant,
    /// Bytes lost since the last ACK.
    lost: u64,
    /// Start of the last recovery: losses of packets sent before belong to it.
    recovery: Option<Instant>,
    recovering: bool,
    /// Start of the current round of recovery.
    round_of_recovery: Instant,
    /// Packet conservation: the first round of recovery is in progress.
    conserves_packets: bool,
    /// Rules of Linux.
    linux: Option<Linux>,
    bursts: Bursts,
}

/// What only Linux's rules need.
#[derive(Clone, Debug, Default)]
struct Linux {
    aggregation: Aggregation,
    policer: Policer,
    /// Bytes declared lost.
    lost: u64,
}

impl Bbr1 {
    fn new(settings: &Bbr1Settings, segment: u64) -> Self {
        let window = settings.initial_window.saturating_mul(segment);
        let mut this = Self {
            segment,
            initial_window: window,
            interval: settings.probe_rtt_interval,
            duration: settings.probe_rtt_duration,
            state: State::Startup,
            window,
            prior_window: 0,
            pacing_rate: 0,
            delivered: 0,
            in_flight: 0,
            round_count: 0,
            round_end: 0,
            bandwidth: RoundFilter::default(),
            bw: 0,
            full_pipe: FullPipe::default(),
            min_rtt: None,
            min_rtt_at: Instant::ZERO,
            probe_rtt_done_at: None,
            probe_rtt_round_done: false,
            limited_until: 0,
            restarting: false,
            phase: 0,
            phase_started: Instant::ZERO,
            lost: 0,
            recovery: None,
            recovering: false,
            round_of_recovery: Instant::ZERO,
            conserves_packets: false,
            linux: (settings.rules == Some(Bbr1Rules::Linux)).then(Linux::default),
            bursts: Bursts::usual(settings.whole_bursts),
        };
        // Initially the round-trip time is assumed to be 1 ms (section 4.2.1).
        this.initialize_pacing(Duration::from_millis(1));
        this
    }

    fn initialize_pacing(&mut self, rtt: Duration) {
        let rate = scale(self.window, 8_000_000_000, rtt.as_nanos().max(1));
        self.pacing_rate = self.pace(rate, HIGH_GAIN);
    }

    /// Returns the pacing rate of the payload for a bandwidth.
    fn pace(&self, bandwidth: u64, gain: u64) -> u64 {
        let rate = scale(bandwidth, gain, UNIT);
        let rate = match self.linux {
            None => rate,
            Some(_) => scale(rate, MARGIN, UNIT),
        };
        rate.max(1)
    }

    fn policed_rate(&self) -> Option<u64> {
        self.linux.as_ref()?.policer.rate()
    }

    /// Returns the rate of a policer, or the maximum delivery rate, in bit/s.
    fn bandwidth_in_use(&self) -> u64 {
        self.policed_rate().unwrap_or(self.bw)
    }

    /// Looks for a policer at an ACK or a timeout, and probes again after its end.
    fn update_policer(&mut self, now: Instant, starts_round: bool, loses: bool, application_limited: bool) {
        let Some(linux) = &mut self.linux else { return };
        let progress = Progress {
            now,
            delivered: self.delivered,
            lost: linux.lost,
            starts_round,
            loses,
            application_limited,
        };
        if linux.policer.update(&progress, self.state == State::ProbeBw) {
            self.enter_probe_bw(now);
        }
    }

    fn pacing_gain(&self) -> u64 {
        match self.state {
            State::ProbeBw if self.policed_rate().is_some() => UNIT,
            State::Startup => HIGH_GAIN,
            State::Drain => DRAIN_GAIN,
            State::ProbeBw => CYCLE[self.phase],
            State::ProbeRtt => UNIT,
        }
    }

    const fn window_gain(&self) -> u64 {
        match self.state {
            State::Startup | State::Drain => HIGH_GAIN,
            State::ProbeBw => WINDOW_GAIN,
            State::ProbeRtt => UNIT,
        }
    }

    /// Returns the burst size (section 4.2.2): one packet below 1.2 Mbit/s, two below 24 Mbit/s, else the bytes of 1
    /// ms up to 64 KiB.
    fn quantum(&self) -> u64 {
        match self.pacing_rate {
            // `bbr_tso_segs_goal`: the packets of 1/1024 s, at least 2.
            1_200_000.. if self.linux.is_some() => {
                let bytes = (self.pacing_rate / 8) >> 10;
                (bytes.min(65_535) / self.segment).clamp(2, 127) * self.segment
            }
            0..1_200_000 => self.segment,
            1_200_000..24_000_000 => 2 * self.segment,
            rate => bytes_in(rate, Duration::from_millis(1)).min(65_536),
        }
    }

    /// Returns `gain` thousandths of the bandwidth-delay product plus room for bursts.
    fn inflight(&self, gain: u64) -> u64 {
        self.inflight_with(gain, 0)
    }

    /// Returns `gain` thousandths of the bandwidth-delay product plus room for bursts and `extra` bytes.
    fn inflight_with(&self, gain: u64, extra: u64) -> u64 {
        let Some(rtt) = self.min_rtt else {
            return self.initial_window;
        };
        let bytes = scale(bytes_in(self.bandwidth_in_use(), rtt), gain, UNIT);
        if self.linux.is_none() {
            return bytes.saturating_add(QUANTA * self.quantum());
        }
        // An even number of whole packets (`bbr_bdp`, `bbr_quantization_budget`).
        let packets = bytes.div_ceil(self.segment) + (extra + QUANTA * self.quantum()) / self.segment;
        let probes = self.state == State::ProbeBw && self.phase == 0;
        let packets = packets.next_multiple_of(2) + if probes { PROBE_PACKETS } else { 0 };
        packets.saturating_mul(self.segment)
    }

    const fn min_window(&self) -> u64 {
        MIN_WINDOW * self.segment
    }

    /// Saves the window unless it is already temporarily reduced.
    fn save_window(&mut self) {
        self.prior_window = if self.recovering || self.state == State::ProbeRtt {
            self.prior_window.max(self.window)
        } else {
            self.window
        };
    }

    /// Updates rounds and bandwidth (sections 4.1.1.2 and 4.1.1.3). Returns whether this ACK starts a round.
    fn update_bandwidth(&mut self, ack: &Acknowledgement) -> bool {
        let Some(sample) = ack.rate_sample else {
            return false;
        };
        let starts = sample.prior_delivered >= self.round_end;
        if starts {
            self.round_end = self.delivered;
            self.round_count += 1;
        }
        let limited = sample.application_limited || sample.prior_delivered < self.limited_until;
        self.update_policer(ack.now, starts, self.lost > 0, limited);
        let rate = sample.rate().map_or(0, Rate::bits_per_second);
        if rate > 0 && (rate >= self.bw || !limited) {
            self.bw = self.bandwidth.update(self.round_count, rate, BANDWIDTH_ROUNDS);
        }
        self.full_pipe.check(starts && !limited, self.bw);
        starts
    }

    fn enter_probe_bw(&mut self, now: Instant) {
        self.state = State::ProbeBw;
        // Starts in any phase but the draining one (section 4.3.4.3), drawn from values that differ between flows, so
        // that a controller needs no external random numbers.
        let mixed = (now.as_nanos() ^ self.delivered.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let draw = (mixed >> 32) % (CYCLE.len() as u64 - 1);
        self.phase = (CYCLE.len() - draw as usize) % CYCLE.len();
        self.phase_started = now;
    }

    /// Advances to the next phase when it is due (section 4.3.4.3).
    fn update_cycle(&mut self, now: Instant, prior_in_flight: u64) {
        let whole = now - self.phase_started > self.min_rtt.unwrap_or_default();
        let gain = self.pacing_gain();
        let is_over = match gain.cmp(&UNIT) {
            Ordering::Equal => whole,
            Ordering::Greater => whole && (self.lost > 0 || prior_in_flight >= self.inflight(gain)),
            Ordering::Less => whole || prior_in_flight <= self.inflight(UNIT),
        };
        if is_over {
            self.phase = (self.phase + 1) % CYCLE.len();
            self.phase_started = now;
        }
    }

    /// Updates the minimum round-trip time (section 4.1.2) and ProbeRTT (section 4.3.5).
    fn update_min_rtt(&mut self, now: Instant, rtt: Option<Duration>, starts: bool) {
        let expired = self.min_rtt.is_some() && now > self.min_rtt_at + self.interval;
        if let Some(rtt) = rtt.filter(|rtt| !rtt.is_zero())
            && (expired || self.min_rtt.is_none_or(|least| rtt <= least))
        {
            if self.min_rtt.is_none() {
                self.initialize_pacing(rtt);
            }
            self.min_rtt = Some(rtt);
            self.min_rtt_at = now;
        }
        if expired && self.state != State::ProbeRtt && !self.restarting {
            self.save_window();
            self.state = State::ProbeRtt;
            self.probe_rtt_done_at = None;
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(now, starts);
        }
        self.restarting = false;
    }

    fn handle_probe_rtt(&mut self, now: Instant, starts: bool) {
        self.limited_until = self.delivered + self.in_flight;
        let Some(done_at) = self.probe_rtt_done_at else {
            if self.in_flight <= self.min_window() {
                self.probe_rtt_done_at = Some(now + self.duration);
                self.probe_rtt_round_done = false;
                self.round_end = self.delivered;
            }
            return;
        };
        self.probe_rtt_round_done |= starts;
        if self.probe_rtt_round_done && now > done_at {
            self.min_rtt_at = now;
            self.window = self.window.max(self.prior_window);
            if self.full_pipe.ever {
                self.enter_probe_bw(now);
            } else {
                self.state = State::Startup;
            }
        }
    }

    /// Packet conservation in the first round of a recovery; its end restores the window (section 4.2.3.4). Losses
    /// appear for one round and are repaired in the next, so that a recovery lasts two rounds, even if the sender
    /// does not report recovery.
    fn update_recovery(&mut self, ack: &Acknowledgement) {
        if !self.recovering || ack.newest_sent_at < self.round_of_recovery {
            return;
        }
        if self.conserves_packets {
            self.conserves_packets = false;
            self.round_of_recovery = ack.now;
        } else if !ack.in_recovery {
            self.recovering = false;
            self.window = self.window.max(self.prior_window);
        }
    }

    fn set_pacing_rate(&mut self, gain: u64) {
        let rate = self.pace(self.bandwidth_in_use(), gain);
        if self.full_pipe.ever || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// Section 4.2.3.6.
    fn set_window(&mut self, acknowledged: u64) {
        let room = self.linux.as_ref().filter(|_| self.full_pipe.ever);
        let room = room.map_or(0, |linux| linux.aggregation.room(self.bandwidth_in_use()));
        let target = self.inflight_with(self.window_gain(), room);
        if self.conserves_packets {
            self.window = self.window.max(self.in_flight.saturating_add(acknowledged));
        } else if self.full_pipe.ever {
            self.window = self.window.saturating_add(acknowledged).min(target);
        } else if self.window < target || self.delivered < self.initial_window {
            self.window = self.window.saturating_add(acknowledged);
        }
        self.window = self.window.max(self.min_window());
        if self.state == State::ProbeRtt {
            self.window = self.min_window();
        }
    }
}

impl Controller for Bbr1 {
    /// A third window: BBR may enter slow start in recovery (`bbr_sndbuf_expand` of Linux).
    fn buffered_windows(&self) -> u64 {
        3
    }

    fn on_sent(&mut self, _now: Instant, bytes: u64, bytes_in_flight: u64) {
        self.in_flight = bytes_in_flight;
        if bytes_in_flight <= bytes && self.delivered > 0 {
            // Nothing was in flight: the first packets leave at the bandwidth (section 4.3.4.4).
            self.restarting = true;
            if self.state == State::ProbeBw {
                self.set_pacing_rate(UNIT);
            }
        }
    }

    fn on_acknowledged(&mut self, ack: &Acknowledgement) {
        let prior_in_flight = ack
            .bytes_in_flight
            .saturating_add(ack.bytes)
            .saturating_add(self.lost);
        self.delivered = ack.delivered;
        self.in_flight = ack.bytes_in_flight;
        let starts = self.update_bandwidth(ack);
        let bandwidth = self.bandwidth_in_use();
        if let Some(linux) = &mut self.linux {
            let most = (self.segment, self.window);
            linux
                .aggregation
                .update(ack.now, starts, ack.bytes, bandwidth, most);
        }
        match self.state {
            State::ProbeBw => self.update_cycle(ack.now, prior_in_flight),
            State::Startup if self.full_pipe.ever => self.state = State::Drain,
            _ => {}
        }
        if self.state == State::Drain && self.in_flight <= self.inflight(UNIT) {
            self.enter_probe_bw(ack.now);
        }
        self.update_min_rtt(ack.now, ack.rtt, starts);
        self.update_recovery(ack);
        self.set_pacing_rate(self.pacing_gain());
        self.set_window(ack.bytes);
        self.lost = 0;
    }

    fn on_lost(&mut self, loss: &Loss) {
        self.in_flight = loss.bytes_in_flight;
        self.lost += loss.bytes;
        if let Some(linux) = &mut self.linux {
            linux.lost += loss.bytes;
        }
        if self.conserves_packets || self.linux.is_some() {
            self.window = self.window.saturating_sub(loss.bytes).max(self.min_window());
        }
        if self.recovering
            || self
                .recovery
                .is_some_and(|started| loss.newest_sent_at <= started)
        {
            return;
        }
        self.save_window();
        self.recovery = Some(loss.now);
        self.round_of_recovery = loss.now;
        self.recovering = true;
        self.conserves_packets = true;
        self.window = loss
            .bytes_in_flight
            .saturating_add(self.segment)
            .min(self.window)
            .max(self.min_window());
    }

    fn on_timeout(&mut self, now: Instant, bytes_in_flight: u64) {
        if let Some(linux) = &mut self.linux {
            linux.lost += bytes_in_flight;
            self.full_pipe.baseline = 0;
            self.update_policer(now, true, true, false);
        }
        self.save_window();
        self.recovery = Some(now);
        self.round_of_recovery = now;
        self.recovering = true;
        self.conserves_packets = false;
        self.in_flight = 0;
        self.window = self.segment;
        self.round_end = self.delivered;
    }

    fn on_spurious(&mut self, _now: Instant) {
        if self.recovering {
            self.recovering = false;
            self.conserves_packets = false;
            self.window = self.window.max(self.prior_window);
        }
    }

    fn bursts(&self) -> Bursts {
        self.bursts
    }

    fn outputs(&self) -> Outputs {
        Outputs {
            window: self.window,
            pacing_rate: Rate::from_bits_per_second(self.pacing_rate),
            in_slow_start: self.state == State::Startup,
        }
    }

    fn phase(&self) -> &'static str {
        match self.state {
            State::Startup => "startup",
            State::Drain => "drain",
            State::ProbeBw => "probe-bw",
            State::ProbeRtt => "probe-rtt",
        }
    }

    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("window_bytes", self.window as f64);
        report("pacing_rate_bps", self.pacing_rate as f64);
        report("bandwidth_bps", self.bandwidth_in_use() as f64);
        if let Some(rtt) = self.min_rtt {
            report("min_rtt_seconds", rtt.as_secs_f64());
        }
        report("rounds", self.round_count as f64);
        report("state", f64::from(self.state as u8));
    }
}
