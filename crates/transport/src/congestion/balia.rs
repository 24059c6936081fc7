//! BALIA, balanced linked adaptation (Q. Peng, A. Walid, J. Hwang and S. H. Low, "Multipath TCP: analysis, design,
//! and implementation", IEEE/ACM Transactions on Networking 24 (1), 2016; draft-walid-mptcp-congestion-control-04):
//! friendly to single-path TCP and responsive to changes.
//!
//! Parameters: those of Reno.

use super::coupled::{CoupledGains, CoupledSettings, Coupling, rate};
use super::siblings::Siblings;

/// Settings of BALIA.
pub type BaliaSettings = CoupledSettings<Balia>;

/// Limit of alpha in the loss response.
const MAX_LOSS_ALPHA: f64 = 1.5;

/// BALIA: couples growth and reductions of subflows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Balia;

impl Coupling for Balia {
    /// Draft, section 3.
    const MIN_SSTHRESH: u64 = 1;

    /// Draft, section 3: with x = w / rtt and alpha = max x / x an ACK adds x / (rtt (sum of x)^2) times
    /// (1 + alpha) / 2 times (4 + alpha) / 5, and a loss takes w / 2 times min(alpha, 1.5).
    fn gains(siblings: &Siblings<'_>, segment: u64) -> CoupledGains {
        let own = siblings.own();
        let rate_of_own = rate(own);
        let (mut total, mut most) = (0.0, 0.0);
        for sibling in siblings.measured() {
            let rate = rate(sibling);
            total += rate;
            most = f64::max(most, rate);
        }
        let alpha = most / rate_of_own;
        let linked = rate_of_own / (own.rtt.as_nanos() as f64 * total * total);
        CoupledGains {
            increase: segment as f64 * linked * (1.0 + alpha) / 2.0 * (4.0 + alpha) / 5.0,
            beta: 1.0 - alpha.min(MAX_LOSS_ALPHA) / 2.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use foundation::Duration;

    use super::*;
    use crate::congestion::Sibling;

    fn path(window: u64, rtt: u64) -> Sibling {
        Sibling {
            window: window * 1000,
            rtt: Duration::from_millis(rtt),
            ..Sibling::default()
        }
    }

    fn links(all: &[Sibling]) -> Vec<(f64, f64)> {
        let link = |own_index| Balia::gains(&Siblings { all, own_index }, 1000);
        (0..all.len())
            .map(|own_index| {
                (
                    (link(own_index).increase * 1e9).round() / 1e6,
                    link(own_index).beta,
                )
            })
            .collect()
    }

    /// Worked by hand from the draft's section 3, in packets and seconds, as growth for 1000 packets.
    #[test]
    fn increases_and_decreases_match_draft() {
        // x = 100 and 100, alpha = 1: 100 / 0.1 and 100 / 0.05 over 200^2; a loss takes half.
        assert_eq!(links(&[path(10, 100), path(5, 50)]), [(25.0, 0.5), (50.0, 0.5)]);
        // x = 200 and 100: 2000 / 300^2 each; alpha of the second is 2: times 3/2 times 6/5, and a loss takes
        // half times 1.5.
        assert_eq!(
            links(&[path(20, 100), path(5, 50)]),
            [(22.222_222, 0.5), (40.0, 0.25)]
        );
        // x = 120 and 100, alpha 1.2: 2000 / 220^2 times 1.1 times 1.04; a loss takes 0.6 of the window.
        let (increase, kept) = links(&[path(12, 100), path(5, 50)])[1];
        assert_eq!(increase, 47.272_727);
        assert!((kept - 0.4).abs() < 1e-12);
    }

    /// A single subflow is Reno.
    #[test]
    fn single_path_is_reno() {
        assert_eq!(links(&[path(8, 30)]), [(125.0, 0.5)]);
    }
}
