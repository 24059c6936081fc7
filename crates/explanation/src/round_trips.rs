//! The RTTs of a path, in two parts: from the capture to the receiver of the data (*far*), and to its sender (*near*).

use std::collections::VecDeque;

use foundation::{Duration, Instant};
use serde::Serialize;

use crate::rates::Distribution;

/// Timestamps whose echo is awaited, at most.
const MOST_STAMPS: usize = 4096;
/// Share of the RTT between the capture and an end below which the capture is at this end.
const NEAR_END: f64 = 0.1;

/// Where the capture was made, seen from the sender of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Position {
    /// At the sender.
    Sender,
    /// Between both.
    Between,
    /// At the receiver.
    Receiver,
    /// Not known: neither a handshake nor timestamps.
    Unknown,
}

/// RTTs of one sender's data.
#[derive(Debug, Default)]
pub struct RoundTrips {
    /// RTTs of the whole path, in seconds, weighted by samples.
    pub all: Distribution,
    /// Smallest RTT of data: a full packet takes longer than those of the handshake.
    pub least_data: Option<Duration>,
    /// Smallest RTT from the capture to the receiver.
    pub far: Option<Duration>,
    /// The newest RTT from the capture to the receiver, without those of delayed ACKs.
    pub far_now: Duration,
    /// Smallest RTT from the capture to the sender.
    pub near: Option<Duration>,
    /// The newest RTT of the whole path.
    pub now: Option<Duration>,
    /// Time between the capture and the sender that matters now: none if the capture is at the sender.
    pub near_now: Duration,
    /// RTT of the handshake, and the payload of the sender's last packet of it.
    opening: Option<(Duration, u32)>,
    /// Smallest near RTT in this round trip.
    near_round: Option<Duration>,
    stamps: VecDeque<(u32, Instant)>,
}

impl RoundTrips {
    /// Takes the RTTs of the handshake: from the capture to the receiver, and to the sender. `payload`: bytes of data in the
    /// sender's last packet of it, which takes longer to transmit.
    pub fn handshake(&mut self, far: Duration, near: Duration, payload: u32) {
        self.opening = Some((far + near, payload));
        self.far = Some(far);
        self.far_now = far;
        self.near = Some(near);
        self.near_now = self.shift(near);
        self.now = Some(far + near);
    }

    /// Returns the smallest RTT of the path, in seconds, without the time that a link of `rate` bytes per second before the
    /// capture takes to transmit the payload in a handshake.
    #[must_use]
    pub fn base_s(&self, rate: Option<f64>) -> Option<f64> {
        let least = (self.far? + self.near.unwrap_or(Duration::ZERO)).as_secs_f64();
        let empty = rate.zip(self.opening).map_or(least, |(rate, (rtt, payload))| {
            rtt.as_secs_f64() - f64::from(payload) / rate
        });
        Some(if empty > 0.0 { least.min(empty) } else { least })
    }

    /// Returns where the capture was made.
    #[must_use]
    pub fn position(&self) -> Position {
        let (Some(far), Some(near)) = (self.far, self.near) else {
            return Position::Unknown;
        };
        let share = near.as_secs_f64() / (near + far).as_secs_f64().max(1e-9);
        if share < NEAR_END {
            Position::Sender
        } else if share > 1.0 - NEAR_END {
            Position::Receiver
        } else {
            Position::Between
        }
    }

    fn shift(&self, near: Duration) -> Duration {
        if self.position() == Position::Sender {
            Duration::ZERO
        } else {
            near
        }
    }

    /// Takes the time from data at the capture to its ACK, and returns the RTT of the whole path.
    pub fn sample(&mut self, far: Duration) -> Duration {
        self.far = Some(self.far.map_or(far, |least| least.min(far)));
        let rtt = far + self.near_now;
        self.now = Some(rtt);
        self.least_data = Some(self.least_data.map_or(rtt, |least| least.min(rtt)));
        self.all.add(rtt.as_secs_f64(), 1);
        rtt
    }

    /// Takes the timestamp of an ACK, whose echo comes back from the sender.
    pub fn stamp(&mut self, stamp: u32, time: Instant) {
        let is_newer = |&(last, _): &(u32, Instant)| (stamp.wrapping_sub(last) as i32) > 0;
        if self.stamps.back().is_none_or(is_newer) {
            self.stamps.push_back((stamp, time));
            if self.stamps.len() > MOST_STAMPS {
                self.stamps.pop_front();
            }
        }
    }

    /// Takes the echo of a timestamp: the time from the capture to the sender and back. `is_in_flight` states whether
    /// the packet has data while other data is in flight: a sender that was silent echoes late.
    pub fn echo(&mut self, echo: u32, now: Instant, is_in_flight: bool) {
        let mut found = None;
        while let Some(&(stamp, time)) = self.stamps.front() {
            if (echo.wrapping_sub(stamp) as i32) < 0 {
                break;
            }
            if stamp == echo {
                found = Some(time);
            }
            self.stamps.pop_front();
        }
        let Some(time) = found else { return };
        let near = now.saturating_since(time);
        self.near = Some(self.near.map_or(near, |least| least.min(near)));
        if is_in_flight {
            // A sender whose application is slow answers late as well: the smallest of a round trip counts.
            self.near_round = Some(self.near_round.map_or(near, |least| least.min(near)));
        }
    }

    /// Ends a round trip, which updates the time between the capture and the sender.
    pub fn end_round(&mut self) {
        if let (Some(near), Some(least)) = (self.near_round.take(), self.near) {
            self.near_now = if self.shift(least).is_zero() {
                Duration::ZERO
            } else {
                near
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    #[test]
    fn the_shares_of_the_rtt_show_the_place_of_the_capture() {
        for (far, near, position) in [
            (40, 1, Position::Sender),
            (1, 40, Position::Receiver),
            (20, 20, Position::Between),
        ] {
            let mut found = RoundTrips::default();
            assert_eq!(found.position(), Position::Unknown);
            found.handshake(millis(far), millis(near), 0);
            assert_eq!(found.position(), position);
        }
    }

    #[test]
    fn acks_reach_a_distant_sender_after_the_near_round_trip() {
        let mut found = RoundTrips::default();
        found.handshake(millis(1), millis(40), 0);
        assert_eq!(found.sample(millis(3)), millis(43));
        found.stamp(7, Instant::from_nanos(0));
        found.echo(7, Instant::from_nanos(50_000_000), true);
        found.end_round();
        assert_eq!(found.sample(millis(3)), millis(53));
        assert_eq!(found.near, Some(millis(40)));
    }

    #[test]
    fn the_payload_in_a_handshake_is_not_part_of_the_idle_rtt() {
        let mut found = RoundTrips::default();
        found.handshake(millis(1), millis(45), 1000);
        let millis_at = |found: &RoundTrips, rate| found.base_s(rate).map(|base| (base * 1e3).round());
        assert_eq!(millis_at(&found, None), Some(46.0));
        // 1000 bytes take 4 ms.
        assert_eq!(millis_at(&found, Some(250e3)), Some(42.0));
        found.sample(millis(0));
        assert_eq!(millis_at(&found, Some(1e9)), Some(45.0), "a smaller one was seen");
    }
}
