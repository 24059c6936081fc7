//! What a host measures of its paths and of the flows that it opens: averages that forget, in steps of virtual or real time.

use foundation::{Duration, Instant};

/// The step in which averages move.
const STEP: Duration = Duration::from_millis(100);
/// What a step leaves of a path's losses: half of them are forgotten after 1.4 s.
const KEEP_LOSS: f64 = 0.95;
/// What a step without a higher one leaves of the highest rate: half after 4.4 s.
const KEEP_RATE: f64 = 63.0 / 64.0;
/// What a step leaves of the flows that began: half after 3.4 s.
const KEEP_FLOWS: f64 = 0.98;
/// After so many steps nothing is left to forget.
const ALL: u64 = 1000;
/// Bytes of a segment, where losses are counted in segments and deliveries in bytes.
const SEGMENT: f64 = 1400.0;
/// Segments without a loss that a path is taken to have carried before anything is known of it.
const PRIOR: f64 = 1000.0;
/// Sums of equal sizes come out a little above their number times the size.
const ROUNDING: f64 = 1.0 + 1e-9;

/// Whole steps between two moments; moves the earlier one by as many.
fn steps(from: &mut Instant, now: Instant) -> u64 {
    let steps = (now - *from).as_nanos() / STEP.as_nanos();
    *from += STEP * steps;
    steps
}

/// What all connections of the host together bring over a path, and lose on it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PathMeter {
    since: Instant,
    /// Bytes in the step that is not over.
    bytes: u64,
    rate: f64,
    carried: f64,
    lost: f64,
}

impl PathMeter {
    /// `bytes` were acknowledged, and `lost` segments taken for lost.
    pub(super) fn on_delivery(&mut self, now: Instant, bytes: u64, lost: u64) {
        let steps = steps(&mut self.since, now).min(ALL);
        if steps > 0 {
            let measured = self.bytes as f64 / (STEP * steps).as_secs_f64();
            self.bytes = 0;
            self.rate = measured.max(self.rate * KEEP_RATE);
            let left = KEEP_LOSS.powi(steps as i32);
            self.carried *= left;
            self.lost *= left;
        }
        self.bytes += bytes;
        self.carried += bytes as f64 / SEGMENT;
        self.lost += lost as f64;
    }

    /// The highest rate of late, bytes a second; 0 before anything was brought.
    pub(super) const fn rate(&self) -> f64 {
        self.rate
    }

    /// The share of segments that are lost, of late.
    pub(super) const fn loss(&self) -> f64 {
        self.lost / (self.lost + self.carried + PRIOR)
    }
}

/// Flows that begin: how many a second, and how large.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Arrivals {
    /// Flows a second.
    pub rate: f64,
    /// Their mean size in bytes.
    pub mean: f64,
    /// The mean square of their size, in bytes squared.
    pub square: f64,
}

/// Flows whose sizes are between two powers of two.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    count: f64,
    bytes: f64,
    squares: f64,
}

/// Counts flows that begin, by size.
#[derive(Clone, Debug, Default)]
pub(super) struct ArrivalMeter {
    since: Option<Instant>,
    /// Time that the counts stand for, in seconds.
    span: f64,
    bins: Vec<Bin>,
}

impl ArrivalMeter {
    pub(super) fn on_flow(&mut self, now: Instant, size: u64) {
        let since = self.since.get_or_insert(now);
        let steps = steps(since, now).min(ALL) as i32;
        if steps > 0 {
            let left = KEEP_FLOWS.powi(steps);
            // The sum of what each of these steps leaves.
            self.span = self.span * left + STEP.as_secs_f64() * (1.0 - left) / (1.0 - KEEP_FLOWS);
            for bin in &mut self.bins {
                bin.count *= left;
                bin.bytes *= left;
                bin.squares *= left;
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

    /// Flows of at most `largest` bytes; those of a bin in which that lies count by their mean. `None` in the first
    /// step.
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
    fn a_path_has_its_highest_rate_and_its_losses_of_late() {
        let mut meter = PathMeter::default();
        for step in 0..20 {
            meter.on_delivery(at(step * 50), 500_000, 0);
        }
        assert!((meter.rate() - 10e6).abs() < 1.0, "{}", meter.rate());
        assert_eq!(meter.loss(), 0.0);
        // Of some 7000 segments two thirds are remembered, beside the 1000 that are taken for granted.
        meter.on_delivery(at(1000), 980_000, 70);
        let loss = meter.loss();
        assert!(loss > 0.009 && loss < 0.013, "{loss}");
        // Idle for two seconds: the rate is remembered, the losses fade.
        meter.on_delivery(at(3000), 1, 0);
        assert!(meter.rate() > 9e6 && meter.loss() < loss);
    }

    #[test]
    fn arrivals_have_moments() {
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
