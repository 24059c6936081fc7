//! The dialogue of two applications: who sends how much, and how long it takes before it answers.
//!
//! An end that has received everything and sends data later was busy, or waited for its user. That time is a *pause*: no change
//! of the network shortens it. The rest of an exchange is the network's.

use foundation::{Duration, Instant};
use serde::Serialize;

/// Turns of a connection that are kept. A connection with more has none.
const MOST_TURNS: usize = 2000;
/// A pause below this share of the RTT is the variation of the RTT.
const VARIATION: f64 = 0.1;

/// Data that one end sends until the other one answers, or until it falls silent with everything acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Turn {
    /// Whether the client sends it.
    pub is_client: bool,
    /// Bytes, without repetitions.
    pub bytes: u64,
    /// Time of its first packet in seconds, since the first packet of the connection.
    pub start_s: f64,
    /// Time in seconds from the arrival of all data before it at its sender, or from the acknowledgement of the sender's own
    /// data, until its first packet. Of the first turn: 0.
    pub pause_s: f64,
}

/// What a packet means for the dialogue.
#[derive(Clone, Copy, Debug)]
pub struct Said {
    /// Time of its capture.
    pub time: Instant,
    /// Place of its sender: 0 for the client.
    pub from: usize,
    /// Bytes of new data.
    pub fresh: u64,
    /// Whether it has data, new or repeated.
    pub has_data: bool,
    /// Whether it acknowledges all data of the other end.
    pub covers: bool,
    /// Newest RTT between the capture and its sender.
    pub round_trip: Duration,
    /// Newest RTT of the whole path.
    pub whole: Duration,
}

/// The turns of a connection.
#[derive(Debug, Default)]
pub struct Turns {
    /// Time of the first packet.
    first: Option<Instant>,
    found: Vec<Turn>,
    /// By end: time of its last data.
    last_data: [Option<Instant>; 2],
    /// By end: when the other one first acknowledged all that it has sent.
    covered: [Option<Instant>; 2],
    is_full: bool,
}

impl Turns {
    /// Takes a packet.
    pub fn packet(&mut self, said: Said) {
        let Said { time, from, .. } = said;
        let other = 1 - from;
        let first = *self.first.get_or_insert(time);
        if said.fresh > 0 {
            let is_client = from == 0;
            let is_same = self.found.last().is_some_and(|turn| turn.is_client == is_client);
            let since = if is_same {
                self.covered[from].map(|covered| covered + said.round_trip)
            } else {
                self.arrival(said)
            };
            let pause = since.map_or(Duration::ZERO, |since| time.saturating_since(since));
            let is_pause = pause > said.whole.mul_f64(VARIATION);
            match self.found.last_mut() {
                Some(turn) if is_same && !is_pause => turn.bytes += said.fresh,
                _ => self.push(Turn {
                    is_client,
                    bytes: said.fresh,
                    start_s: time.saturating_since(first).as_secs_f64(),
                    pause_s: if is_pause { pause.as_secs_f64() } else { 0.0 },
                }),
            }
            self.covered[from] = None;
        }
        if said.has_data {
            self.last_data[from] = Some(time);
        }
        if said.covers && self.covered[other].is_none() {
            self.covered[other] = Some(time);
        }
    }

    /// Returns when the data of the other end had arrived, and news of that could be at the capture.
    fn arrival(&self, said: Said) -> Option<Instant> {
        let other = 1 - said.from;
        let arrived = self.last_data[other]? + said.round_trip;
        Some(self.covered[other].map_or(arrived, |covered| covered.min(arrived)))
    }

    fn push(&mut self, turn: Turn) {
        self.is_full |= self.found.len() >= MOST_TURNS;
        if self.is_full {
            self.found = vec![turn];
        } else {
            self.found.push(turn);
        }
    }

    /// Returns the turns in order; `None` if there are more than 2,000.
    #[must_use]
    pub fn all(&self) -> Option<&[Turn]> {
        (!self.is_full).then_some(self.found.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(40);

    /// Takes packets of (time in ms, sender, new bytes, whether everything of the other end is acknowledged), captured at the
    /// client.
    fn turns(packets: &[(u64, usize, u64, bool)]) -> Vec<(bool, u64, u64)> {
        let mut turns = Turns::default();
        for &(millis, from, fresh, covers) in packets {
            turns.packet(Said {
                time: Instant::from_nanos(millis * 1_000_000),
                from,
                fresh,
                has_data: fresh > 0,
                covers,
                round_trip: if from == 1 { RTT } else { Duration::ZERO },
                whole: RTT,
            });
        }
        let found = turns.all().unwrap().iter();
        found
            .map(|turn| (turn.is_client, turn.bytes, (turn.pause_s * 1e3).round() as u64))
            .collect()
    }

    #[test]
    fn a_server_that_works_answers_late() {
        let found = turns(&[
            (0, 0, 100, false),
            // A delayed ACK does not hide the work.
            (80, 1, 0, true),
            (90, 1, 1000, true),
            (91, 1, 500, true),
            (91, 0, 0, true),
            // The client thinks, and the server answers at once.
            (141, 0, 200, true),
            (182, 1, 300, true),
        ]);
        assert_eq!(
            found,
            [
                (true, 100, 0),
                (false, 1500, 50),
                (true, 200, 50),
                (false, 300, 0)
            ]
        );
    }

    #[test]
    fn a_sender_that_was_silent_starts_another_turn() {
        let found = turns(&[
            (0, 0, 1000, false),
            (1, 0, 1000, false),
            (40, 1, 0, true),
            (540, 0, 700, false),
            (541, 0, 300, false),
        ]);
        assert_eq!(found, [(true, 2000, 0), (true, 1000, 500)]);
    }

    #[test]
    fn turns_start_with_their_first_packet() {
        let mut turns = Turns::default();
        for (millis, fresh) in [(5, 0), (45, 1000), (46, 1000), (645, 700)] {
            turns.packet(Said {
                time: Instant::from_nanos(millis * 1_000_000),
                from: 0,
                fresh,
                has_data: fresh > 0,
                covers: false,
                round_trip: Duration::ZERO,
                whole: RTT,
            });
            turns.covered[0] = Some(Instant::from_nanos(100_000_000));
        }
        let starts: Vec<f64> = turns.all().unwrap().iter().map(|turn| turn.start_s).collect();
        assert_eq!(starts, [0.04, 0.64]);
    }

    #[test]
    fn too_many_turns_are_none() {
        let mut turns = Turns::default();
        for number in 0..=MOST_TURNS {
            assert!(turns.all().is_some());
            turns.packet(Said {
                time: Instant::from_nanos(number as u64 * 1_000_000),
                from: number % 2,
                fresh: 1,
                has_data: true,
                covers: true,
                round_trip: RTT,
                whole: RTT,
            });
        }
        assert_eq!(turns.all(), None);
    }
}
