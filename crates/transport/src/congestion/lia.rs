//! LIA, linked increases (RFC 6356; D. Wischik, C. Raiciu, A. Greenhalgh and M. Handley, "Design, implementation and
//! evaluation of congestion control for multipath TCP", 2011; "RTT compensator"): the subflows of a connection
//! together grow as one Reno flow on their best path, each in proportion to its window. Slow start and loss response
//! are those of Reno.
//!
//! Parameters: those of Reno.

use super::coupled::{CoupledGains, CoupledSettings, Coupling};
use super::siblings::Siblings;

/// Linked increases of a multipath connection's windows (RFC 6356); Reno with a single subflow.
pub type LiaSettings = CoupledSettings<Lia>;

/// Coupling of [`LiaSettings`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lia;

/// Returns alpha of RFC 6356, section 3, and the sum of all windows in bytes; `None` if no subflow has a round-trip
/// sample.
///
/// alpha = total * max(window_i / rtt_i^2) / (sum window_i / rtt_i)^2, independent of the unit of time.
#[must_use]
pub fn alpha(siblings: &Siblings<'_>) -> Option<(f64, f64)> {
    let (mut total, mut best, mut rate) = (0.0, 0.0_f64, 0.0);
    for sibling in siblings.measured() {
        let (window, rtt) = (sibling.window as f64, sibling.rtt.as_nanos() as f64);
        total += window;
        best = best.max(window / (rtt * rtt));
        rate += window / rtt;
    }
    (rate > 0.0).then(|| (total * best / (rate * rate), total))
}

impl Coupling for Lia {
    /// RFC 6356, section 3, in packets per packet: min(alpha / total, 1 / window). A loss halves the window.
    fn gains(siblings: &Siblings<'_>, segment: u64) -> CoupledGains {
        let window = siblings.own().window.max(1) as f64;
        let alone = segment as f64 / window;
        let linked = alpha(siblings).map_or(alone, |(alpha, total)| alpha * segment as f64 / total);
        CoupledGains {
            increase: linked.min(alone),
            beta: 0.5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::tests::{ack, loss};
    use crate::congestion::{ControllerSettings, Sibling};
    use foundation::{Duration, Instant};

    fn sibling(window: u64, rtt_ms: u64) -> Sibling {
        Sibling {
            window,
            rtt: Duration::from_millis(rtt_ms),
            ..Sibling::default()
        }
    }

    fn alpha_of(all: &[Sibling]) -> f64 {
        alpha(&Siblings { all, own_index: 0 }).unwrap().0
    }

    #[test]
    fn alpha_matches_rfc_6356() {
        // Worked by hand from RFC 6356, section 3. Two equal subflows: 2w (w/r²) / (2w/r)² = 1/2, so that both
        // together grow as one Reno flow.
        assert!((alpha_of(&[sibling(10_000, 100), sibling(10_000, 100)]) - 0.5).abs() < 1e-12);
        // Single: w (w/r²) / (w/r)² = 1.
        assert!((alpha_of(&[sibling(7000, 30)]) - 1.0).abs() < 1e-12);
        // 20 kB at 10 ms and 40 kB at 40 ms: 60 * (20/100) / (20/10 + 40/40)^2 = 12/9.
        assert!((alpha_of(&[sibling(20_000, 10), sibling(40_000, 40)]) - 12.0 / 9.0).abs() < 1e-12);
        // A fast path with a small window and a slow one with a large window: 11 × (1/100) / (1/10 + 10/1000)² =
        // 9.09.
        assert!((alpha_of(&[sibling(1000, 10), sibling(10_000, 1000)]) - 0.11 / 0.0121).abs() < 1e-9);
        let silent = Sibling {
            window: 10_000,
            ..Sibling::default()
        };
        assert!(
            (alpha_of(&[sibling(7000, 30), silent]) - 1.0).abs() < 1e-12,
            "no sample yet"
        );
    }

    fn gains(all: &[Sibling]) -> CoupledGains {
        Lia::gains(&Siblings { all, own_index: 0 }, 1000)
    }

    #[test]
    fn equal_subflows_share_one_increase() {
        // alpha = 1/2 over 80 packets: a quarter of a packet per round trip in a window of 40, so that both grow by
        // half a packet, as much in relation to twice the window as one flow.
        assert!((gains(&[sibling(40_000, 100), sibling(40_000, 100)]).increase * 40.0 - 0.25).abs() < 1e-12);
    }

    #[test]
    fn increase_is_at_most_that_of_reno() {
        // 40 packets at 100 ms, 10 at 10 ms: alpha = 50 × (10/100) / (40/100 + 10/10)² = 2.551, over 50 packets 0.051
        // per packet, where Reno has 1/40.
        let all = [sibling(40_000, 100), sibling(10_000, 10)];
        assert!((alpha_of(&all) - 5.0 / 1.96).abs() < 1e-12);
        assert!((gains(&all).increase - 1.0 / 40.0).abs() < 1e-12);
        // The fast subflow: 0.051 is less than its 1/10.
        let fast = Lia::gains(
            &Siblings {
                all: &all,
                own_index: 1,
            },
            1000,
        );
        assert!((fast.increase - 0.1 / 1.96).abs() < 1e-12);
        assert!((fast.beta - 0.5).abs() < 1e-12);
    }

    #[test]
    fn window_grows_by_coupled_gain() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let growth = |others: &[Sibling]| {
            let mut settings = LiaSettings::default();
            settings.reno.initial_window = 80;
            let mut lia = settings.build(1000);
            lia.on_lost(&loss(at(10), at(5), 80_000));
            assert_eq!(lia.window(), 40_000, "a loss halves: RFC 6356, section 3");
            let all = [&[sibling(40_000, 100)], others].concat();
            lia.on_siblings(&Siblings {
                all: &all,
                own_index: 0,
            });
            for _ in 0..4 * 40 {
                lia.on_acknowledged(&ack(at(100), 1000));
            }
            lia.window() - 40_000
        };
        assert_eq!(growth(&[sibling(40_000, 100)]), 1000, "four quarters of a packet");
        assert!((3000..=4000).contains(&growth(&[])), "a single subflow is Reno");
    }
}
