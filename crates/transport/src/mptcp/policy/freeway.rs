//! Freeway (W. Wang, Y. Sun, K. Salamatian and Z. Li, "Adaptive path isolation for elephant and mice flows by
//! exploiting path diversity in datacenters", IEEE TNSM 13(1), 2016): reserves as many low-latency paths for mice as
//! an M/G/1 queue needs to keep its delay below a bound, and balances elephants over the other paths.
//!
//! The paper assigns paths in switches and derives the bound from a deadline that 99 % of the mice meet. Here the
//! host decides for its own flows, given the mice that it opened recently, and the bound of the mean queueing delay
//! is a setting. Only the abstract of the paper was available.

use foundation::{Duration, Generator, Problem, Size};
use rand::Rng as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConnectionPlan, HostPaths, PathIndex, PathPolicy, PolicySettings, RttSource};
use crate::mptcp::Arrivals;

/// Low-latency paths for short flows, the others for long flows (Freeway, TNSM 2016).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Freeway {
    /// Largest size of a mouse. Default: "800kB".
    pub mice: Size,
    /// Maximum mean queueing delay of mice on a path. Default: "2ms".
    pub delay: Duration,
    /// Number of paths of an elephant, at least 1: those with the fewest unfinished bytes. Default: 64, all that are not for mice.
    #[schemars(range(min = 1, max = 64))]
    pub elephant_paths: u32,
}

impl Default for Freeway {
    fn default() -> Self {
        Self {
            mice: Size::from_bytes(800_000),
            delay: Duration::from_millis(2),
            elephant_paths: 64,
        }
    }
}

impl PolicySettings for Freeway {
    fn validate(&self) -> Vec<Problem> {
        let paths = self.elephant_paths;
        let problems = [
            Problem::range("delay", 0, !self.delay.is_zero(), "above 0"),
            Problem::range("elephant_paths", paths, (1..=64).contains(&paths), "1 to 64"),
        ];
        problems.into_iter().flatten().collect()
    }

    fn build(&self) -> Box<dyn PathPolicy> {
        Box::new(self.clone())
    }
}

/// Returns the mean queueing delay in seconds of an M/G/1 queue (Pollaczek and Khinchine): arrival rate × mean
/// squared service time / (2 (1 - load)), for flows over a path of `rate` bytes/s; infinite under overload.
fn mean_wait(flows: &Arrivals, rate: f64) -> f64 {
    let load = flows.rate * flows.mean / rate;
    if load >= 1.0 {
        return f64::INFINITY;
    }
    flows.rate * flows.square / (rate * rate) / (2.0 * (1.0 - load))
}

impl Freeway {
    /// Returns the number of leading paths of `order` reserved for mice: at least one, leaving one for elephants.
    fn lanes(&self, host: &HostPaths, order: &[PathIndex]) -> usize {
        let max = order.len().saturating_sub(1).max(1);
        let Some(mice) = host.arrivals(self.mice.bytes()) else {
            return 1;
        };
        // Mice are distributed evenly, so that the slowest of their paths is decisive.
        let meets_bound = |&count: &usize| {
            let each = Arrivals {
                rate: mice.rate / count as f64,
                ..mice
            };
            order[..count].iter().all(|path| {
                let rate = host.paths()[path.index()].rate();
                rate <= 0.0 || mean_wait(&each, rate) <= self.delay.as_secs_f64()
            })
        };
        (1..=max).find(meets_bound).unwrap_or(max)
    }
}

impl PathPolicy for Freeway {
    fn open(&mut self, size: Option<u64>, host: &HostPaths, random: &mut Generator) -> ConnectionPlan {
        let order = host.sorted_by(|path| RttSource::Base.of(path));
        let lanes = self.lanes(host, &order);
        if size.is_some_and(|size| size <= self.mice.bytes()) {
            let lane = (random.next_u64() % lanes as u64) as usize;
            let mut opening = ConnectionPlan::over([order[lane]]);
            opening.short = true;
            return opening;
        }
        let mut rest = order[lanes.min(order.len() - 1)..].to_vec();
        rest.sort_by_key(|path| host.paths()[path.index()].unfinished);
        rest.truncate(self.elephant_paths as usize);
        ConnectionPlan::over(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foundation::{Instant, Streams};

    /// At half load, M/D/1 waits half a service time and M/M/1 a whole one.
    #[test]
    fn mean_wait_matches_pollaczek_khinchine() {
        let flows = |square| Arrivals {
            rate: 50.0,
            mean: 1000.0,
            square,
        };
        assert!((mean_wait(&flows(1e6), 100_000.0) - 0.005).abs() < 1e-12);
        assert!((mean_wait(&flows(2e6), 100_000.0) - 0.010).abs() < 1e-12);
        assert!(mean_wait(&flows(1e6), 50_000.0).is_infinite());
    }

    fn open(host: &HostPaths, size: u64, draw: u64) -> Vec<u8> {
        let mut random = Streams::new(draw, 0).stream("paths");
        let opening = Freeway::default().open(Some(size), host, &mut random);
        let joins = opening.joins.iter().map(|join| join.path.0);
        std::iter::once(opening.first.0).chain(joins).collect()
    }

    #[test]
    fn mice_get_enough_paths_for_the_delay_bound() {
        let mut host = HostPaths::new([40, 20, 30, 50].map(Duration::from_millis));
        assert_eq!(open(&host, 50_000, 1), [1], "the fastest");
        assert_eq!(open(&host, 10_000_000, 1), [2, 0, 3], "the others");
        let at = |step: u64| Instant::from_nanos(step * 1_000_000);
        for step in 0..2000 {
            host.on_flow(at(step), 20_000);
            for path in 0..4 {
                host.on_delivery(PathIndex(path), at(step), 12_500, 0);
            }
        }
        // 1000/s × 20 kB over 12.5 MB/s: one path is overloaded; over two the delay is 500 × 1.6 ms² / (2 × 0.2) =
        // 3.2 ms, over three 333.3 × 1.6 ms² / (2 × 0.467) = 0.91 ms.
        assert_eq!(open(&host, 10_000_000, 1), [3]);
        let lanes: std::collections::BTreeSet<Vec<u8>> = (0..40).map(|n| open(&host, 50_000, n)).collect();
        assert_eq!(lanes, [vec![0], vec![1], vec![2]].into());
    }

    #[test]
    fn elephants_prefer_paths_with_least_unfinished_bytes() {
        let mut host = HostPaths::new([20, 30, 40, 50].map(Duration::from_millis));
        host.path_mut(PathIndex(1)).unwrap().unfinished = 5_000_000;
        assert_eq!(open(&host, 10_000_000, 1), [2, 3, 1]);
    }
}
