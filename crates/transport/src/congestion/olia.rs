//! OLIA, the opportunistic linked-increases algorithm (R. Khalili, N. Gast, M. Popovic, U. Upadhyay and J.-Y. Le
//! Boudec, "MPTCP is not Pareto-optimal: performance issues and a possible solution", CoNEXT 2012;
//! draft-khalili-mptcp-congestion-control-05): traffic keeps off congested paths as far as the optimum asks,
//! and windows lean towards the best paths that are not used to their full, so that it answers to change.

use super::coupled::{CoupledGains, CoupledSettings, Coupling, rate};
use super::siblings::{Sibling, Siblings};

/// Settings of OLIA.
pub type OliaSettings = CoupledSettings<Olia>;

/// OLIA: couples subflows so that they leave congested paths.
#[derive(Clone, Copy, Debug, Default)]
pub struct Olia;

/// What a path promises: the rate of a TCP there is the root of twice this, where the bytes between two losses
/// are the inverse of their probability (section 5.1 of the paper).
fn quality(sibling: &Sibling) -> f64 {
    let rtt = sibling.rtt.as_nanos() as f64;
    sibling.between_losses as f64 / (rtt * rtt)
}

/// The paths of the largest window, in whole packets, and the best ones that are not among them.
struct Paths {
    count: usize,
    largest: u64,
    largest_count: usize,
    best: f64,
    /// The best paths without the largest window: the "collected" ones of the draft.
    collected: usize,
}

impl Paths {
    fn new(siblings: &Siblings<'_>, segment: u64) -> Self {
        let largest = siblings.measured().map(|s| s.window / segment).max().unwrap_or(0);
        let best = siblings.measured().map(quality).fold(0.0, f64::max);
        let mut paths = Self {
            count: 0,
            largest,
            largest_count: 0,
            best,
            collected: 0,
        };
        for sibling in siblings.measured() {
            paths.count += 1;
            if sibling.window / segment == largest {
                paths.largest_count += 1;
            } else if quality(sibling) >= best {
                paths.collected += 1;
            }
        }
        paths
    }

    /// alpha of the draft's section 3: what moves windows from the largest to the best.
    fn lean(&self, own: &Sibling, segment: u64) -> f64 {
        if self.collected == 0 {
            return 0.0;
        }
        if own.window / segment == self.largest {
            return -1.0 / (self.count * self.largest_count) as f64;
        }
        if quality(own) >= self.best {
            return 1.0 / (self.count * self.collected) as f64;
        }
        0.0
    }
}

impl Coupling for Olia {
    /// Draft, section 3: a path that is no good need not carry two packets a round trip.
    const MIN_SSTHRESH: u64 = 1;

    /// Draft, section 3: (w / rtt^2) / (sum of w / rtt)^2 + alpha / w, with windows in packets.
    fn gains(siblings: &Siblings<'_>, segment: u64) -> CoupledGains {
        let own = siblings.own();
        let total: f64 = siblings.measured().map(rate).sum();
        let linked = rate(own) / (own.rtt.as_nanos() as f64 * total * total);
        let lean = Paths::new(siblings, segment).lean(own, segment) / own.window.max(1) as f64;
        CoupledGains {
            increase: segment as f64 * (linked + lean),
            beta: 0.5,
        }
    }
}

#[cfg(test)]
mod tests {
    use foundation::Duration;

    use super::*;

    /// A path with a window in packets of 1000 bytes, a round-trip time in ms, and kilobytes between losses.
    fn path(window: u64, rtt: u64, between_losses: u64) -> Sibling {
        Sibling {
            window: window * 1000,
            rtt: Duration::from_millis(rtt),
            base_rtt: Duration::from_millis(rtt),
            between_losses: between_losses * 1000,
        }
    }

    /// Packets of growth for 1000 acknowledged, of each path.
    fn increases(all: &[Sibling]) -> Vec<f64> {
        let link = |own_index| Olia::gains(&Siblings { all, own_index }, 1000).increase;
        (0..all.len())
            .map(|own_index| (link(own_index) * 1e9).round() / 1e6)
            .collect()
    }

    /// By hand from the draft's section 3. Rates are 10 / 0.1 s = 100 and 5 / 0.05 s = 100 packets/s, the square of
    /// their sum 40,000; 10 / 0.1^2 = 1000 and 5 / 0.05^2 = 2000.
    #[test]
    fn increases_are_linked() {
        // The path of the largest window is the best one too (10 / 0.1^2 above 2 / 0.05^2): nothing leans.
        assert_eq!(increases(&[path(10, 100, 10), path(5, 50, 2)]), [25.0, 50.0]);
        // The other one is the best: 1/2 / 5 more for it, 1/2 / 10 less for the largest, which then shrinks.
        assert_eq!(
            increases(&[path(10, 100, 10), path(5, 50, 10)]),
            [25.0 - 50.0, 50.0 + 100.0]
        );
    }

    /// Windows of 10, 10 and 4 over 100 ms: 24 packets, 576 their square, so 10/576 and 4/576 a packet. Only the
    /// third is best: 1/3 / 4 for it, 1/6 / 10 from each of the two largest.
    #[test]
    fn what_the_best_gain_the_largest_give() {
        let found = increases(&[path(10, 100, 5), path(10, 100, 5), path(4, 100, 9)]);
        let expected = [
            10.0 / 576.0 - 1.0 / 60.0,
            10.0 / 576.0 - 1.0 / 60.0,
            4.0 / 576.0 + 1.0 / 12.0,
        ];
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected * 1e3).abs() < 1e-3, "{found} {expected}");
        }
        // A round trip's leaning moves windows from some to others and is no growth: it sums to nought.
        let windows = [10.0, 10.0, 4.0];
        let lean: f64 = found
            .iter()
            .zip(windows)
            .map(|(increase, window)| (increase / 1e3 - window / 576.0) * window)
            .sum();
        assert!(lean.abs() < 1e-6, "{lean}");
    }

    /// No path leans while the best ones have the largest windows, whichever it is of equals: no flapping.
    #[test]
    fn equals_do_not_lean() {
        assert_eq!(increases(&[path(10, 100, 7), path(10, 100, 7)]), [25.0, 25.0]);
        // Neither best nor largest: linked growth alone, 4 / 24^2.
        let found = increases(&[path(10, 100, 9), path(10, 100, 5), path(4, 100, 5)]);
        assert_eq!(found[2], 6.944_444);
    }

    /// Alone a subflow grows as Reno does: a packet a window.
    #[test]
    fn one_path_is_reno() {
        assert_eq!(increases(&[path(8, 30, 3)]), [125.0]);
        // One without a sample does not count.
        assert_eq!(increases(&[path(8, 30, 3), path(10, 0, 0)])[0], 125.0);
    }
}
