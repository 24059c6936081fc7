//! Fairness of allocations: Jain's index and max-min fair shares.

mod water;

pub use water::max_min_shares;

/// Returns Jain's fairness index of allocations: 1 if all are equal, 1/n if one of n has everything
/// (Jain, Chiu and Hawe, DEC-TR-301, 1984). `None` without an allocation above 0.
#[must_use]
pub fn jain(allocations: &[f64]) -> Option<f64> {
    let sum: f64 = allocations.iter().sum();
    let squares: f64 = allocations.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (allocations.len() as f64 * squares))
}

/// The demand of a flow: the links that it crosses, and its maximum rate.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowDemand {
    /// Indices of links.
    pub links: Vec<usize>,
    /// Maximum rate; infinite for a flow without an application limit.
    pub limit: f64,
}

/// Returns the distance of allocations from the max-min fair shares: the sum of all differences over the sum of the
/// shares.
/// `None` if no share is finite and above 0.
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

    fn demand(links: &[usize]) -> FlowDemand {
        FlowDemand {
            links: links.to_vec(),
            limit: f64::INFINITY,
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
        let demands: Vec<FlowDemand> = (1..6).map(|access| demand(&[0, access])).collect();
        assert_eq!(
            max_min_shares(&capacities, &demands),
            [5.0, 10.0, 10.0, 10.0, 10.0]
        );
    }

    #[test]
    fn water_fills_a_parking_lot() {
        // As in Bertsekas and Gallager, figure 6.13: a long flow shares each hop with a short one.
        let demands = [demand(&[0, 1, 2]), demand(&[0]), demand(&[1]), demand(&[2])];
        assert_eq!(max_min_shares(&[10.0, 4.0, 10.0], &demands), [2.0, 8.0, 2.0, 8.0]);
    }

    #[test]
    fn a_demand_leaves_the_rest_to_others() {
        let small = FlowDemand {
            links: vec![0],
            limit: 1.0,
        };
        assert_eq!(
            max_min_shares(&[10.0], &[small, demand(&[0]), demand(&[0])]),
            [1.0, 4.5, 4.5]
        );
        assert_eq!(max_min_shares(&[f64::INFINITY], &[demand(&[0])]), [f64::INFINITY]);
    }

    #[test]
    fn distance_is_the_misallocated_share() {
        assert_eq!(max_min_distance(&[5.0, 5.0], &[5.0, 5.0]), Some(0.0));
        assert_eq!(max_min_distance(&[8.0, 2.0], &[5.0, 5.0]), Some(0.6));
        assert_eq!(max_min_distance(&[], &[]), None);
    }

    proptest! {
        /// The definition: feasible, and every flow reaches its limit or crosses a full link on which no other flow has
        /// more.
        #[test]
        fn shares_are_max_min_fair(
            capacities in prop::collection::vec(0.5_f64..100.0, 1..6),
            flows in prop::collection::vec((prop::collection::btree_set(0_usize..6, 1..4), 0.1_f64..80.0, any::<bool>()), 1..10),
        ) {
            let demands: Vec<FlowDemand> = flows.into_iter().map(|(links, limit, is_unlimited)| FlowDemand {
                links: links.into_iter().map(|link| link % capacities.len()).collect::<std::collections::BTreeSet<_>>().into_iter().collect(),
                limit: if is_unlimited { f64::INFINITY } else { limit },
            }).collect();
            let shares = max_min_shares(&capacities, &demands);
            let load = |link: usize| -> f64 {
                demands.iter().zip(&shares).filter(|(demand, _)| demand.links.contains(&link)).map(|(_, share)| share).sum()
            };
            for (link, capacity) in capacities.iter().enumerate() {
                prop_assert!(load(link) <= capacity * (1.0 + 1e-9));
            }
            for (demand, &share) in demands.iter().zip(&shares) {
                let is_satisfied = share >= demand.limit * (1.0 - 1e-9);
                let is_bottlenecked = demand.links.iter().any(|&link| {
                    let is_full = load(link) >= capacities[link] * (1.0 - 1e-9);
                    let most = demands.iter().zip(&shares).filter(|(other, _)| other.links.contains(&link)).map(|(_, s)| *s).fold(0.0, f64::max);
                    is_full && share >= most * (1.0 - 1e-9)
                });
                prop_assert!(is_satisfied || is_bottlenecked, "{:?} {:?} {:?}", capacities, demands, shares);
            }
        }
    }
}
