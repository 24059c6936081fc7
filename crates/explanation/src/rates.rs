//! Distributions of rates and times, and the rate of a bottleneck from trains of packets.

use std::collections::{BTreeMap, VecDeque};

use foundation::{Duration, Instant};

/// Ratio of neighbouring buckets.
const RATIO: f64 = 1.01;

/// Weights of positive values in buckets of one per cent.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    weights: BTreeMap<i32, u64>,
    total: u64,
}

impl Distribution {
    /// Adds a value with a weight; values that are not positive have no bucket.
    pub fn add(&mut self, value: f64, weight: u64) {
        if value > 0.0 && value.is_finite() && weight > 0 {
            *self
                .weights
                .entry((value.ln() / RATIO.ln()).round() as i32)
                .or_default() += weight;
            self.total += weight;
        }
    }

    /// Returns the sum of weights.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Returns the value below which a share of the weight is.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let wanted = (share * self.total as f64).max(1.0);
        let mut sum = 0;
        self.weights.iter().find_map(|(&bucket, &weight)| {
            sum += weight;
            (sum as f64 >= wanted).then(|| RATIO.powi(bucket))
        })
    }
}

/// Segments of a train.
const TRAIN: u64 = 16;
/// A train was sent faster than it was acknowledged if it took at most this share of the time: it waited in a queue.
const FASTER: f64 = 0.7;
/// Share of the RTT that a train takes at most.
const LONGEST: f64 = 0.5;
/// Acknowledgements that are kept.
const MOST_MARKS: usize = 256;

/// A moment of a transfer.
#[derive(Clone, Copy, Debug)]
struct Mark {
    acknowledged: Instant,
    sent: Instant,
    delivered: u64,
}

/// The rate at which trains of packets leave the bottleneck: the dispersion of their ACKs, if they were sent faster
/// (Dovrolis, Ramanathan and Moore, "What do packet dispersion techniques measure?", INFOCOM 2001).
#[derive(Clone, Debug, Default)]
pub struct Trains {
    marks: VecDeque<Mark>,
    /// Bytes per second of the trains that waited.
    pub queued: Distribution,
    /// Bytes per second of all trains, for captures behind the bottleneck.
    pub all: Distribution,
}

impl Trains {
    /// Takes an acknowledgement of data sent at `sent`, after which `delivered` bytes have arrived in total. A train
    /// takes at most half an RTT: longer ones contain the pause between two flights.
    pub fn acknowledge(
        &mut self,
        (acknowledged, sent): (Instant, Instant),
        delivered: u64,
        mss: u32,
        rtt: Duration,
    ) {
        let wanted = TRAIN * u64::from(mss);
        self.marks.push_back(Mark {
            acknowledged,
            sent,
            delivered,
        });
        if self.marks.len() > MOST_MARKS {
            self.marks.pop_front();
        }
        // The shortest train that is long enough ends here.
        while self.marks.len() > 2 && delivered - self.marks[1].delivered >= wanted {
            self.marks.pop_front();
        }
        let first = self.marks[0];
        let bytes = delivered - first.delivered;
        if bytes < wanted || bytes > 4 * wanted {
            return;
        }
        let time = acknowledged.saturating_since(first.acknowledged);
        if time > rtt.mul_f64(LONGEST) {
            return;
        }
        let time = time.as_secs_f64();
        let sending = sent.saturating_since(first.sent).as_secs_f64();
        let weight = bytes / TRAIN;
        self.all.add(bytes as f64 / time, weight);
        if sending < FASTER * time {
            self.queued.add(bytes as f64 / time, weight);
        }
    }

    /// Starts anew after a pause or a loss.
    pub fn interrupt(&mut self) {
        self.marks.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    #[test]
    fn quantiles_are_within_a_per_cent() {
        let mut found = Distribution::default();
        for value in 1..=1000 {
            found.add(f64::from(value), 1);
        }
        let median = found.quantile(0.5).unwrap_or_default();
        assert!((median / 500.0 - 1.0).abs() < 0.01, "{median}");
        assert!(Distribution::default().quantile(0.5).is_none());
    }

    #[test]
    fn a_train_gives_the_rate_of_the_bottleneck() {
        // 100 packets of 1000 bytes sent at once, acknowledged each millisecond: 1 MB/s.
        let mut trains = Trains::default();
        for number in 1..=100 {
            let time = Instant::from_nanos(number * 1_000_000);
            trains.acknowledge((time, Instant::from_nanos(number)), number * 1000, 1000, RTT);
        }
        let rate = trains.queued.quantile(0.5).unwrap_or_default();
        assert!((rate / 1e6 - 1.0).abs() < 0.02, "{rate}");
    }

    #[test]
    fn a_paced_train_says_nothing_of_a_queue() {
        let mut trains = Trains::default();
        for number in 1..=100 {
            let sent = Instant::from_nanos(number * 1_000_000);
            let time = Instant::from_nanos(number * 1_000_000 + 20_000_000);
            trains.acknowledge((time, sent), number * 1000, 1000, RTT);
        }
        assert!(trains.queued.quantile(0.5).is_none());
        assert!(trains.all.quantile(0.5).is_some());
    }
}
