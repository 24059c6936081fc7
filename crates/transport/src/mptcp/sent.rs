//! The data that a subflow carries and has not acknowledged, indexed by stream offset and by data position.

use std::collections::VecDeque;

use super::mappings::{Mappings, Run};

/// Runs in the order of the subflow's stream, with an index of their positions in the data.
///
/// The index divides the runs into chains of ascending, disjoint positions: new data forms one, data that the subflow
/// received for another subflow forms another. A lookup searches each chain by bisection, so that its cost
/// hardly depends on the window.
#[derive(Clone, Debug, Default)]
pub(super) struct SentData {
    mappings: Mappings,
    /// Run numbers; each run belongs to the first chain whose last run ends before it. No chain is empty.
    chains: Vec<VecDeque<u64>>,
    /// Number of the oldest run; the first run ever has number 0.
    oldest: u64,
    #[cfg(debug_assertions)]
    examined: std::cell::Cell<u64>,
}

impl SentData {
    /// Appends a range at the end of the subflow's stream.
    #[inline]
    pub fn append(&mut self, offset: u64, data: u64, length: u64) {
        let before = self.mappings.runs.len();
        self.mappings.append(offset, data, length);
        if self.mappings.runs.len() == before {
            return;
        }
        let number = self.oldest + before as u64;
        let ends_before = |chain: &VecDeque<u64>| {
            let last = chain.back().map(|&last| self.run(last));
            last.is_none_or(|last| last.data + last.length <= data)
        };
        match self.chains.iter().position(ends_before) {
            Some(chain) => self.chains[chain].push_back(number),
            None => self.chains.push(VecDeque::from([number])),
        }
    }

    /// Returns the data position of the byte at `offset` of the stream, and the number of contiguous bytes from
    /// there.
    #[inline]
    pub fn find(&self, offset: u64) -> Option<(u64, u64)> {
        self.mappings.find(offset)
    }

    /// Returns the contiguous bytes from data position `data`; 0 if the subflow does not carry that byte. The first
    /// copy counts if it carries several.
    pub fn length_from(&self, data: u64) -> u64 {
        let chains = self.chains.iter();
        let first = chains.filter_map(|chain| self.find_in_chain(chain, data)).min();
        first.map_or(0, |number| {
            let run = self.run(number);
            run.data + run.length - data
        })
    }

    /// Returns the number of the chain's run that contains data position `data`.
    fn find_in_chain(&self, chain: &VecDeque<u64>, data: u64) -> Option<u64> {
        let ends_before = |&number: &u64| {
            #[cfg(debug_assertions)]
            self.examined.set(self.examined.get() + 1);
            let run = self.run(number);
            run.data + run.length <= data
        };
        let &number = chain.get(chain.partition_point(ends_before))?;
        (self.run(number).data <= data).then_some(number)
    }

    fn run(&self, number: u64) -> &Run {
        &self.mappings.runs[(number - self.oldest) as usize]
    }

    /// Returns whether the subflow carries the byte at data position `data`.
    pub fn holds(&self, data: u64) -> bool {
        self.length_from(data) > 0
    }

    /// Removes everything below `offset` of the stream.
    #[inline]
    pub fn release(&mut self, offset: u64) {
        let before = self.mappings.runs.len();
        self.mappings.release(offset);
        let released = (before - self.mappings.runs.len()) as u64;
        if released == 0 {
            return;
        }
        self.oldest += released;
        for chain in &mut self.chains {
            while chain.front().is_some_and(|&number| number < self.oldest) {
                chain.pop_front();
            }
        }
        self.chains.retain(|chain| !chain.is_empty());
    }

    /// Marks all runs as carried by another subflow too, and returns those that were not.
    pub fn reinject(&mut self) -> impl Iterator<Item = &Run> {
        let fresh = self.mappings.runs.iter_mut().filter(|run| !run.reinjected);
        fresh.map(|run| {
            run.reinjected = true;
            &*run
        })
    }

    /// Returns the runs examined by lookups so far.
    #[cfg(debug_assertions)]
    pub const fn examined(&self) -> u64 {
        self.examined.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Lookups agree with a scan of all runs after duplicates, acknowledgements and reinjections.
        #[test]
        fn lookups_agree_with_a_scan(
            steps in prop::collection::vec((0_u64..120, 1_u64..9, 0_u64..8, 0_u8..12), 1..60),
        ) {
            let mut sent = SentData::default();
            let (mut written, mut next, mut released) = (0, 1_u64, 0);
            for (jump, length, acknowledged, action) in steps {
                // Mostly the next data, sometimes an earlier or a later range.
                let data = match action {
                    0..=1 => 1 + jump,
                    2 => next + jump,
                    _ => next,
                };
                sent.append(written, data, length);
                written += length;
                next = next.max(data + length);
                if action == 3 {
                    sent.reinject().for_each(drop);
                }
                released = (released + acknowledged).min(written);
                sent.release(released);
                for position in 0..250 {
                    let scan = sent
                        .mappings
                        .runs
                        .iter()
                        .find(|run| (run.data..run.data + run.length).contains(&position))
                        .map_or(0, |run| run.data + run.length - position);
                    prop_assert_eq!(sent.length_from(position), scan, "{}", position);
                }
            }
        }
    }
}
