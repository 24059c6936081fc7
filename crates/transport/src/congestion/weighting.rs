//! The weighting of wVegas: the share of each subflow in the packets queued, and draining of the queue.

use foundation::Duration;

use super::coupled::rate;
use super::siblings::Siblings;

/// Minimum and initial alpha in packets.
pub(super) const MIN_ALPHA: u64 = 2;

/// Minimum queueing delay at twice which wVegas drains the queue.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum WvegasDrain {
    /// The minimum over rounds with alpha packets queued; twice that indicates packets of other flows.
    #[default]
    Equilibrium,
    /// The minimum over all rounds of congestion avoidance, as in the authors' Linux code. A filling queue soon
    /// doubles that delay, so that alpha packets are rarely reached.
    Always,
    /// No draining.
    Off,
}

/// State of the weighting of one subflow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weighting {
    /// Bytes that all subflows together keep in queues.
    total: u64,
    /// Share of this subflow in the sum of all rates.
    weight: f64,
    drain: WvegasDrain,
    /// Minimum queueing delay since the queue was last drained.
    min_delay: Option<Duration>,
}

impl Weighting {
    /// Creates a weighting of `total` bytes in queues.
    pub(super) const fn new(total: u64, drain: WvegasDrain) -> Self {
        Self {
            total,
            weight: 1.0,
            drain,
            min_delay: None,
        }
    }

    /// Updates the weight from the rates of all subflows.
    pub(super) fn weigh(&mut self, siblings: &Siblings<'_>) {
        if siblings.own().rtt.is_zero() {
            return;
        }
        let total: f64 = siblings.measured().map(rate).sum();
        self.weight = rate(siblings.own()) / total;
    }

    /// Returns the bytes to keep in the queue: alpha while fewer are queued, then weight × total (draft, section 3).
    pub(super) fn share(&self, queued: u64, alpha: u64, segment: u64) -> u64 {
        if queued < alpha {
            return alpha;
        }
        let share = (self.total as f64 * self.weight) as u64;
        share.max(MIN_ALPHA * segment)
    }

    /// Returns whether to drain the queue, in order to observe the base round-trip time: the queueing delay is at
    /// least twice its minimum (draft, section 3). `full`: alpha packets were queued.
    pub(super) fn drains(&mut self, rtt: Duration, base: Duration, full: bool) -> bool {
        let delay = rtt.saturating_sub(base);
        let counts = match self.drain {
            WvegasDrain::Equilibrium => full,
            WvegasDrain::Always => true,
            WvegasDrain::Off => false,
        };
        if !counts || delay.is_zero() {
            return false;
        }
        let least = self.min_delay.map_or(delay, |least| least.min(delay));
        let drains = delay >= least * 2;
        self.min_delay = (!drains).then_some(least);
        drains
    }

    /// Forgets the minimum, since the path may have changed.
    pub(super) fn forget(&mut self) {
        self.min_delay = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Sibling;

    const fn weighting(drain: WvegasDrain) -> Weighting {
        Weighting::new(10_000, drain)
    }

    /// 10 packets in 100 ms and 15 in 50 ms are 100 and 300 packets/s, a quarter and three quarters: 2.5 and 7.5 of
    /// 10 packets (draft, section 3).
    #[test]
    fn alpha_is_proportional_to_rate() {
        let path = |window: u64, rtt| Sibling {
            window: window * 1000,
            rtt: Duration::from_millis(rtt),
            ..Sibling::default()
        };
        let all = [path(10, 100), path(15, 50)];
        let share = |all: &[Sibling], own_index, queued| {
            let mut weighting = weighting(WvegasDrain::Equilibrium);
            weighting.weigh(&Siblings { all, own_index });
            weighting.share(queued, 2000, 1000)
        };
        assert_eq!([share(&all, 0, 2000), share(&all, 1, 3000)], [2500, 7500]);
        // Below alpha the share is unchanged, and the minimum is two packets.
        assert_eq!(share(&all, 1, 1999), 2000);
        assert_eq!(share(&[path(1, 100), path(15, 50)], 0, 2000), 2000);
        // A subflow without a sample keeps its weight.
        assert_eq!(share(&[path(10, 0), path(15, 50)], 0, 2000), 10_000);
    }

    #[test]
    fn drains_queue_at_twice_minimum_delay() {
        let ms = Duration::from_millis;
        let drains = |drain, delays: &[(u64, bool)]| -> Vec<bool> {
            let mut weighting = weighting(drain);
            let one = |&(delay, full)| weighting.drains(ms(100 + delay), ms(100), full);
            delays.iter().map(one).collect()
        };
        let filling = [
            (1, false),
            (2, false),
            (5, true),
            (9, true),
            (10, true),
            (12, true),
        ];
        assert_eq!(
            drains(WvegasDrain::Equilibrium, &filling),
            [false, false, false, false, true, false]
        );
        assert_eq!(
            drains(WvegasDrain::Always, &filling),
            [false, true, false, false, true, false]
        );
        assert_eq!(drains(WvegasDrain::Off, &filling), [false; 6]);
    }
}
