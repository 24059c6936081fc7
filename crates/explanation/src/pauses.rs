//! Pauses in which a path or a host stands still: they add to RTTs, but no queue holds the data.

use foundation::{Duration, Instant};

/// Times between ACKs by which a queue can lengthen the RTT from one sample to the next: usually one of them.
pub const SUDDEN: f64 = 8.0;

/// The pauses of one sender's data.
///
/// A queue lengthens the RTT packet by packet. A pause lengthens it at once, for all data that was sent before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pauses {
    /// Time of the pauses in the RTTs of data sent until `end`.
    time: Duration,
    end: Instant,
    last: Option<Duration>,
}

impl Pauses {
    /// Takes an RTT of data sent at `sent`, acknowledged at `now`, and returns the part of it that is a pause: RTTs
    /// that grow by more than `least` at once have one.
    pub fn part_of(&mut self, (sent, rtt): (Instant, Duration), now: Instant, least: Duration) -> Duration {
        if sent > self.end {
            self.time = Duration::ZERO;
        }
        let growth = rtt.saturating_sub(self.last.unwrap_or(rtt));
        if growth > least {
            self.time += growth;
            self.end = now;
        }
        self.last = Some(rtt);
        self.time.min(rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the parts of RTTs in ms that are pauses, of data sent at times in ms.
    fn parts(rtts: &[(u64, u64)]) -> Vec<u64> {
        let mut pauses = Pauses::default();
        let millis = |number| Instant::from_nanos(number * 1_000_000);
        let part = |&(sent, rtt): &(u64, u64)| {
            let rtt = Duration::from_millis(rtt);
            let least = Duration::from_millis(8);
            pauses
                .part_of((millis(sent), rtt), millis(sent) + rtt, least)
                .as_nanos()
                / 1_000_000
        };
        rtts.iter().map(part).collect()
    }

    #[test]
    fn a_queue_grows_packet_by_packet() {
        let rtts: Vec<(u64, u64)> = (0..100).map(|number| (number, 40 + number)).collect();
        assert_eq!(parts(&rtts), [0; 100]);
    }

    #[test]
    fn a_pause_lengthens_rtts_of_data_sent_before_its_end() {
        let rtts = [
            (0, 40),
            (10, 40),
            (20, 240),
            (30, 230),
            (200, 65),
            (270, 40),
            (280, 48),
        ];
        assert_eq!(parts(&rtts), [0, 0, 200, 200, 65, 0, 0]);
    }
}
