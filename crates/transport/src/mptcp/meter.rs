//! Decaying averages of a host's path rates, losses and flow arrivals, in steps of simulated or real time.

use foundation::{Duration, Instant};

/// Step of the averages.
const STEP: Duration = Duration::from_millis(100);
/// Decay of a path's losses per step: a half-life of 1.4 s.
const KEEP_LOSS: f64 = 0.95;
/// Decay of the highest rate per step without a higher one: a half-life of 4.4 s.
const KEEP_RATE: f64 = 63.0 / 64.0;
/// Decay of flow arrivals per step: a half-life of 3.4 s.
const KEEP_FLOWS: f64 = 0.98;
/// Steps after which the decay is complete.
const ALL_STEPS: u64 = 1000;
/// Bytes per segment, to compare losses in segments with deliveries in bytes.
const SEGMENT: f64 = 1400.0;
/// Segments without loss assumed before the first measurement.
const PRIOR: f64 = 1000.0;
/// Tolerance for the rounding of sums.
const ROUNDING: f64 = 1.0 + 1e-9;

/// Returns the whole steps between two instants and moves the earlier one forward by them.
fn steps(from: &mut Instant, now: Instant) -> u64 {
    let steps = (now - *from).as_nanos() / STEP.as_nanos();
    *from += STEP * steps;
    steps
}

/// Rate and loss of one path over all connections of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PathMeter {
    since: Instant,
    /// Bytes in the current step.
    bytes: u64,
    rate: f64,
    carried: f64,
    lost: f64,
}

impl PathMeter {
    /// Records acknowledged bytes and lost segments.
    pub(super) fn on_delivery(&mut self, now: Instant, bytes: u64, lost: u64) {
        let steps = steps(&mut self.since, now).min(ALL_STEPS);
        if steps > 0 {
            let measured = self.bytes as f64 / (STEP * steps).as_secs_f64();
            self.bytes = 0;
            self.rate = measured.max(self.rate * KEEP_RATE);
            let decay = KEEP_LOSS.powi(steps as i32);
            self.carried *= decay;
            self.lost *= decay;
        }
        self.bytes += bytes;
        self.carried += bytes as f64 / SEGMENT;
        self.lost += lost as f64;
    }

    /// Returns the highest recent rate in bytes/s; 0 before the first delivery.
    pub(super) const fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the recent share of lost segments.
    pub(super) const fn loss(&self) -> f64 {
        self.lost / (self.lost + self.carried + PRIOR)
    }
}

/// Arrival rate and sizes of flows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Arrivals {
    /// Flows per second.
    pub rate: f64,
    /// Mean size in bytes.
    pub mean: f64,
    /// Mean squared size in bytes².
    pub square: f64,
}

/// Flows with sizes between two powers of two.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    count: f64,
    bytes: f64,
    squares: f64,
}

/// Arrivals of flows by size.
#[derive(Clone, Debug, Default)]
pub(super) struct ArrivalMeter {
    since: Option<Instant>,
    /// Time that the counts cover, in seconds.
    span: f64,
    bins: Vec<Bin>,
}

impl ArrivalMeter {
    pub(super) fn on_flow(&mut self, now: Instant, size: u64) {
        let since = self.since.get_or_insert(now);
        let steps = steps(since, now).min(ALL_STEPS) as i32;
        if steps > 0 {
            let decay = KEEP_FLOWS.powi(steps);
            // Sum of the decayed steps.
            self.span = self.span * decay + STEP.as_secs_f64() * (1.0 - decay) / (1.0 - KEEP_FLOWS);
            for bin in &mut self.bins {
                bin.count *= decay;
                bin.bytes *= decay;
                bin.squares *= decay;
            }
        }
        if self.bins.is_empty() {
            self.bins.resize(u64::BITS as usize, Bin::default());
        }
        let size = size.max(1);
        let bytes = size as f64;
        let bin = &mut self.bins[size.ilog2() as usize];
        bin.count += 1.0;
        bin.bytes += bytes;
        bin.squares += bytes * bytes;
    }

    /// Returns the arrivals of flows of at most `largest` bytes. The bin that contains `largest` counts if its mean
    /// does not exceed it. `None` in the first step.
    pub(super) fn below(&self, largest: u64) -> Option<Arrivals> {
        if self.span <= 0.0 {
            return None;
        }
        let inside = |bin: &&Bin| bin.count > 0.0 && bin.bytes <= largest as f64 * bin.count * ROUNDING;
        let (mut count, mut bytes, mut squares) = (0.0, 0.0, 0.0);
        for bin in self.bins.iter().filter(inside) {
            count += bin.count;
            bytes += bin.bytes;
            squares += bin.squares;
        }
        if count <= 0.0 {
            return Some(Arrivals::default());
        }
        Some(Arrivals {
            rate: count / self.span,
            mean: bytes / count,
            square: squares / count,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn meter_keeps_highest_rate_and_recent_losses() {
        let mut meter = PathMeter::default();
        for step in 0..20 {
            meter.on_delivery(at(step * 50), 500_000, 0);
        }
        assert!((meter.rate() - 10e6).abs() < 1.0, "{}", meter.rate());
        assert_eq!(meter.loss(), 0.0);
        // About two thirds of 7000 segments remain, plus the assumed 1000.
        meter.on_delivery(at(1000), 980_000, 70);
        let loss = meter.loss();
        assert!(loss > 0.009 && loss < 0.013, "{loss}");
        // After two idle seconds the rate remains, and the losses decay.
        meter.on_delivery(at(3000), 1, 0);
        assert!(meter.rate() > 9e6 && meter.loss() < loss);
    }

    #[test]
    fn arrivals_report_rate_and_moments() {
        let mut meter = ArrivalMeter::default();
        assert_eq!(meter.below(u64::MAX), None);
        for flow in 0..4000_u64 {
            meter.on_flow(at(flow * 2), if flow % 10 == 0 { 1_000_000 } else { 10_000 });
        }
        let all = meter.below(u64::MAX).unwrap();
        assert!((all.rate - 500.0).abs() < 10.0, "{all:?}");
        let mice = meter.below(100_000).unwrap();
        assert!((mice.rate - 450.0).abs() < 10.0, "{mice:?}");
        assert!(
            (mice.mean - 1e4).abs() < 1e-3 && (mice.square - 1e8).abs() < 1.0,
            "{mice:?}"
        );
    }
}
