//! Max-min fair shares by water-filling.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::FlowDemand;

/// Returns the max-min fair allocation by water-filling (Bertsekas and Gallager, Data Networks, section 6.5.2):
/// all flows grow equally until a link is full or a limit is reached; those flows keep their share, and the others
/// continue to grow. `capacities` are the capacities of the links, in the unit of the result.
///
/// A flow without a finite link and a finite limit gets infinity.
///
/// # Panics
/// If a link does not exist.
#[must_use]
pub fn max_min_shares(capacities: &[f64], demands: &[FlowDemand]) -> Vec<f64> {
    let mut water = WaterFilling::new(capacities, demands);
    while water.rise() {}
    water.shares
}

/// Returns the bits of a positive number or infinity, which have the same order.
fn key(level: f64) -> u64 {
    level.to_bits()
}

/// The state of the algorithm. Each flow and link is visited only when its own level may change, so the total time is
/// proportional to the number of links that all flows cross.
struct WaterFilling<'a> {
    demands: &'a [FlowDemand],
    /// The flows that cross each link.
    crossing: Vec<Vec<usize>>,
    /// The number of them that still grow, and the capacity left for these.
    users: Vec<u32>,
    left: Vec<f64>,
    /// The levels at which links are full, the lowest first. May contain outdated entries.
    full: BinaryHeap<Reverse<(u64, usize)>>,
    /// Flows with a finite limit, the lowest last.
    limited: Vec<usize>,
    growing: Vec<bool>,
    shares: Vec<f64>,
    /// Number of visits of flows and links.
    #[cfg(test)]
    steps: usize,
}

impl<'a> WaterFilling<'a> {
    fn new(capacities: &[f64], demands: &'a [FlowDemand]) -> Self {
        let mut crossing = vec![Vec::new(); capacities.len()];
        for (flow, demand) in demands.iter().enumerate() {
            for &link in &demand.links {
                crossing[link].push(flow);
            }
        }
        let mut limited: Vec<usize> = (0..demands.len())
            .filter(|&flow| demands[flow].limit.is_finite())
            .collect();
        limited.sort_by(|&one, &other| demands[other].limit.total_cmp(&demands[one].limit));
        let mut water = Self {
            demands,
            users: crossing.iter().map(|flows| flows.len() as u32).collect(),
            crossing,
            left: capacities.to_vec(),
            full: BinaryHeap::new(),
            limited,
            growing: vec![true; demands.len()],
            shares: vec![f64::INFINITY; demands.len()],
            #[cfg(test)]
            steps: 0,
        };
        for link in 0..capacities.len() {
            water.add_level(link);
        }
        water
    }

    /// Returns the level at which a link is full; infinite if no flow grows on it.
    fn level(&self, link: usize) -> f64 {
        match self.users[link] {
            0 => f64::INFINITY,
            count => self.left[link].max(0.0) / f64::from(count),
        }
    }

    fn add_level(&mut self, link: usize) {
        let level = self.level(link);
        if level.is_finite() {
            self.full.push(Reverse((key(level), link)));
        }
    }

    /// Returns the link that fills first, and its level.
    fn next_full(&mut self) -> Option<(f64, usize)> {
        while let Some(&Reverse((bits, link))) = self.full.peek() {
            self.step();
            let level = self.level(link);
            if key(level) == bits {
                return Some((level, link));
            }
            self.full.pop();
        }
        None
    }

    /// Returns the flow that reaches its limit first, and that limit.
    fn next_limited(&mut self) -> Option<(f64, usize)> {
        while let Some(&flow) = self.limited.last() {
            self.step();
            if self.growing[flow] {
                return Some((self.demands[flow].limit, flow));
            }
            self.limited.pop();
        }
        None
    }

    /// Raises the level until some flows stop growing. Returns whether there were any.
    fn rise(&mut self) -> bool {
        let full = self.next_full().map_or(f64::INFINITY, |(level, _)| level);
        let limit = self.next_limited().map_or(f64::INFINITY, |(level, _)| level);
        let level = full.min(limit);
        if level.is_infinite() {
            return false;
        }
        // Ties within rounding count as full: each round must stop at least one flow.
        let near = level * (1.0 + 1e-12);
        let mut stopped = Vec::new();
        while let Some((_, flow)) = self.next_limited().filter(|(level, _)| *level <= near) {
            self.limited.pop();
            self.stop(flow, &mut stopped);
        }
        while let Some((_, link)) = self.next_full().filter(|(level, _)| *level <= near) {
            self.full.pop();
            for flow in std::mem::take(&mut self.crossing[link]) {
                self.stop(flow, &mut stopped);
            }
        }
        stopped.sort_unstable();
        let mut touched = Vec::new();
        for flow in stopped {
            let share = level.min(self.demands[flow].limit);
            self.shares[flow] = share;
            for &link in &self.demands[flow].links {
                self.left[link] -= share;
                self.users[link] -= 1;
                touched.push(link);
            }
        }
        touched.sort_unstable();
        touched.dedup();
        for link in touched {
            self.add_level(link);
        }
        true
    }

    /// Stops the growth of a flow.
    fn stop(&mut self, flow: usize, stopped: &mut Vec<usize>) {
        self.step();
        if std::mem::replace(&mut self.growing[flow], false) {
            stopped.push(flow);
        }
    }

    const fn step(&mut self) {
        #[cfg(test)]
        {
            self.steps += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flows with different access rates share one link, which takes one round per flow.
    #[test]
    fn many_rounds_take_few_steps() {
        let steps = |flows: usize| {
            let capacities: Vec<f64> = std::iter::once(1e9)
                .chain((1..=flows).map(|flow| flow as f64))
                .collect();
            let demands: Vec<FlowDemand> = (1..=flows)
                .map(|access| FlowDemand {
                    links: vec![access, 0],
                    limit: f64::INFINITY,
                })
                .collect();
            let mut water = WaterFilling::new(&capacities, &demands);
            while water.rise() {}
            assert_eq!(water.shares, capacities[1..]);
            water.steps
        };
        assert!(steps(1_000) < 10_000, "{}", steps(1_000));
        assert!(steps(10_000) < 100_000, "{}", steps(10_000));
    }
}
