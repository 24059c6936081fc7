//! The search for the largest frames that a path carries: path MTU discovery by probes of the transport protocol itself
//! (DPLPMTUD, RFC 8899).
//!
//! Sizes are counted in packets per frame. A frame of one packet is assumed to fit (BASE_PLPMTU); every larger size is
//! used only after a probe of that size was acknowledged. Probes carry padding, so a lost probe delays no data and
//! counts as no congestion.

use foundation::{Duration, Instant};

/// Transmissions of a probe before its size counts as too large (MAX_PROBES, RFC 8899, section 5.1.2).
const MAX_PROBES: u32 = 3;
/// When a finished search that found less than the limit starts again (PMTU_RAISE_TIMER, RFC 8899, section 5.1.1).
const RAISE: Duration = Duration::from_secs(600);
/// Longest pause after a black hole.
const MAX_PAUSE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
struct Probe {
    size: u16,
    transmissions: u32,
    /// When it counts as lost.
    due: Instant,
}

/// The search of one connection.
#[derive(Clone, Debug)]
pub struct PathMtuSearch {
    /// The largest size that the local interface carries.
    limit: u16,
    /// The largest acknowledged size.
    confirmed: u16,
    /// The largest size that no lost probes exclude.
    possible: u16,
    probe: Option<Probe>,
    /// When the search continues, after a black hole or at the end of a search.
    pause: Option<Instant>,
    /// Number of black holes. Probes name it, so that a late reply from before a black hole confirms nothing.
    black_holes: u16,
}

impl PathMtuSearch {
    /// Starts a search up to `limit` packets per frame.
    #[must_use]
    pub fn new(limit: u16) -> Self {
        let limit = limit.max(1);
        Self {
            limit,
            confirmed: 1,
            possible: limit,
            probe: None,
            pause: None,
            black_holes: 0,
        }
    }

    /// Returns the largest number of packets per frame that the path carries, as far as known.
    #[must_use]
    pub const fn packets_per_frame(&self) -> u16 {
        self.confirmed
    }

    /// Whether frames of more than one packet, or probes, are on the way.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        self.confirmed > 1 || self.probe.is_some()
    }

    /// Returns the number and the size of the probe to send at `now`, if one is due. It counts as lost after `timeout`.
    pub fn poll_probe(&mut self, now: Instant, timeout: Duration) -> Option<(u32, u16)> {
        if self.pause.is_some_and(|until| until <= now) {
            self.pause = None;
            self.possible = self.limit;
        }
        if self.pause.is_some() {
            return None;
        }
        if let Some(probe) = self.probe {
            if now < probe.due {
                return None;
            }
            if probe.transmissions == MAX_PROBES {
                self.possible = probe.size - 1;
                self.probe = None;
            }
        }
        if self.confirmed >= self.possible {
            self.end(now);
            return None;
        }
        // The limit first: most paths with large packets carry those of the local interface. Then bisection.
        let size = match self.probe {
            Some(probe) => probe.size,
            None if self.possible == self.limit => self.limit,
            None => self.confirmed + (self.possible - self.confirmed).div_ceil(2),
        };
        self.probe = Some(Probe {
            size,
            transmissions: self.probe.map_or(0, |probe| probe.transmissions) + 1,
            due: now + timeout,
        });
        Some((u32::from(self.black_holes) << 16 | u32::from(size), size))
    }

    fn end(&mut self, now: Instant) {
        self.probe = None;
        self.pause = (self.confirmed < self.limit).then(|| now + RAISE);
    }

    /// Handles the reply to the probe with this number.
    pub fn handle_reply(&mut self, now: Instant, number: u32) {
        let size = number as u16;
        if number >> 16 != u32::from(self.black_holes) || size > self.limit || size <= self.confirmed {
            return;
        }
        self.confirmed = size;
        self.possible = self.possible.max(size);
        if self.probe.is_some_and(|probe| probe.size <= size) {
            self.probe = None;
        }
        if self.confirmed == self.possible {
            self.end(now);
        }
    }

    /// Handles a black hole: the path has lost frames of more than one packet only. Frames have one packet again until a
    /// new search, which starts after `timeout`, and twice as late after each further black hole.
    pub fn handle_black_hole(&mut self, now: Instant, timeout: Duration) {
        self.pause = Some(
            now + timeout
                .doubled(u32::from(self.black_holes).min(16))
                .min(MAX_PAUSE),
        );
        self.black_holes = self.black_holes.wrapping_add(1);
        self.confirmed = 1;
        self.probe = None;
    }

    /// Returns when [`poll_probe`](Self::poll_probe) is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.pause.or_else(|| match self.probe {
            Some(probe) => Some(probe.due),
            None => (self.confirmed < self.possible).then_some(Instant::ZERO),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TIMEOUT: Duration = Duration::from_millis(200);
    const RTT: Duration = Duration::from_millis(10);

    /// Runs a search over a path that carries `fits` packets per frame until it pauses or ends; `lose` decides about each
    /// probe that fits. Returns the number of probes and the time.
    fn run(
        search: &mut PathMtuSearch,
        start: Instant,
        fits: u16,
        mut lose: impl FnMut() -> bool,
    ) -> (u32, Instant) {
        let (mut now, mut probes) = (start, 0);
        while let Some(due) = search.poll_timeout().filter(|&due| due < start + RAISE) {
            now = now.max(due);
            let Some((number, size)) = search.poll_probe(now, TIMEOUT) else {
                continue;
            };
            probes += 1;
            if size <= fits && !lose() {
                now += RTT;
                search.handle_reply(now, number);
            }
        }
        (probes, now)
    }

    #[test]
    fn one_probe_suffices_if_the_path_carries_the_limit() {
        let mut search = PathMtuSearch::new(46);
        let (probes, end) = run(&mut search, Instant::ZERO, 100, || false);
        assert_eq!((probes, search.packets_per_frame()), (1, 46));
        assert_eq!(end, Instant::ZERO + RTT);
        assert_eq!(search.poll_timeout(), None);
    }

    #[test]
    fn an_ethernet_path_needs_no_probe() {
        let mut search = PathMtuSearch::new(1);
        assert_eq!(search.poll_timeout(), None);
        assert_eq!(search.poll_probe(Instant::ZERO, TIMEOUT), None);
    }

    #[test]
    fn a_late_reply_from_before_a_black_hole_confirms_nothing() {
        let mut search = PathMtuSearch::new(46);
        let (number, _) = search.poll_probe(Instant::ZERO, TIMEOUT).unwrap();
        search.handle_black_hole(Instant::ZERO, TIMEOUT);
        search.handle_reply(Instant::ZERO, number);
        assert_eq!(search.packets_per_frame(), 1);
    }

    #[test]
    fn black_holes_delay_the_next_search_more_each_time() {
        let mut search = PathMtuSearch::new(46);
        let mut pauses = Vec::new();
        for _ in 0..4 {
            search.handle_black_hole(Instant::ZERO, TIMEOUT);
            pauses.push(search.poll_timeout().unwrap() - Instant::ZERO);
        }
        assert_eq!(pauses, [200, 400, 800, 1600].map(Duration::from_millis));
    }

    proptest! {
        #[test]
        fn finds_the_largest_size(limit in 1_u16..200, fits in 1_u16..250) {
            let mut search = PathMtuSearch::new(limit);
            let (probes, _) = run(&mut search, Instant::ZERO, fits, || false);
            prop_assert_eq!(search.packets_per_frame(), fits.min(limit));
            prop_assert!(probes <= 3 * 9, "{}", probes);
        }

        #[test]
        fn uses_only_acknowledged_sizes(limit in 1_u16..200, fits in 1_u16..250, losses in prop::collection::vec(any::<bool>(), 0..60)) {
            let (mut search, mut losses) = (PathMtuSearch::new(limit), losses.into_iter());
            run(&mut search, Instant::ZERO, fits, || losses.next().unwrap_or(false));
            prop_assert!((1..=fits.min(limit)).contains(&search.packets_per_frame()));
        }

        #[test]
        fn finds_the_size_again_after_a_change(limit in 1_u16..200, before in 1_u16..250, after in 1_u16..250) {
            let mut search = PathMtuSearch::new(limit);
            let (_, mut now) = run(&mut search, Instant::ZERO, before, || false);
            if after < before.min(limit) {
                search.handle_black_hole(now, TIMEOUT);
                prop_assert_eq!(search.packets_per_frame(), 1);
            } else {
                // A larger path is found by the next search.
                now += RAISE;
            }
            run(&mut search, now, after, || false);
            prop_assert_eq!(search.packets_per_frame(), after.min(limit));
        }

        #[test]
        fn any_reply_and_time_is_harmless(limit in 1_u16..200, steps in prop::collection::vec((0_u64..2000, any::<u32>(), 0..4), 0..50)) {
            let (mut search, mut now) = (PathMtuSearch::new(limit), Instant::ZERO);
            for (millis, number, kind) in steps {
                now += Duration::from_millis(millis);
                match kind {
                    0 => search.handle_reply(now, number),
                    1 => search.handle_black_hole(now, TIMEOUT),
                    _ => drop(search.poll_probe(now, TIMEOUT)),
                }
                prop_assert!((1..=limit).contains(&search.packets_per_frame()));
            }
        }
    }
}
