//! CUBIC as Linux computes it (`net/ipv4/tcp_cubic.c`): whole packets, time in ticks of a millisecond, and
//! a window that grows by a packet for every `count` packets acknowledged. It departs from RFC 9438 in
//! rounding, in recomputing the curve at most every 31 ms while the window stands still, in a growth of at
//! least 5 % a round trip before the first congestion, and in forgetting the plateau at a timeout.

use foundation::{Duration, Instant};

use super::Acknowledgement;
use super::cubic::{CubicSettings, cube_root};
use super::loss_based::Avoidance;
use super::rules::{PacketCount, packets};

/// Fractions of 1024, in which beta and C are kept.
const SCALE: u64 = 1024;
/// Where the window stands still, the curve is looked at this often.
const PATIENCE_MS: u64 = 31;
/// The slowest growth before the first congestion: 5 % a round trip.
const SLOWEST_BLIND: u64 = 20;
/// The fastest growth: by half a round trip.
const FASTEST: u64 = 2;
/// How slow growth below the curve is: a hundred round trips for a packet.
const STANDSTILL: u64 = 100;

#[derive(Clone, Debug)]
pub(super) struct LinuxCubic {
    segment: u64,
    /// In 1024ths: 717 for 0.7.
    beta: u64,
    /// C in 1024ths, in steps of ten: 410 for 0.4.
    c: u64,
    fast_convergence: bool,
    /// The window at which congestion was last met, lowered by fast convergence; 0 for none.
    plateau: u64,
    last_window: u64,
    looked_at_ms: u64,
    epoch: Option<Epoch>,
    /// Packets acknowledged that have not made Reno's window grow yet.
    acknowledged: u64,
    /// The window grows by a packet for so many.
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
    /// The window that Reno would have.
    reno: u64,
}

const fn ticks(at: Instant) -> u64 {
    at.as_nanos() / 1_000_000
}

impl LinuxCubic {
    pub(super) fn new(settings: &CubicSettings, segment: u64) -> Self {
        Self {
            segment,
            beta: (settings.beta * SCALE as f64).round() as u64,
            c: (settings.c * SCALE as f64 / 10.0).round().max(1.0) as u64 * 10,
            fast_convergence: settings.fast_convergence,
            plateau: 0,
            last_window: 0,
            looked_at_ms: 0,
            epoch: None,
            acknowledged: 0,
            count: 0,
            growth: PacketCount::default(),
            min_rtt: None,
        }
    }

    fn begin(&self, now: Instant, window: u64) -> Epoch {
        let below = self.plateau.saturating_sub(window);
        // (W_max - cwnd) / C in seconds cubed, in 1024ths of a second after the root.
        let k = cube_root(below as f64 * SCALE as f64 / self.c as f64) * SCALE as f64;
        Epoch {
            started: now,
            k: k as u64,
            origin: self.plateau.max(window),
            reno: window,
        }
    }

    /// Packets in which the window grows by one to reach where the curve is a least round trip on.
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
            STANDSTILL * window
        };
        if self.plateau == 0 {
            count.min(SLOWEST_BLIND)
        } else {
            count
        }
    }

    fn update(&mut self, now: Instant, window: u64, acknowledged: u64) {
        self.acknowledged += acknowledged;
        let tick = ticks(now);
        if self.last_window == window && tick - self.looked_at_ms <= PATIENCE_MS {
            return;
        }
        let mut epoch = match self.epoch {
            // The curve is computed once a tick.
            Some(epoch) if tick == self.looked_at_ms => epoch,
            epoch => {
                (self.last_window, self.looked_at_ms) = (window, tick);
                let epoch = epoch.unwrap_or_else(|| {
                    self.acknowledged = acknowledged;
                    self.begin(now, window)
                });
                self.count = self.count_towards_curve(&epoch, now, window);
                epoch
            }
        };
        // As fast as Reno at least (RFC 9438, section 4.3): packets for each one of its growth, in eighths.
        let eighths = 8 * (SCALE + self.beta) / 3 / (SCALE - self.beta);
        let every = (window * eighths / 8).max(1);
        // Strictly more than that: the last packet waits.
        let grown = self.acknowledged.saturating_sub(1) / every;
        self.acknowledged -= grown * every;
        epoch.reno += grown;
        if epoch.reno > window {
            self.count = self.count.min(window / (epoch.reno - window));
        }
        self.count = self.count.max(FASTEST);
        self.epoch = Some(epoch);
    }
}

impl Avoidance for LinuxCubic {
    fn observe(&mut self, ack: &Acknowledgement) {
        let Some(rtt) = ack.rtt else { return };
        // For a second after a reduction, round trips are not what they were.
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

    /// A pause is not time on the curve (RFC 9438, section 5.8).
    fn on_silence(&mut self, now: Instant, silence: Duration) {
        if let Some(epoch) = &mut self.epoch {
            epoch.started = (epoch.started + silence).min(now);
        }
    }

    fn decrease(&mut self, window: u64) -> u64 {
        let window = window / self.segment;
        self.epoch = None;
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
        self.looked_at_ms = 0;
        self.epoch = None;
        self.acknowledged = 0;
        self.count = 0;
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
