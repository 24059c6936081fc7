//! Max-min fair shares by water-filling.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::FlowDemand;

/// The max-min fair allocation by water-filling (Bertsekas and Gallager, Data Networks, section 6.5.2):
/// all flows grow alike until a link is full or a demand is met; these flows have their share, and the rest
/// keep growing. `capacities` holds each link's, in the unit of the result; an infinite one never fills.
///
/// A flow that meets neither a finite link nor a finite demand gets infinity.
///
/// # Panics
/// For a link that there is not.
#[must_use]
pub fn max_min_shares(capacities: &[f64], claims: &[FlowDemand]) -> Vec<f64> {
    let mut water = WaterFilling::new(capacities, claims);
    while water.rise() {}
    water.shares
}

/// A positive number or infinity, which its bits order.
fn key(level: f64) -> u64 {
    level.to_bits()
}

/// Flows while they grow. Each flow and link is looked at when its own level may change, so that all together
/// take time in proportion to the links that all flows cross.
struct WaterFilling<'a> {
    claims: &'a [FlowDemand],
    /// The flows that cross each link.
    crossing: Vec<Vec<usize>>,
    /// How many of them still grow, and what is left of the link for these.
    users: Vec<u32>,
    left: Vec<f64>,
    /// The levels at which links are full, the lowest first. An entry that no longer holds is left over.
    full: BinaryHeap<Reverse<(u64, usize)>>,
    /// Flows by their demand, the lowest last.
    asking: Vec<usize>,
    growing: Vec<bool>,
    shares: Vec<f64>,
    /// Flows and links that were looked at.
    #[cfg(test)]
    steps: usize,
}

impl<'a> WaterFilling<'a> {
    fn new(capacities: &[f64], claims: &'a [FlowDemand]) -> Self {
        let mut crossing = vec![Vec::new(); capacities.len()];
        for (flow, claim) in claims.iter().enumerate() {
            for &link in &claim.links {
                crossing[link].push(flow);
            }
        }
        let mut asking: Vec<usize> = (0..claims.len())
            .filter(|&flow| claims[flow].demand.is_finite())
            .collect();
        asking.sort_by(|&one, &other| claims[other].demand.total_cmp(&claims[one].demand));
        let mut water = Self {
            claims,
            users: crossing.iter().map(|flows| flows.len() as u32).collect(),
            crossing,
            left: capacities.to_vec(),
            full: BinaryHeap::new(),
            asking,
            growing: vec![true; claims.len()],
            shares: vec![f64::INFINITY; claims.len()],
            #[cfg(test)]
            steps: 0,
        };
        for link in 0..capacities.len() {
            water.note_level(link);
        }
        water
    }

    /// The level at which a link is full; infinite where nobody grows on it.
    fn level(&self, link: usize) -> f64 {
        match self.users[link] {
            0 => f64::INFINITY,
            count => self.left[link].max(0.0) / f64::from(count),
        }
    }

    fn note_level(&mut self, link: usize) {
        let level = self.level(link);
        if level.is_finite() {
            self.full.push(Reverse((key(level), link)));
        }
    }

    /// The link that is full first, and at which level.
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

    /// The flow whose demand is met first, and that demand.
    fn next_met(&mut self) -> Option<(f64, usize)> {
        while let Some(&flow) = self.asking.last() {
            self.step();
            if self.growing[flow] {
                return Some((self.claims[flow].demand, flow));
            }
            self.asking.pop();
        }
        None
    }

    /// Lets all flows grow until some are held. Gives whether there were any.
    fn rise(&mut self) -> bool {
        let full = self.next_full().map_or(f64::INFINITY, |(level, _)| level);
        let met = self.next_met().map_or(f64::INFINITY, |(level, _)| level);
        let level = full.min(met);
        if level.is_infinite() {
            return false;
        }
        // Ties within rounding are full too: each round must finish at least one flow.
        let near = level * (1.0 + 1e-12);
        let mut held = Vec::new();
        while let Some((_, flow)) = self.next_met().filter(|(level, _)| *level <= near) {
            self.asking.pop();
            self.hold(flow, &mut held);
        }
        while let Some((_, link)) = self.next_full().filter(|(level, _)| *level <= near) {
            self.full.pop();
            for flow in std::mem::take(&mut self.crossing[link]) {
                self.hold(flow, &mut held);
            }
        }
        held.sort_unstable();
        let mut touched = Vec::new();
        for flow in held {
            let share = level.min(self.claims[flow].demand);
            self.shares[flow] = share;
            for &link in &self.claims[flow].links {
                self.left[link] -= share;
                self.users[link] -= 1;
                touched.push(link);
            }
        }
        touched.sort_unstable();
        touched.dedup();
        for link in touched {
            self.note_level(link);
        }
        true
    }

    /// A flow grows no more, if it still did.
    fn hold(&mut self, flow: usize, held: &mut Vec<usize>) {
        self.step();
        if std::mem::replace(&mut self.growing[flow], false) {
            held.push(flow);
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

    /// Each flow behind an access link of its own and another rate, all over one link: as many rounds as flows.
    #[test]
    fn many_rounds_take_few_steps() {
        let steps = |flows: usize| {
            let capacities: Vec<f64> = std::iter::once(1e9)
                .chain((1..=flows).map(|flow| flow as f64))
                .collect();
            let claims: Vec<FlowDemand> = (1..=flows)
                .map(|access| FlowDemand {
                    links: vec![access, 0],
                    demand: f64::INFINITY,
                })
                .collect();
            let mut water = WaterFilling::new(&capacities, &claims);
            while water.rise() {}
            assert_eq!(water.shares, capacities[1..]);
            water.steps
        };
        assert!(steps(1_000) < 10_000, "{}", steps(1_000));
        assert!(steps(10_000) < 100_000, "{}", steps(10_000));
    }
}
