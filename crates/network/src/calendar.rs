//! The event queue of links: a tournament tree with one leaf per link (Knuth, TAOCP vol. 3, 5.4.1) and four children per
//! node, which fill a cache line.
//!
//! It contains only the head of each link, so its size is the number of links, not the number of
//! packets in flight. An update replays all matches on the path to the root, without data-dependent branches:
//! an early exit when the winner stays the same would add an unpredictable branch.

use std::hint::select_unpredictable;

/// Bits of the link in an [`Entry`].
const LINK_BITS: u32 = 22;

/// Time of the next event of an empty calendar. Events at this time, after 584 years, never happen.
pub(crate) const IDLE: u64 = u64::MAX;

/// Maximum number of links in a network.
pub(crate) const MAX_LINKS: usize = (1 << LINK_BITS) - 1;

/// The time of an event in nanoseconds, then the time at which it was scheduled, which breaks ties. The bits below are left
/// free for the link, which breaks the remaining ties. The time of scheduling wraps after 73 minutes; only the order within one
/// nanosecond depends on it.
///
/// This order depends only on the times of the packet itself, not on the order in which the caller or the network computes
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DueTime(u128);

impl DueTime {
    pub(crate) const NEVER: Self = Self(u128::MAX);

    #[inline]
    pub(crate) const fn new(nanos: u64, cause: u64) -> Self {
        Self((nanos as u128) << 64 | (cause << LINK_BITS) as u128)
    }

    #[inline]
    pub(crate) const fn nanos(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// Returns the time of scheduling: the last one by `now` with its bits.
    pub(crate) const fn cause(self, now: u64) -> u64 {
        let age = (now << LINK_BITS).wrapping_sub(self.0 as u64) >> LINK_BITS;
        now.saturating_sub(age)
    }
}

/// The next event of a link: the bits of its [`DueTime`], then those of the link, so that one comparison of 16 bytes
/// finds the earlier one. All ones without an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

impl Entry {
    const NEVER: Self = Self(u128::MAX);

    #[inline]
    const fn new(due: DueTime, link: u32) -> Self {
        Self(due.0 | link as u128)
    }

    #[inline]
    const fn nanos(self) -> u64 {
        DueTime(self.0).nanos()
    }

    /// Returns the earlier of two events, without a branch: no processor predicts the outcome.
    #[inline]
    fn earlier(self, other: Self) -> Self {
        Self(select_unpredictable(other.0 < self.0, other.0, self.0))
    }

    #[inline]
    const fn link(self) -> u32 {
        self.0 as u32 & MAX_LINKS as u32
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    /// A complete tree with four children per node. `groups[node]` contains the winners of the children of `node`, which
    /// are the nodes from `4 * node + 1`; leaf `groups.len() + link` is the entry of a link.
    groups: Vec<[Entry; 4]>,
    /// The overall winner.
    first: Entry,
}

impl Calendar {
    pub(crate) fn new(links: usize) -> Self {
        Self {
            groups: vec![[Entry::NEVER; 4]; links.saturating_sub(1).div_ceil(3)],
            first: Entry::NEVER,
        }
    }

    /// Returns the time of the earliest event, in nanoseconds, and its link; [`IDLE`] if there is none.
    #[inline]
    pub(crate) const fn first(&self) -> (u64, u32) {
        (self.first.nanos(), self.first.link())
    }

    /// Sets the time of the next event of `link`.
    #[inline]
    pub(crate) fn set(&mut self, link: u32, due: DueTime) {
        let mut winner = Entry::new(due, link);
        let mut node = self.groups.len() + link as usize;
        while node > 0 {
            let place = node - 1;
            node = place / 4;
            let group = &mut self.groups[node];
            group[place % 4] = winner;
            let [a, b, c, d] = *group;
            winner = a.earlier(b).earlier(c.earlier(d));
        }
        self.first = winner;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn first_returns_the_minimum(links in 1_usize..40, updates in proptest::collection::vec((0_usize..40, 0_u64..50), 1..200)) {
            let mut calendar = Calendar::new(links);
            let mut model = vec![DueTime::NEVER; links];
            for (cause, (link, nanos)) in updates.into_iter().enumerate() {
                let link = link % links;
                // 49 represents a link that becomes idle.
                let due = if nanos == 49 { DueTime::NEVER } else { DueTime::new(nanos, cause as u64) };
                calendar.set(link as u32, due);
                model[link] = due;
                let least = *model.iter().min().unwrap();
                let (nanos, at) = calendar.first();
                proptest::prop_assert_eq!(nanos, least.nanos());
                if nanos != IDLE {
                    proptest::prop_assert_eq!(model[at as usize], least);
                }
            }
        }
    }

    #[test]
    fn breaks_ties_by_cause_then_link() {
        let mut calendar = Calendar::new(3);
        calendar.set(1, DueTime::new(7, 2));
        calendar.set(2, DueTime::new(7, 1));
        assert_eq!(calendar.first(), (7, 2));
        calendar.set(1, DueTime::new(7, 1));
        assert_eq!(calendar.first(), (7, 1));
    }

    #[test]
    fn the_cause_wraps() {
        assert_eq!(DueTime::new(3, 5), DueTime::new(3, 5 + (1 << (64 - LINK_BITS))));
        assert!(DueTime::new(IDLE, 5).nanos() == IDLE);
    }
}
