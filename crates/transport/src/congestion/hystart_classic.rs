//! HyStart as in Linux with CUBIC: exits slow start when a train of ACKs is longer than half of the minimum
//! round-trip time, or when the round-trip time has grown by an eighth (S. Ha and I. Rhee, "Taming the elephants: new
//! TCP slow start", 2011; `hystart_update` in `net/ipv4/tcp_cubic.c`).

use foundation::{Duration, Instant, Rate};

use super::Acknowledgement;

/// Minimum window for detection, in packets.
const LOW_WINDOW: u64 = 16;
/// Maximum gap between ACKs of one train.
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// Round-trip samples of a round before its minimum is evaluated.
const MIN_SAMPLES: u32 = 8;
/// Limits of the growth of the round-trip time that ends slow start, an eighth of the minimum.
const MIN_GROWTH: Duration = Duration::from_millis(4);
const MAX_GROWTH: Duration = Duration::from_millis(16);
const GROWTH_DIVISOR: u64 = 8;
/// Trains of a paced sender are longer by four bursts of this many bytes, at most by 1 ms.
const PACED_BURSTS: u64 = 4 * 65_536;
const MAX_PACED: Duration = Duration::from_millis(1);

/// State of one slow start.
#[derive(Clone, Debug, Default)]
pub(super) struct ClassicHyStart {
    min_rtt: Option<Duration>,
    round: Option<Round>,
}

#[derive(Clone, Copy, Debug)]
struct Round {
    started: Instant,
    /// Arrival of the newest ACK of the train.
    train: Instant,
    samples: u32,
    min_rtt: Option<Duration>,
}

impl ClassicHyStart {
    /// Handles an ACK in slow start at a window of `packets`. Returns whether slow start is over.
    pub(super) fn on_acknowledged(
        &mut self,
        ack: &Acknowledgement,
        packets: u64,
        pacing: Option<Rate>,
    ) -> bool {
        let Some(rtt) = ack.rtt else { return false };
        let least = self.min_rtt.map_or(rtt, |least| least.min(rtt));
        self.min_rtt = Some(least);
        // The first evaluated round starts with the first window that is large enough.
        if packets < LOW_WINDOW {
            return false;
        }
        // Packets sent in response to the ACK that starts a round belong to the next round.
        let mut round = match self.round {
            Some(round) if ack.newest_sent_at < round.started => round,
            _ => Round {
                started: ack.now,
                train: ack.now,
                samples: 0,
                min_rtt: None,
            },
        };
        let found = train_is_long(&mut round, ack.now, least, pacing) | round.is_slow(rtt, least);
        self.round = Some(round);
        found
    }
}

fn train_is_long(round: &mut Round, now: Instant, least: Duration, pacing: Option<Rate>) -> bool {
    if now - round.train > TRAIN_GAP {
        return false;
    }
    round.train = now;
    let threshold = match pacing {
        Some(rate) => least + rate.time_for(PACED_BURSTS).min(MAX_PACED),
        None => least / 2,
    };
    now - round.started > threshold
}

impl Round {
    fn is_slow(&mut self, rtt: Duration, least: Duration) -> bool {
        let lowest = self.min_rtt.map_or(rtt, |lowest| lowest.min(rtt));
        self.min_rtt = Some(lowest);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        lowest > least + (least / GROWTH_DIVISOR).max(MIN_GROWTH).min(MAX_GROWTH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::tests::ack;

    const fn ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// Simulates the ACKs of a round whose packets were sent at `sent` ms. Returns the index of the ACK that ends
    /// slow start.
    fn round(hystart: &mut ClassicHyStart, sent: u64, window: u64, rtts: &[u64]) -> Option<usize> {
        rtts.iter().position(|&rtt| {
            let ack = Acknowledgement {
                rtt: Some(Duration::from_millis(rtt)),
                newest_sent_at: ms(sent),
                ..ack(ms(sent + rtt), 2000)
            };
            hystart.on_acknowledged(&ack, window, None)
        })
    }

    #[test]
    fn exits_when_rtt_grows_by_an_eighth() {
        let mut hystart = ClassicHyStart::default();
        assert_eq!(round(&mut hystart, 0, 10, &[200]), None);
        // Limits of 4 and 16 ms: 216 ms is too little, and eight samples are too few.
        let spaced = |base: u64| (0..10).map(|i| base + 3 * i).collect::<Vec<_>>();
        assert_eq!(round(&mut hystart, 200, 20, &spaced(216)), None);
        assert_eq!(round(&mut hystart, 500, 15, &spaced(240)), None, "a small window");
        assert_eq!(round(&mut hystart, 800, 20, &spaced(217)), Some(8));
    }

    /// With an ACK of two packets every 100 ms from a window of ten, the first evaluated round starts at a window of
    /// 16, and the next one at 32, so that slow start ends at 48, as in Linux.
    #[test]
    fn rounds_start_at_minimum_window() {
        let mut hystart = ClassicHyStart::default();
        // Packets 1 to 10 are sent at 0, then four with each ACK of two.
        let sent_at = |packet: u64| packet.saturating_sub(7) / 4 * 100;
        let mut window = 10;
        for number in 1..30_u64 {
            let now = number * 100;
            let newest = sent_at(2 * number);
            let ack = Acknowledgement {
                rtt: Some(Duration::from_millis(now - newest)),
                newest_sent_at: ms(newest),
                ..ack(ms(now), 2000)
            };
            if hystart.on_acknowledged(&ack, window, None) {
                break;
            }
            window += 2;
        }
        assert_eq!(window, 48);
    }

    #[test]
    fn ignores_lower_rtt() {
        let mut hystart = ClassicHyStart::default();
        assert_eq!(round(&mut hystart, 0, 20, &[200]), None);
        let rtts = [240, 243, 246, 249, 252, 255, 258, 261, 29];
        assert_eq!(round(&mut hystart, 200, 20, &rtts), None);
    }

    #[test]
    fn exits_on_train_of_half_the_rtt() {
        let mut hystart = ClassicHyStart::default();
        assert_eq!(round(&mut hystart, 0, 20, &[40]), None);
        let train: Vec<_> = (40..63).collect();
        assert_eq!(
            round(&mut hystart, 40, 20, &train),
            Some(21),
            "21 ms after the first"
        );
        let mut hystart = ClassicHyStart::default();
        assert_eq!(round(&mut hystart, 0, 20, &[400]), None);
        let gaps: Vec<_> = (0..7).map(|i| 400 + 3 * i).collect();
        assert_eq!(
            round(&mut hystart, 400, 20, &gaps),
            None,
            "gaps of 3 ms are no train"
        );
    }
}
