//! CUBIC as implemented by Linux (`net/ipv4/tcp_cubic.c`): whole packets, time in ms, and growth by one packet for
//! every `count` acknowledged packets. Differences from RFC 9438: rounding; the curve is recomputed at most every 31
//! ms while the window is constant; the window grows by at least 5 % per round trip before the first congestion; a
//! timeout clears the plateau.

use foundation::{Duration, Instant};

use super::Acknowledgement;
use super::arithmetic::cube_root;
use super::loss_based::Avoidance;
use super::rules::{PacketCount, packets};

/// Denominator of beta and C.
const SCALE: u64 = 1024;
/// Interval in ms at which the curve is recomputed while the window is constant.
const INTERVAL_MS: u64 = 31;
/// Limit of `count` before the first congestion: 5 % growth per round trip.
const MAX_INITIAL_COUNT: u64 = 20;
/// Limit of `count` in general: growth by half per round trip.
const MIN_COUNT: u64 = 2;
/// Factor of `count` above the curve: one packet in a hundred round trips.
const ABOVE_CURVE_FACTOR: u64 = 100;

#[derive(Clone, Debug)]
pub(super) struct LinuxCubic {
    segment: u64,
    /// Multiplicative decrease in 1024ths: 717 for 0.7.
    beta: u64,
    /// C in 1024ths, in steps of ten: 410 for 0.4.
    c: u64,
    fast_convergence: bool,
    /// Window in packets at the last congestion, lowered by fast convergence; 0 for none.
    plateau: u64,
    last_window: u64,
    computed_at_ms: u64,
    epoch: Option<Epoch>,
    /// Acknowledged packets that Reno's window does not include yet.
    acknowledged: u64,
    /// Acknowledged packets per packet of growth.
    count: u64,
    growth: PacketCount,
    min_rtt: Option<Duration>,
}

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    started: Instant,
    /// Time from the start to the plateau in 1024ths of a second.
    k: u64,
    /// Packets.
    origin: u64,
    /// Window of Reno in packets.
    reno: u64,
}

const fn ticks(at: Instant) -> u64 {
    at.as_nanos() / 1_000_000
}

impl LinuxCubic {
    pub(super) fn new(c: f64, beta: f64, fast_convergence: bool, segment: u64) -> Self {
        Self {
            segment,
            beta: (beta * SCALE as f64).round() as u64,
            c: (c * SCALE as f64 / 10.0).round().max(1.0) as u64 * 10,
            fast_convergence,
            plateau: 0,
            last_window: 0,
            computed_at_ms: 0,
            epoch: None,
            acknowledged: 0,
            count: 0,
            growth: PacketCount::default(),
            min_rtt: None,
        }
    }

    fn start_epoch(&self, now: Instant, window: u64) -> Epoch {
        let below = self.plateau.saturating_sub(window);
        // (W_max - cwnd) / C in s³, in 1024ths of a second after the root.
        let k = cube_root(below as f64 * SCALE as f64 / self.c as f64) * SCALE as f64;
        Epoch {
            started: now,
            k: k as u64,
            origin: self.plateau.max(window),
            reno: window,
        }
    }

    /// Returns the acknowledged packets per packet of growth with which the window reaches the curve one minimum
    /// round-trip time later.
    fn count_towards_curve(&self, epoch: &Epoch, now: Instant, window: u64) -> u64 {
        let least = self.min_rtt.unwrap_or_default().as_nanos().div_ceil(1_000_000);
        let t = (ticks(now) - ticks(epoch.started) + least) * SCALE / 1000;
        let offset = u128::from(t.abs_diff(epoch.k));
        let cube = (offset * offset * offset * u128::from(self.c)) >> 40;
        let delta = u64::try_from(cube).unwrap_or(u64::MAX);
        let target = if t < epoch.k {
            epoch.origin.saturating_sub(delta)
        } else {
            epoch.origin.saturating_add(delta)
        };
        let count = if target > window {
            window / (target - window)
        } else {
            ABOVE_CURVE_FACTOR * window
        };
        if self.plateau == 0 {
            count.min(MAX_INITIAL_COUNT)
        } else {
            count
        }
    }

    fn update(&mut self, now: Instant, window: u64, acknowledged: u64) {
        self.acknowledged += acknowledged;
        let tick = ticks(now);
        if self.last_window == window && tick - self.computed_at_ms <= INTERVAL_MS {
            return;
        }
        let mut epoch = match self.epoch {
            // The curve is computed once per tick.
            Some(epoch) if tick == self.computed_at_ms => epoch,
            epoch => {
                (self.last_window, self.computed_at_ms) = (window, tick);
                let epoch = epoch.unwrap_or_else(|| {
                    self.acknowledged = acknowledged;
                    self.start_epoch(now, window)
                });
                self.count = self.count_towards_curve(&epoch, now, window);
                epoch
            }
        };
        // At least as fast as Reno (RFC 9438, section 4.3): acknowledged packets per packet of Reno's growth, in
        // eighths.
        let eighths = 8 * (SCALE + self.beta) / 3 / (SCALE - self.beta);
        let every = (window * eighths / 8).max(1);
        // Linux requires strictly more packets than `every`.
        let grown = self.acknowledged.saturating_sub(1) / every;
        self.acknowledged -= grown * every;
        epoch.reno += grown;
        if epoch.reno > window {
            self.count = self.count.min(window / (epoch.reno - window));
        }
        self.count = self.count.max(MIN_COUNT);
        self.epoch = Some(epoch);
    }
}

impl Avoidance for LinuxCubic {
    fn observe(&mut self, ack: &Acknowledgement) {
        let Some(rtt) = ack.rtt else { return };
        // Round-trip times are atypical for a second after a reduction.
        if self
            .epoch
            .is_none_or(|epoch| ticks(ack.now) - ticks(epoch.started) >= 1000)
        {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        }
    }

    fn increase(&mut self, ack: &Acknowledgement, bytes: u64, window: u64) -> u64 {
        let acknowledged = packets(bytes, self.segment);
        self.update(ack.now, window / self.segment, acknowledged);
        self.growth.grow(acknowledged, self.count) * self.segment
    }

    /// An idle period does not advance the curve (RFC 9438, section 5.8).
    fn on_silence(&mut self, now: Instant, silence: Duration) {
        if let Some(epoch) = &mut self.epoch {
            epoch.started = (epoch.started + silence).min(now);
        }
    }

    fn decrease(&mut self, window: u64) -> u64 {
        let window = window / self.segment;
        self.epoch = None;
        // `tcp_init_cwnd_reduction`, for every controller.
        self.growth = PacketCount::default();
        self.plateau = if window < self.plateau && self.fast_convergence {
            window * (SCALE + self.beta) / (2 * SCALE)
        } else {
            window
        };
        window * self.beta / SCALE * self.segment
    }

    fn restart(&mut self) {
        self.plateau = 0;
        self.last_window = 0;
        self.computed_at_ms = 0;
        self.epoch = None;
        self.acknowledged = 0;
        self.count = 0;
        self.growth = PacketCount::default();
        self.min_rtt = None;
    }

    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        if self.plateau > 0 {
            report("w_max_bytes", (self.plateau * self.segment) as f64);
        }
        if let Some(epoch) = &self.epoch {
            report("w_est_bytes", (epoch.reno * self.segment) as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::tests::ack;

    const SEGMENT: u64 = 1000;

    #[test]
    fn counts_acknowledged_packets_anew_after_a_reduction() {
        let at = |millis: u64| ack(Instant::from_nanos(millis * 1_000_000), SEGMENT);
        for restart in [false, true] {
            let mut cubic = LinuxCubic::new(0.4, 0.7, true, SEGMENT);
            let window = cubic.decrease(10 * SEGMENT);
            assert_eq!(window, 7 * SEGMENT);
            assert_eq!(
                cubic.increase(&at(100), 6 * SEGMENT, window),
                0,
                "one packet for seven"
            );
            let window = cubic.decrease(window);
            assert_eq!(window, 4 * SEGMENT);
            if restart {
                cubic.restart();
            }
            let growth: Vec<u64> = (0..4)
                .map(|number| cubic.increase(&at(200 + number), SEGMENT, window))
                .collect();
            assert_eq!(growth[..3], [0; 3], "{growth:?}");
        }
    }
}
