//! TCP Prague (draft-briscoe-iccrg-prague-congestion-control-04): DCTCP for the low-latency queues of L4S (RFC 9331), with
//! a window that has a fraction, growth in every round trip, pacing, and a rate that depends less on the round-trip time.
//!
//! The rules and defaults are those of Linux's reference implementation (`net/ipv4/tcp_prague.c` 0.7 of L4STeam/linux,
//! without its mode for windows of at most four packets), and the detection of classic queues that of 0.6.
//!
//! Parameters: see [`PragueSettings`].

use foundation::{Duration, Instant, Problem, Rate};

use super::classic_queue::ClassicQueue;
use super::pacer::Bursts;
use super::settings::{ConnectionContext, ControllerSettings, MarkUse, check_initial_window};
use super::{Acknowledgement, Controller, Loss, Outputs};

/// Minimum window in packets to which marks and losses reduce it.
const MIN_WINDOW: u64 = 2;
/// Round-trip time from which on growth is never scaled (`MAX_SCALED_RTT`).
const MAX_SCALED_RTT: Duration = Duration::from_millis(100);
/// Bytes of the headers of IP and TCP, with timestamps.
const HEADERS: u64 = 52;
/// Round-trip times of the heuristic `scalable`: about 16 and 1.5 ms.
const SCALABLE_RTTS: (f64, f64) = (0.016_384, 0.001_536);

/// How the growth of a flow with a short round-trip time is scaled.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum RttScaling {
    /// Not at all.
    None,
    /// As if the round-trip time were `rtt_target`, so that flows below it have the same rate.
    #[default]
    Rate,
    /// Less at very short round-trip times, so that there are marks at least every eighth round trip.
    Scalable,
    /// As if the round-trip time were longer by `rtt_target`.
    Additive,
}

/// TCP Prague: DCTCP for the low-latency queues of L4S.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PragueSettings {
    /// Initial window in packets (default 10, RFC 6928).
    pub initial_window: u64,
    /// Weight g of the last round in the average share of marked packets; above 0, at most 1 (default 0.0625).
    pub gain: f64,
    /// Average share of marked packets before the first mark, from 0 to 1; with 0, the first mark halves the window instead (default 0; version 0.6 of Linux: 1).
    #[serde(skip_serializing_if = "is_zero")]
    pub initial_alpha: f64,
    /// Scaling of the growth with short round-trip times: "none", "rate", "scalable" or "additive" (default "rate").
    pub rtt_scaling: RttScaling,
    /// Round-trip time that the scaling refers to (default "25ms").
    pub rtt_target: Duration,
    /// Rounds in congestion avoidance before growth is scaled (default 4; version 0.6 of Linux: 500).
    pub rtt_transition: u64,
    /// Detect a classic queue by its delay and respond to its marks as Reno does (default false, as in Linux).
    pub classic_fallback: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

impl Default for PragueSettings {
    fn default() -> Self {
        Self {
            initial_window: 10,
            gain: 1.0 / 16.0,
            initial_alpha: 0.0,
            rtt_scaling: RttScaling::Rate,
            rtt_target: Duration::from_millis(25),
            rtt_transition: 4,
            classic_fallback: false,
        }
    }
}

impl ControllerSettings for PragueSettings {
    fn validate(&self) -> Vec<Problem> {
        let (gain, alpha, target) = (self.gain, self.initial_alpha, self.rtt_target);
        [
            check_initial_window(self.initial_window),
            Problem::range("gain", gain, gain > 0.0 && gain <= 1.0, "above 0, at most 1"),
            Problem::range("initial_alpha", alpha, (0.0..=1.0).contains(&alpha), "0 to 1"),
            Problem::range("rtt_target", target, !target.is_zero(), "above 0"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn mark_use(&self) -> MarkUse {
        MarkUse::Scalable
    }

    fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller> {
        let packets = context.initial_window.unwrap_or(self.initial_window);
        let window = packets.saturating_mul(context.segment);
        Box::new(Prague {
            settings: self.clone(),
            segment: context.segment,
            initial_window: window,
            window,
            exact: window as f64,
            ssthresh: u64::MAX,
            alpha: self.initial_alpha,
            round_start: Instant::ZERO,
            rounds: 0,
            acknowledged: 0,
            marked: 0,
            alpha_at: Instant::ZERO,
            reduced_at: None,
            saw_mark: false,
            in_loss: false,
            window_limited: [false; 2],
            smoothed_rtt: Duration::ZERO,
            in_flight: 0,
            before_loss: None,
            classic_queue: self.classic_fallback.then(ClassicQueue::default),
        })
    }
}

#[derive(Debug)]
struct Prague {
    settings: PragueSettings,
    segment: u64,
    /// Bytes.
    initial_window: u64,
    /// The window in use, which follows the exact one by a packet per ACK. Bytes.
    window: u64,
    /// The window that marks and growth act on. Bytes.
    exact: f64,
    ssthresh: u64,
    /// Average share of marked packets.
    alpha: f64,
    /// A round ends with the first ACK of a packet sent from then on.
    round_start: Instant,
    /// Rounds since the end of slow start.
    rounds: u64,
    /// Bytes acknowledged since the last average, and those that were marked.
    acknowledged: u64,
    marked: u64,
    alpha_at: Instant,
    reduced_at: Option<Instant>,
    /// Whether there is a queue on the path that marks.
    saw_mark: bool,
    /// The window was halved for losses that are being repaired.
    in_loss: bool,
    /// Whether the window limited the sender in this round and in the last one.
    window_limited: [bool; 2],
    smoothed_rtt: Duration,
    /// Bytes in flight at the last ACK.
    in_flight: u64,
    /// The windows before the last loss.
    before_loss: Option<(u64, f64)>,
    classic_queue: Option<ClassicQueue>,
}

impl Prague {
    const fn in_slow_start(&self) -> bool {
        self.window < self.ssthresh
    }

    /// Whether growth and reductions follow the target of the round-trip time instead of the path's.
    fn is_scaled(&self) -> bool {
        self.settings.rtt_scaling != RttScaling::None
            && !self.in_slow_start()
            && self.rounds >= self.settings.rtt_transition
    }

    fn rtt_target(&self) -> Duration {
        match self.settings.rtt_scaling {
            RttScaling::Additive => self.settings.rtt_target + self.smoothed_rtt,
            _ => self.settings.rtt_target,
        }
    }

    /// Returns the growth in packets per round trip without marks.
    fn growth(&self) -> f64 {
        let rtt = self.smoothed_rtt;
        if self.rounds < self.settings.rtt_transition || rtt.is_zero() || rtt > MAX_SCALED_RTT {
            return 1.0;
        }
        let seconds = rtt.as_secs_f64();
        match self.settings.rtt_scaling {
            RttScaling::None => 1.0,
            // One packet per target instead of per round trip, and the rate of a packet per target.
            RttScaling::Rate | RttScaling::Additive => {
                let ratio = (seconds / self.rtt_target().as_secs_f64()).min(1.0);
                ratio * ratio
            }
            RttScaling::Scalable => {
                let (long, short) = SCALABLE_RTTS;
                let beyond = (seconds - short).clamp(0.0, long);
                (long / 8.0 + beyond) * seconds / (long * long)
            }
        }
    }

    /// Grows by the packets that were not marked, so that the growth vanishes as all packets are marked.
    fn grow(&mut self, mut bytes: u64) {
        if self.in_slow_start() {
            let growth = bytes.min(self.ssthresh - self.window);
            self.window += growth;
            self.exact = self.window as f64;
            bytes -= growth;
        }
        self.exact += self.growth() * bytes as f64 * self.segment as f64 / self.whole() as f64;
    }

    /// Returns the exact window in whole packets, rounded up. Bytes.
    fn whole(&self) -> u64 {
        let packets = (self.exact / self.segment as f64).ceil();
        (packets as u64).max(1) * self.segment
    }

    /// Moves the window in use by at most a packet towards the exact one.
    fn step(&mut self) {
        let target = self.whole();
        if self.window > target && self.window > MIN_WINDOW * self.segment {
            self.window -= self.segment.min(self.window - target);
            self.ssthresh = self.window;
        } else if self.window < target {
            self.window += self.segment.min(target - self.window);
        }
    }

    /// Updates the average at the end of a round, or of the target's time if that is longer: flows with different round-trip
    /// times at a queue with a threshold then have the same average.
    fn end_round(&mut self, ack: &Acknowledgement) {
        if ack.newest_sent_at < self.round_start
            || self.is_scaled() && ack.now - self.alpha_at < self.rtt_target()
        {
            return;
        }
        if self.saw_mark {
            let share = self.marked as f64 / self.acknowledged.max(1) as f64;
            self.alpha += self.settings.gain * (share - self.alpha);
            self.alpha_at = ack.now;
            if let Some(queue) = &mut self.classic_queue {
                queue.end_round(self.window / self.segment);
            }
        }
        self.round_start = ack.now;
        (self.acknowledged, self.marked) = (0, 0);
        self.window_limited = [false, self.window_limited[0]];
        if !self.in_slow_start() {
            self.rounds += 1;
        }
    }

    fn halve(&mut self) {
        self.before_loss = Some((self.window, self.exact));
        self.exact /= 2.0;
        self.in_loss = true;
    }
}

impl Controller for Prague {
    fn on_acknowledged(&mut self, ack: &Acknowledgement) {
        self.smoothed_rtt = ack.smoothed_rtt;
        self.in_flight = ack.bytes_in_flight;
        if let (Some(queue), Some(rtt)) = (&mut self.classic_queue, ack.rtt) {
            queue.sample(rtt);
        }
        self.in_loss &= ack.in_recovery;
        self.window_limited[0] |= ack.window_limited;
        self.acknowledged += ack.bytes;
        self.marked += ack.marked_bytes;
        if ack.marked_bytes > 0 && !self.saw_mark {
            self.saw_mark = true;
            if self.alpha == 0.0 {
                // The average does not know the queue yet, so the first mark has its own response.
                self.exact /= 2.0;
            }
        }
        let is_limited = self.window_limited[0] || self.window_limited[1];
        let unmarked = ack.bytes.saturating_sub(ack.marked_bytes);
        if unmarked > 0 && !self.in_loss && is_limited {
            self.grow(unmarked);
        }
        self.step();
        self.end_round(ack);
    }

    /// A loss halves the window, as in Reno.
    fn on_lost(&mut self, loss: &Loss) {
        if !loss.in_recovery {
            self.halve();
        }
    }

    fn on_timeout(&mut self, _now: Instant, _bytes_in_flight: u64) {
        if !self.in_loss {
            self.halve();
        }
        self.ssthresh = self.whole().max(MIN_WINDOW * self.segment);
        self.window = self.segment;
        self.exact = self.window as f64;
    }

    fn on_congestion_experienced(&mut self, now: Instant, _sent_at: Instant) {
        let target = self.rtt_target();
        if self.is_scaled() && self.reduced_at.is_some_and(|at| now - at < target) {
            return;
        }
        self.reduced_at = Some(now);
        let fallback = self.classic_queue.as_ref().map_or(0.0, ClassicQueue::alpha);
        self.exact *= 1.0 - self.alpha.max(fallback) / 2.0;
    }

    fn on_spurious(&mut self, _now: Instant) {
        if let Some((window, exact)) = self.before_loss.take() {
            self.exact = self.exact.max(exact);
            self.window = self.window.max(window);
            self.in_loss = false;
        }
    }

    fn on_idle(&mut self, _now: Instant, idle: Duration, rto: Duration) {
        if idle > rto {
            self.window = self.window.min(self.initial_window);
            self.exact = self.window as f64;
        }
    }

    fn ssthresh(&self) -> Option<u64> {
        Some(self.ssthresh)
    }

    /// The queue of L4S marks packets that wait 1 ms.
    fn bursts(&self) -> Bursts {
        Bursts::Short
    }

    /// Paces at the exact window, or at the bytes in flight if that is more, in packets with headers per round trip, and at twice
    /// that in slow start. The pacer counts payload.
    fn outputs(&self) -> Outputs {
        let in_slow_start = self.in_slow_start();
        let doubled = self.window < self.ssthresh / 2;
        let packet = (self.segment + HEADERS) as f64;
        let packets = (self.exact as u64).max(self.in_flight) / self.segment;
        let bits = packets as f64 * packet * 8.0 * if doubled { 2.0 } else { 1.0 };
        let rate = bits / self.smoothed_rtt.as_secs_f64();
        Outputs {
            window: self.window,
            pacing_rate: Rate::from_bits_per_second(rate as u64).filter(|_| !self.smoothed_rtt.is_zero()),
            in_slow_start,
        }
    }

    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("window_bytes", self.exact);
        if self.ssthresh != u64::MAX {
            report("ssthresh_bytes", self.ssthresh as f64);
        }
        report("alpha", self.alpha);
        report("growth", self.growth());
        if let Some(queue) = &self.classic_queue {
            report("classic_queue", queue.score());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::tests::{ack, loss, metric};

    const SEGMENT: u64 = 1000;
    const RTT: u64 = 10;

    const fn ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// Acknowledges the packets of a round that ends at `now`, of which the first `marked` are marked.
    fn round(controller: &mut dyn Controller, now: u64, packets: u64, marked: u64) {
        if marked > 0 {
            controller.on_congestion_experienced(ms(now), ms(now));
        }
        for number in 0..packets {
            let is_last = number + 1 == packets;
            controller.on_acknowledged(&Acknowledgement {
                marked_bytes: if number < marked { SEGMENT } else { 0 },
                newest_sent_at: if is_last { ms(now - RTT) } else { ms(now - RTT - 1) },
                smoothed_rtt: Duration::from_millis(RTT),
                window_limited: true,
                ..ack(ms(now), SEGMENT)
            });
        }
    }

    /// Leaves slow start by a mark, with a window of about eight packets.
    fn after_slow_start(settings: &PragueSettings) -> (Box<dyn Controller>, u64) {
        let mut prague = settings.build(SEGMENT);
        round(&mut *prague, 20, 6, 0);
        assert_eq!(prague.window(), 16_000, "slow start");
        round(&mut *prague, 30, 16, 1);
        assert!(!prague.in_slow_start());
        (prague, 30)
    }

    #[test]
    fn the_first_mark_halves_the_window_by_a_packet_per_ack() {
        let (prague, _) = after_slow_start(&PragueSettings::default());
        // Half of 16 packets, then growth by a packet for each 8 of the 15 that were not marked.
        assert!((8_000..=10_000).contains(&prague.window()), "{}", prague.window());
    }

    /// Version 0.6 of Linux starts with an average of 1: the first mark halves the window, and so do the next ones, less and less.
    #[test]
    fn an_initial_average_replaces_the_halving() {
        let settings = PragueSettings {
            initial_alpha: 1.0,
            ..PragueSettings::default()
        };
        let (prague, _) = after_slow_start(&settings);
        assert!((8_000..=10_000).contains(&prague.window()), "{}", prague.window());
        let alpha = metric(&*prague, "alpha");
        // One of the 21 packets in the round was marked.
        assert!((alpha - (15.0 + 1.0 / 21.0) / 16.0).abs() < 1e-12, "{alpha}");
    }

    #[test]
    fn growth_is_a_packet_per_round_trip_and_vanishes_with_marks() {
        for (marked, growth) in [(0, 1.0), (4, 0.5), (8, 0.0)] {
            let (mut prague, now) = after_slow_start(&PragueSettings {
                rtt_scaling: RttScaling::None,
                ..PragueSettings::default()
            });
            let before = metric(&*prague, "window_bytes");
            let alpha = metric(&*prague, "alpha");
            round(&mut *prague, now + RTT, 8, marked);
            let reduced = if marked > 0 {
                before * (1.0 - alpha / 2.0)
            } else {
                before
            };
            let grown = (metric(&*prague, "window_bytes") - reduced) / SEGMENT as f64;
            let expected = growth * 8.0 / (reduced / SEGMENT as f64).ceil();
            assert!(
                (grown - expected).abs() < 0.1,
                "{marked} marked: {grown}, not {expected}"
            );
        }
    }

    /// At 10 ms and a target of 25 ms: a packet per 25 ms at the rate of a packet per 25 ms, so (10 / 25)^2 per round trip.
    #[test]
    fn growth_is_scaled_after_the_transition() {
        let settings = PragueSettings {
            rtt_transition: 3,
            ..PragueSettings::default()
        };
        let (mut prague, mut now) = after_slow_start(&settings);
        assert_eq!(metric(&*prague, "growth"), 1.0);
        for _ in 0..3 {
            now += RTT;
            round(&mut *prague, now, 8, 0);
        }
        assert!((metric(&*prague, "growth") - 0.16).abs() < 1e-12);
        // Reductions are 25 ms apart.
        let window = |prague: &dyn Controller| metric(prague, "window_bytes");
        let first = window(&*prague);
        prague.on_congestion_experienced(ms(now), ms(now));
        let second = window(&*prague);
        assert!(second < first);
        prague.on_congestion_experienced(ms(now + 24), ms(now + 24));
        assert_eq!(window(&*prague), second);
        prague.on_congestion_experienced(ms(now + 25), ms(now + 25));
        assert!(window(&*prague) < second);
    }

    #[test]
    fn losses_halve_the_window_once_and_can_be_undone() {
        let (mut prague, now) = after_slow_start(&PragueSettings::default());
        let before = metric(&*prague, "window_bytes");
        prague.on_lost(&loss(ms(now + 1), ms(now - 5), 8_000));
        prague.on_lost(&Loss {
            in_recovery: true,
            ..loss(ms(now + 2), ms(now - 4), 8_000)
        });
        assert_eq!(metric(&*prague, "window_bytes"), before / 2.0);
        prague.on_spurious(ms(now + 3));
        assert_eq!(metric(&*prague, "window_bytes"), before);
        prague.on_timeout(ms(now + 300), 8_000);
        assert_eq!(prague.window(), SEGMENT);
        assert_eq!(
            prague.ssthresh(),
            Some((before / 2.0 / SEGMENT as f64).ceil() as u64 * SEGMENT)
        );
    }
}
