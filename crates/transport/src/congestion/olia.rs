//! OLIA, the opportunistic linked-increases algorithm (R. Khalili, N. Gast, M. Popovic, U. Upadhyay and J.-Y. Le
//! Boudec, "MPTCP is not Pareto-optimal: performance issues and a possible solution", CoNEXT 2012;
//! draft-khalili-mptcp-congestion-control-05): avoids congested paths as the optimum requires, and shifts window to
//! the best paths that are not fully used, so that it responds to changes.
//!
//! Parameters: those of Reno.

use super::coupled::{CoupledGains, CoupledSettings, Coupling, rate};
use super::siblings::{Sibling, Siblings};

/// Settings of OLIA.
pub type OliaSettings = CoupledSettings<Olia>;

/// OLIA: couples subflows so that they leave congested paths.
#[derive(Clone, Copy, Debug, Default)]
pub struct Olia;

/// Returns the quality of a path: a TCP on it has the rate sqrt(2 × quality), as the bytes between two losses are the
/// inverse of the loss probability (section 5.1 of the paper).
fn quality(sibling: &Sibling) -> f64 {
    let rtt = sibling.rtt.as_nanos() as f64;
    sibling.between_losses as f64 / (rtt * rtt)
}

/// The paths with the largest window in whole packets, and the best paths without it.
struct Paths {
    count: usize,
    largest: u64,
    largest_count: usize,
    best: f64,
    /// Number of best paths without the largest window (the "collected" paths of the draft).
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

    /// Returns alpha of the draft's section 3, which shifts window from the largest to the best paths.
    fn shift(&self, own: &Sibling, segment: u64) -> f64 {
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
    /// Draft, section 3: a bad path need not carry two packets per round trip.
    const MIN_SSTHRESH: u64 = 1;

    /// Draft, section 3: (w / rtt^2) / (sum of w / rtt)^2 + alpha / w, with windows in packets.
    fn gains(siblings: &Siblings<'_>, segment: u64) -> CoupledGains {
        let own = siblings.own();
        let total: f64 = siblings.measured().map(rate).sum();
        let linked = rate(own) / (own.rtt.as_nanos() as f64 * total * total);
        let shift = Paths::new(siblings, segment).shift(own, segment) / own.window.max(1) as f64;
        CoupledGains {
            increase: segment as f64 * (linked + shift),
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

    /// Returns the growth for 1000 acknowledged packets of each path.
    fn increases(all: &[Sibling]) -> Vec<f64> {
        let link = |own_index| Olia::gains(&Siblings { all, own_index }, 1000).increase;
        (0..all.len())
            .map(|own_index| (link(own_index) * 1e9).round() / 1e6)
            .collect()
    }

    /// Worked by hand from the draft's section 3. Rates are 10 / 0.1 s = 100 and 5 / 0.05 s = 100 packets/s, the
    /// square of their sum 40,000; 10 / 0.1² = 1000 and 5 / 0.05² = 2000.
    #[test]
    fn increases_are_coupled() {
        // The path with the largest window is also the best (10 / 0.1² above 2 / 0.05²): no shift.
        assert_eq!(increases(&[path(10, 100, 10), path(5, 50, 2)]), [25.0, 50.0]);
        // The other path is the best: it gains 1/2 / 5, and the largest loses 1/2 / 10 and shrinks.
        assert_eq!(
            increases(&[path(10, 100, 10), path(5, 50, 10)]),
            [25.0 - 50.0, 50.0 + 100.0]
        );
    }

    /// Windows of 10, 10 and 4 over 100 ms: 24 packets, 576 squared, so 10/576 and 4/576 per packet. The third path
    /// is the best: it gains 1/3 / 4, and each of the two largest loses 1/6 / 10.
    #[test]
    fn best_paths_gain_what_largest_lose() {
        let found = increases(&[path(10, 100, 5), path(10, 100, 5), path(4, 100, 9)]);
        let expected = [
            10.0 / 576.0 - 1.0 / 60.0,
            10.0 / 576.0 - 1.0 / 60.0,
            4.0 / 576.0 + 1.0 / 12.0,
        ];
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected * 1e3).abs() < 1e-3, "{found} {expected}");
        }
        // The shifts of one round trip sum to zero.
        let windows = [10.0, 10.0, 4.0];
        let shift: f64 = found
            .iter()
            .zip(windows)
            .map(|(increase, window)| (increase / 1e3 - window / 576.0) * window)
            .sum();
        assert!(shift.abs() < 1e-6, "{shift}");
    }

    /// No shift while the best paths have the largest windows: no flapping.
    #[test]
    fn no_shift_between_equal_paths() {
        assert_eq!(increases(&[path(10, 100, 7), path(10, 100, 7)]), [25.0, 25.0]);
        // Neither best nor largest: coupled growth only, 4 / 24².
        let found = increases(&[path(10, 100, 9), path(10, 100, 5), path(4, 100, 5)]);
        assert_eq!(found[2], 6.944_444);
    }

    /// A single subflow grows as Reno, by one packet per window.
    #[test]
    fn single_path_is_reno() {
        assert_eq!(increases(&[path(8, 30, 3)]), [125.0]);
        // A subflow without a sample does not count.
        assert_eq!(increases(&[path(8, 30, 3), path(10, 0, 0)])[0], 125.0);
    }
}
