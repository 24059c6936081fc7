//! The common part of loss-based controllers: slow start, one reduction per congestion episode, timeouts (RFC 5681,
//! RFC 6582), undo of spurious reductions (RFC 4015) and restart after idle periods (RFC 5681, section 4.1). An
//! algorithm implements [`Avoidance`], its growth in congestion avoidance and its reduction.

use foundation::{Duration, Instant, Rate};

use super::hystart::{CSS_GROWTH_DIVISOR, HyStart, HyStartKind, HyStartPhase};
use super::hystart_classic::ClassicHyStart;
use super::rules::{Rules, kept_ssthresh, packets};
use super::siblings::Siblings;
use super::{Acknowledgement, Controller, Loss, Outputs};

/// Minimum ssthresh in segments (RFC 5681, equation 4).
pub(super) const MIN_SSTHRESH: u64 = 2;
/// Maximum growth per ACK in slow start without pacing, in segments (RFC 9406, section 4.3).
const UNPACED_GROWTH: u64 = 8;

/// Congestion avoidance of one algorithm. Sizes are in bytes.
pub(super) trait Avoidance: std::fmt::Debug + Send + Clone {
    /// Records the measurements of any ACK.
    fn observe(&mut self, _ack: &Acknowledgement) {}
    /// Returns the state after `ack` if the algorithm controls window and ssthresh itself, in slow start too (Vegas);
    /// `None` leaves them to slow start and [`increase`](Self::increase).
    fn steer(&mut self, _ack: &Acknowledgement, _course: CwndState) -> Option<CwndState> {
        None
    }
    /// Returns the growth of `window` after an ACK in congestion avoidance while the window was used. `bytes` of the
    /// ACK remain after slow start.
    fn increase(&mut self, ack: &Acknowledgement, bytes: u64, window: u64) -> u64;
    /// Returns the decrease of the window after `increase` (OLIA).
    fn shrink(&mut self) -> u64 {
        0
    }
    /// Returns whether the window depends on other subflows ([`Controller::is_coupled`]).
    fn is_coupled(&self) -> bool {
        false
    }
    /// Receives the state of all subflows.
    fn on_siblings(&mut self, _siblings: &Siblings<'_>) {}
    /// Returns the minimum ssthresh in packets.
    fn min_ssthresh(&self) -> u64 {
        MIN_SSTHRESH
    }
    /// Handles an ACK while the window was not used.
    fn on_unused_window(&mut self, _now: Instant) {}
    /// Handles a transmission with nothing in flight, `silence` after the previous one.
    fn on_silence(&mut self, _now: Instant, _silence: Duration) {}
    /// Returns the window after congestion at `window`.
    fn decrease(&mut self, window: u64) -> u64;
    /// Returns the window after a congestion mark at `window` (RFC 3168: as after a loss).
    fn decrease_for_mark(&mut self, window: u64) -> u64 {
        self.decrease(window)
    }
    /// Returns whether losses reduce the window even if a mark reduced it in the same round trip: a mark asks for less.
    fn separates_marks(&self) -> bool {
        false
    }
    /// Resets the state of congestion avoidance after a timeout.
    fn restart(&mut self);
    /// Reports names and values of the internal state.
    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64));
}

/// Congestion window and ssthresh, for algorithms that control both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CwndState {
    /// Bytes.
    pub window: u64,
    /// Bytes; `u64::MAX` until it is set.
    pub ssthresh: u64,
    /// Whether this ACK starts a round: it is the first one of a packet sent since the last round started.
    pub round: bool,
}

/// Settings of [`LossBased`].
#[derive(Clone, Copy, Debug)]
pub(super) struct LossBasedSettings {
    /// Packets.
    pub initial_window: u64,
    /// Bytes.
    pub initial_ssthresh: Option<u64>,
    pub hystart: HyStartKind,
    pub pacing: bool,
    pub rules: Rules,
}

/// Detector of the end of slow start.
#[derive(Clone, Debug)]
enum SlowStartExit {
    OnLoss,
    PlusPlus(HyStart),
    Classic(ClassicHyStart),
}

impl SlowStartExit {
    fn new(kind: HyStartKind) -> Self {
        match kind {
            HyStartKind::Off => Self::OnLoss,
            HyStartKind::PlusPlus => Self::PlusPlus(HyStart::default()),
            HyStartKind::Classic => Self::Classic(ClassicHyStart::default()),
        }
    }
}

/// State before the last reduction.
#[derive(Clone, Debug)]
struct Undo<A> {
    window: u64,
    ssthresh: u64,
    avoidance: A,
}

/// A loss-based controller with its algorithm of congestion avoidance.
#[derive(Debug)]
pub(super) struct LossBased<A> {
    avoidance: A,
    rules: Rules,
    segment: u64,
    initial_window: u64,
    window: u64,
    ssthresh: u64,
    hystart: HyStartKind,
    slow_start_exit: SlowStartExit,
    pacing: bool,
    smoothed_rtt: Duration,
    /// Time of the last reduction: losses of packets sent before belong to the same episode.
    reduced_at: Option<Instant>,
    /// Time of the last reduction for losses, if marks count separately.
    lost_at: Option<Instant>,
    undo: Option<Box<Undo<A>>>,
    /// The losses of the last reduction are being repaired.
    recovering: bool,
    /// No packet sent after the last timeout has been acknowledged.
    timed_out: bool,
    /// Whether the window limited the sender in this round and in the last one.
    window_limited: [bool; 2],
    /// A round ends with the ACK of a packet sent after this time.
    round_started: Instant,
    sent_at: Instant,
    reductions: u32,
    timeouts: u32,
}

impl<A: Avoidance> LossBased<A> {
    pub(super) fn new(avoidance: A, settings: LossBasedSettings, segment: u64) -> Self {
        let window = settings.initial_window.saturating_mul(segment);
        Self {
            avoidance,
            rules: settings.rules,
            segment,
            initial_window: window,
            window,
            ssthresh: settings.initial_ssthresh.unwrap_or(u64::MAX),
            hystart: settings.hystart,
            slow_start_exit: SlowStartExit::new(settings.hystart),
            pacing: settings.pacing,
            smoothed_rtt: Duration::ZERO,
            reduced_at: None,
            lost_at: None,
            undo: None,
            recovering: false,
            timed_out: false,
            window_limited: [false; 2],
            round_started: Instant::ZERO,
            sent_at: Instant::ZERO,
            reductions: 0,
            timeouts: 0,
        }
    }

    /// Reduces the window to the result of `decrease`.
    fn reduce(&mut self, now: Instant, decrease: impl FnOnce(&mut A) -> u64) {
        self.save_state();
        let reduced = decrease(&mut self.avoidance);
        self.lower_ssthresh(reduced);
        // A measured ssthresh (Westwood+) may exceed the window.
        self.window = self.ssthresh.min(self.window.max(self.min_ssthresh()));
        self.reduced_at = Some(now);
        self.recovering = true;
        self.reductions += 1;
    }

    /// Returns the bytes to reduce. RFC 5681 reduces the bytes in flight, since the window may be larger than was
    /// ever used. While the window limits the sender, it is the better measure, since whole packets rarely fill it.
    fn used(&self, in_flight: u64) -> u64 {
        match self.rules {
            Rules::Rfc if !self.is_window_limited() => in_flight.min(self.window),
            Rules::Rfc | Rules::Linux => self.window,
            Rules::Ns3 => in_flight,
        }
    }

    fn lower_ssthresh(&mut self, reduced: u64) {
        self.ssthresh = reduced.max(self.min_ssthresh());
        if let SlowStartExit::PlusPlus(_) = self.slow_start_exit {
            // HyStart++ applies to the first slow start only (RFC 9406, section 4.3).
            self.slow_start_exit = SlowStartExit::OnLoss;
        }
    }

    /// Returns the minimum ssthresh in bytes.
    fn min_ssthresh(&self) -> u64 {
        self.avoidance.min_ssthresh() * self.segment
    }

    /// Applies congestion avoidance.
    fn avoid_congestion(&mut self, ack: &Acknowledgement, bytes: u64) {
        let growth = self.avoidance.increase(ack, bytes, self.window);
        self.window = self.window.saturating_add(growth);
        let shrinks = self.avoidance.shrink();
        if shrinks > 0 {
            let least = self.window.min(self.min_ssthresh());
            self.window = self.window.saturating_sub(shrinks).max(least);
            // Slow start must not restore the decrease.
            self.ssthresh = self.ssthresh.min(self.window);
        }
    }

    fn save_state(&mut self) {
        self.undo = Some(Box::new(Undo {
            window: self.window,
            ssthresh: self.ssthresh,
            avoidance: self.avoidance.clone(),
        }));
    }

    fn is_window_limited(&self) -> bool {
        self.window_limited[0] || self.window_limited[1]
    }

    /// Returns whether the window limited the sender.
    fn is_in_use(&self, ack: &Acknowledgement) -> bool {
        match self.rules {
            Rules::Rfc => self.is_window_limited(),
            Rules::Linux => ack.window_limited,
            Rules::Ns3 => true,
        }
    }

    /// Returns whether the window ignores an ACK: losses are being repaired, or the packet was sent before the
    /// reduction (RFC 9002, section 7.3.2). A packet sent at that very moment belongs to the new window. After a
    /// timeout Linux and ns-3 grow with every ACK.
    fn is_ignored(&self, ack: &Acknowledgement) -> bool {
        let late = self
            .reduced_at
            .is_some_and(|reduced| ack.newest_sent_at < reduced);
        ack.in_recovery || late && (self.recovering || self.rules == Rules::Rfc)
    }

    /// Applies slow start. Returns the bytes of the ACK left for congestion avoidance.
    fn slow_start(&mut self, ack: &Acknowledgement) -> u64 {
        let pacing = self.pacing_rate();
        let phase = match &mut self.slow_start_exit {
            SlowStartExit::OnLoss => HyStartPhase::SlowStart,
            SlowStartExit::PlusPlus(hystart) => hystart.on_acknowledged(ack),
            SlowStartExit::Classic(hystart) => {
                if hystart.on_acknowledged(ack, self.window / self.segment, pacing) {
                    HyStartPhase::Exit
                } else {
                    HyStartPhase::SlowStart
                }
            }
        };
        let mut growth = match self.rules {
            Rules::Linux => packets(ack.bytes, self.segment) * self.segment,
            Rules::Ns3 => ack.bytes.min(self.segment),
            Rules::Rfc if self.pacing => ack.bytes,
            Rules::Rfc => ack.bytes.min(UNPACED_GROWTH * self.segment),
        };
        match phase {
            HyStartPhase::SlowStart => {}
            HyStartPhase::ConservativeSlowStart => growth /= CSS_GROWTH_DIVISOR,
            HyStartPhase::Exit => {
                self.ssthresh = self.window;
                self.slow_start_exit = SlowStartExit::OnLoss;
                return ack.bytes;
            }
        }
        let room = self.ssthresh - self.window;
        self.window += growth.min(room);
        match self.rules {
            // ns-3 discards the rest of an ACK beyond one packet during slow start.
            Rules::Ns3 if growth >= room => ack.bytes.saturating_sub(growth),
            _ => growth.saturating_sub(room),
        }
    }

    /// Returns twice the window per round trip in slow start, which then doubles as without pacing, and 1.25 times in
    /// congestion avoidance (RFC 9002, section 7.7), so that the window remains the limit. Linux uses 1.2 times, from
    /// half of ssthresh on (`tcp_update_pacing_rate`).
    fn pacing_rate(&self) -> Option<Rate> {
        let nanos = u128::from(self.smoothed_rtt.as_nanos());
        if !self.pacing || nanos == 0 {
            return None;
        }
        let gain_twentieths: u128 = match self.rules {
            Rules::Linux if self.window < self.ssthresh / 2 => 40,
            Rules::Linux => 24,
            _ if self.window < self.ssthresh => 40,
            _ => 25,
        };
        let bits = u128::from(self.window) * gain_twentieths * 400_000_000 / nanos;
        Rate::from_bits_per_second(u64::try_from(bits).unwrap_or(u64::MAX))
    }
}

impl<A: Avoidance> Controller for LossBased<A> {
    fn on_sent(&mut self, now: Instant, bytes: u64, bytes_in_flight: u64) {
        if bytes_in_flight <= bytes {
            // Use of the window before an idle period is irrelevant.
            self.window_limited = [false; 2];
            self.round_started = now;
            self.avoidance.on_silence(now, now - self.sent_at);
        }
        self.sent_at = now;
        if let SlowStartExit::PlusPlus(hystart) = &mut self.slow_start_exit {
            hystart.on_sent(now);
        }
    }

    fn on_acknowledged(&mut self, ack: &Acknowledgement) {
        self.smoothed_rtt = ack.smoothed_rtt;
        self.avoidance.observe(ack);
        let round = ack.newest_sent_at > self.round_started;
        if round {
            self.round_started = ack.now;
            self.window_limited = [false, self.window_limited[0]];
        }
        self.window_limited[0] |= ack.window_limited;
        if self.is_ignored(ack) {
            return;
        }
        self.timed_out = false;
        self.recovering = false;
        let state = CwndState {
            window: self.window,
            ssthresh: self.ssthresh,
            round,
        };
        if let Some(state) = self.avoidance.steer(ack, state) {
            (self.window, self.ssthresh) = (state.window, state.ssthresh);
            return;
        }
        if !self.is_in_use(ack) {
            self.avoidance.on_unused_window(ack.now);
            return;
        }
        let mut bytes = ack.bytes;
        if self.window < self.ssthresh {
            bytes = self.slow_start(ack);
        }
        if bytes > 0 && self.window >= self.ssthresh {
            self.avoid_congestion(ack, bytes);
        }
    }

    fn on_lost(&mut self, loss: &Loss) {
        if loss.in_recovery {
            return;
        }
        let in_flight = match self.rules {
            Rules::Ns3 => loss.bytes_in_flight,
            _ => loss.prior_in_flight,
        };
        // A mark in the same round trip is another episode if marks count separately.
        let last = if self.avoidance.separates_marks() {
            self.lost_at
        } else {
            self.reduced_at
        };
        if last.is_none_or(|at| loss.newest_sent_at > at) {
            let used = self.used(in_flight);
            self.reduce(loss.now, |avoidance| avoidance.decrease(used));
            self.lost_at = Some(loss.now);
        }
    }

    fn on_timeout(&mut self, now: Instant, bytes_in_flight: u64) {
        // A further timeout without progress leaves ssthresh unchanged (RFC 5681, section 3.1); in Linux so does a
        // timeout while the losses of the last reduction are repaired.
        let unchanged = self.timed_out || self.recovering && self.rules == Rules::Linux;
        if !unchanged {
            self.save_state();
            let used = self.used(bytes_in_flight);
            let reduced = self.avoidance.decrease(used);
            self.lower_ssthresh(reduced);
        }
        self.avoidance.restart();
        if self.hystart == HyStartKind::Classic {
            self.slow_start_exit = SlowStartExit::new(self.hystart);
        }
        self.window = self.segment;
        self.reduced_at = Some(now);
        self.lost_at = Some(now);
        self.recovering = false;
        self.timed_out = true;
        self.timeouts += 1;
    }

    fn on_congestion_experienced(&mut self, now: Instant, sent_at: Instant) {
        if self.reduced_at.is_none_or(|at| sent_at > at) {
            let window = self.window;
            self.reduce(now, |avoidance| avoidance.decrease_for_mark(window));
        }
    }

    /// Undoes the reduction (RFC 4015, section 3.4; RFC 9438, section 4.9), unless the window has grown beyond it.
    /// Linux keeps the state of CUBIC.
    fn on_spurious(&mut self, _now: Instant) {
        let Some(undo) = self.undo.take() else { return };
        self.window = self.window.max(undo.window);
        self.ssthresh = self.ssthresh.max(undo.ssthresh);
        if self.rules == Rules::Rfc {
            self.avoidance = undo.avoidance;
        }
        self.timed_out = false;
        self.recovering = false;
    }

    fn on_idle(&mut self, _now: Instant, idle: Duration, rto: Duration) {
        if idle <= rto || rto.is_zero() {
            return;
        }
        let restart = self.initial_window.min(self.window);
        if self.rules == Rules::Linux {
            // The window halves for each RTO of the idle period (RFC 2861, section 3.2), and ssthresh becomes three
            // quarters of it (`tcp_cwnd_restart` of `net/ipv4/tcp_output.c`).
            self.ssthresh = self.ssthresh.max(kept_ssthresh(self.window, self.segment));
            let halvings = u32::try_from((idle.as_nanos() - 1) / rto.as_nanos()).unwrap_or(u32::MAX);
            let left = self.window.checked_shr(halvings).unwrap_or(0) / self.segment * self.segment;
            self.window = left.max(restart);
        } else {
            // Restart window (RFC 5681, section 4.1).
            self.window = restart;
        }
    }

    fn is_coupled(&self) -> bool {
        self.avoidance.is_coupled()
    }

    fn on_siblings(&mut self, siblings: &Siblings<'_>) {
        self.avoidance.on_siblings(siblings);
    }

    fn ssthresh(&self) -> Option<u64> {
        Some(self.ssthresh)
    }

    fn changes_on_sent(&self) -> bool {
        false
    }

    fn outputs(&self) -> Outputs {
        Outputs {
            window: self.window,
            pacing_rate: self.pacing_rate(),
            in_slow_start: self.window < self.ssthresh,
        }
    }

    fn phase(&self) -> &'static str {
        match &self.slow_start_exit {
            _ if self.window >= self.ssthresh => "congestion-avoidance",
            SlowStartExit::PlusPlus(hystart) if hystart.is_conservative() => "conservative-slow-start",
            _ => "slow-start",
        }
    }

    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("window_bytes", self.window as f64);
        if self.ssthresh != u64::MAX {
            report("ssthresh_bytes", self.ssthresh as f64);
        }
        report("reductions", self.reductions as f64);
        report("timeouts", self.timeouts as f64);
        self.avoidance.metrics(report);
    }
}
