//! How fairly flows share a network.

mod water;

pub use water::max_min_shares;

/// Jain's fairness index of allocations: 1 where all are equal, 1/n where one has all
/// (Jain, Chiu and Hawe, DEC-TR-301, 1984). `None` without an allocation above 0.
#[must_use]
pub fn jain(allocations: &[f64]) -> Option<f64> {
    let sum: f64 = allocations.iter().sum();
    let squares: f64 = allocations.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (allocations.len() as f64 * squares))
}

/// A flow's claim on a network: the links that it crosses, and the most that it can use.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowDemand {
    /// Indices of links.
    pub links: Vec<usize>,
    /// The most that it asks for; infinite for a flow that takes all it gets.
    pub demand: f64,
}

/// How far allocations are from the max-min fair ones: the sum of all differences over the sum of the shares.
/// `None` where no share is finite and above 0.
#[must_use]
pub fn max_min_distance(allocations: &[f64], shares: &[f64]) -> Option<f64> {
    let whole: f64 = shares.iter().sum();
    let apart: f64 = allocations.iter().zip(shares).map(|(x, m)| (x - m).abs()).sum();
    (whole > 0.0 && whole.is_finite()).then(|| apart / whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn claim(links: &[usize]) -> FlowDemand {
        FlowDemand {
            links: links.to_vec(),
            demand: f64::INFINITY,
        }
    }

    #[test]
    fn jain_index_of_equal_and_exclusive_shares() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
        // Jain, Chiu and Hawe, section 3: k of n users with equal shares, the rest with none: k / n.
        assert_eq!(jain(&[2.0, 2.0, 2.0, 0.0, 0.0]), Some(0.6));
        assert_eq!(jain(&[0.0]), None);
    }

    #[test]
    fn water_fills_a_bottleneck_behind_access_links() {
        // Access links of 5, 10, 15, 20 and 25 before a bottleneck of 45: 5, then (45 - 5) / 4 = 10 for all others.
        let capacities = [45.0, 5.0, 10.0, 15.0, 20.0, 25.0];
        let claims: Vec<FlowDemand> = (1..6).map(|access| claim(&[0, access])).collect();
        assert_eq!(
            max_min_shares(&capacities, &claims),
            [5.0, 10.0, 10.0, 10.0, 10.0]
        );
    }

    #[test]
    fn water_fills_a_parking_lot() {
        // Bertsekas and Gallager, figure 6.13's idea: a long flow over all hops shares each with a short one.
        let claims = [claim(&[0, 1, 2]), claim(&[0]), claim(&[1]), claim(&[2])];
        assert_eq!(max_min_shares(&[10.0, 4.0, 10.0], &claims), [2.0, 8.0, 2.0, 8.0]);
    }

    #[test]
    fn a_demand_leaves_the_rest_to_others() {
        let small = FlowDemand {
            links: vec![0],
            demand: 1.0,
        };
        assert_eq!(
            max_min_shares(&[10.0], &[small, claim(&[0]), claim(&[0])]),
            [1.0, 4.5, 4.5]
        );
        assert_eq!(max_min_shares(&[f64::INFINITY], &[claim(&[0])]), [f64::INFINITY]);
    }

    #[test]
    fn distance_is_the_misallocated_share() {
        assert_eq!(max_min_distance(&[5.0, 5.0], &[5.0, 5.0]), Some(0.0));
        assert_eq!(max_min_distance(&[8.0, 2.0], &[5.0, 5.0]), Some(0.6));
        assert_eq!(max_min_distance(&[], &[]), None);
    }

    proptest! {
        /// The definition: feasible, and nobody can gain without taking from one who has no more
        /// (every flow meets its demand, or crosses a full link on which nobody has more).
        #[test]
        fn shares_are_max_min_fair(
            capacities in prop::collection::vec(0.5_f64..100.0, 1..6),
            flows in prop::collection::vec((prop::collection::btree_set(0_usize..6, 1..4), 0.1_f64..80.0, any::<bool>()), 1..10),
        ) {
            let claims: Vec<FlowDemand> = flows.into_iter().map(|(links, demand, wants_all)| FlowDemand {
                links: links.into_iter().map(|link| link % capacities.len()).collect::<std::collections::BTreeSet<_>>().into_iter().collect(),
                demand: if wants_all { f64::INFINITY } else { demand },
            }).collect();
            let shares = max_min_shares(&capacities, &claims);
            let load = |link: usize| -> f64 {
                claims.iter().zip(&shares).filter(|(claim, _)| claim.links.contains(&link)).map(|(_, share)| share).sum()
            };
            for (link, capacity) in capacities.iter().enumerate() {
                prop_assert!(load(link) <= capacity * (1.0 + 1e-9));
            }
            for (claim, &share) in claims.iter().zip(&shares) {
                let is_satisfied = share >= claim.demand * (1.0 - 1e-9);
                let is_held = claim.links.iter().any(|&link| {
                    let is_full = load(link) >= capacities[link] * (1.0 - 1e-9);
                    let most = claims.iter().zip(&shares).filter(|(other, _)| other.links.contains(&link)).map(|(_, s)| *s).fold(0.0, f64::max);
                    is_full && share >= most * (1.0 - 1e-9)
                });
                prop_assert!(is_satisfied || is_held, "{:?} {:?} {:?}", capacities, claims, shares);
            }
        }
    }
}
