//! Delivery rate: one sample per ACK (draft-cheng-iccrg-delivery-rate-estimation-02; draft-ietf-ccwg-bbr, section
//! 4.1).
//!
//! A sample spans the flight of one packet: the bytes delivered between its transmission and its ACK, over the longer
//! one of the send interval and the ACK interval. The longer one prevents compressed ACKs from inflating the rate.

use foundation::{Duration, Instant};

use super::RateSample;

/// State of the estimator when a packet was sent; the sender stores it with the packet.
///
/// 32 bytes, because a long fat network has hundreds of thousands of packets in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Bytes delivered; the top bit marks an application-limited sender.
    delivered: u64,
    /// Time of the last increase of `delivered`.
    delivered_at: Instant,
    /// Send time of the packet whose ACK last increased it: the start of the send interval.
    first_sent_at: Instant,
    /// Bytes in flight, this packet included; saturates at 4 GiB.
    in_flight: u32,
    /// Bytes lost, modulo 2^32: only differences are used.
    lost: u32,
}

const LIMITED: u64 = 1 << 63;

impl Snapshot {
    /// Returns the bytes that the connection had delivered when the packet was sent.
    #[must_use]
    pub const fn delivered(&self) -> u64 {
        self.delivered & !LIMITED
    }

    /// Returns the bytes in flight when the packet was sent, itself included.
    #[must_use]
    pub const fn in_flight(&self) -> u64 {
        self.in_flight as u64
    }

    /// Returns whether the sender had run out of data before the packet was sent.
    #[must_use]
    pub const fn application_limited(&self) -> bool {
        self.delivered & LIMITED != 0
    }
}

/// Delivery-rate estimator of one connection.
///
/// The sender calls [`on_sent`](Self::on_sent) for every packet and every retransmission, whose snapshot replaces the
/// earlier one. For every ACK it calls [`on_packet_acknowledged`](Self::on_packet_acknowledged) for each newly
/// acknowledged packet, and [`finish_ack`](Self::finish_ack) once.
#[derive(Clone, Debug, Default)]
pub struct Estimator {
    delivered: u64,
    lost: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// `delivered` at which the last application-limited packet has left the network; 0 for none.
    limited_until: u64,
    /// Newest packet of the current ACK.
    newest: Option<Newest>,
}

#[derive(Clone, Copy, Debug)]
struct Newest {
    snapshot: Snapshot,
    sent_at: Instant,
}

impl Estimator {
    /// Creates the estimator of a new connection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records the transmission of a packet of `bytes`; `in_flight` includes it.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, bytes: u64, in_flight: u64) -> Snapshot {
        if in_flight <= bytes {
            // The idle time before this packet does not count.
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Snapshot {
            delivered: self.delivered | if self.limited_until == 0 { 0 } else { LIMITED },
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight: u32::try_from(in_flight).unwrap_or(u32::MAX),
            lost: self.lost as u32,
        }
    }

    /// Records that the current ACK newly acknowledges a packet of `bytes` sent at `sent_at`.
    ///
    /// Packets sent at the same time must be reported in the order of their transmission.
    #[inline]
    pub fn on_packet_acknowledged(
        &mut self,
        now: Instant,
        snapshot: &Snapshot,
        bytes: u64,
        sent_at: Instant,
    ) {
        self.delivered += bytes;
        self.delivered_at = now;
        if self.newest.is_none_or(|newest| sent_at >= newest.sent_at) {
            self.newest = Some(Newest {
                snapshot: *snapshot,
                sent_at,
            });
        }
    }

    /// Records `bytes` declared lost.
    pub fn on_lost(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    /// Records that the sender has no data although it may send: samples of the packets in flight and of the next one
    /// are lower bounds of the capacity.
    pub fn set_application_limited(&mut self, in_flight: u64) {
        self.limited_until = (self.delivered + in_flight).max(1);
    }

    /// Returns whether a gap from a lack of data is still in flight.
    #[must_use]
    pub const fn is_application_limited(&self) -> bool {
        self.limited_until != 0
    }

    /// Returns the bytes delivered since the connection started.
    #[must_use]
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Returns the bytes declared lost since the connection started.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the bytes declared lost since a packet was sent (below 4 GiB).
    #[must_use]
    pub const fn lost_since(&self, snapshot: &Snapshot) -> u64 {
        (self.lost as u32).wrapping_sub(snapshot.lost) as u64
    }

    /// Completes the current ACK and returns the sample over the flight of its newest packet, or `None` if it
    /// acknowledged nothing new. `min_rtt` is the minimum round-trip time of the connection (zero if unknown); a
    /// shorter interval gives no rate.
    #[inline]
    pub fn finish_ack(&mut self, min_rtt: Duration) -> Option<RateSample> {
        if self.limited_until != 0 && self.delivered > self.limited_until {
            self.limited_until = 0;
        }
        let Newest { snapshot, sent_at } = self.newest.take()?;
        // A late ACK of an older packet does not move the start backwards.
        self.first_sent_at = self.first_sent_at.max(sent_at);
        let send_interval = sent_at - snapshot.first_sent_at;
        let ack_interval = self.delivered_at - snapshot.delivered_at;
        let interval = send_interval.max(ack_interval);
        Some(RateSample {
            delivered: self.delivered - snapshot.delivered(),
            interval: if interval < min_rtt {
                Duration::ZERO
            } else {
                interval
            },
            prior_delivered: snapshot.delivered(),
            lost: self.lost_since(&snapshot),
            in_flight_at_send: snapshot.in_flight(),
            application_limited: snapshot.application_limited(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// Sends `count` packets of 1000 bytes, one per `gap` ms from `start`. Returns snapshots and send times.
    fn send(estimator: &mut Estimator, start: u64, gap: u64, count: u64) -> Vec<(Snapshot, Instant)> {
        (0..count)
            .map(|i| {
                let at = ms(start + i * gap);
                (estimator.on_sent(at, 1000, (i + 1) * 1000), at)
            })
            .collect()
    }

    #[test]
    fn snapshot_takes_32_bytes() {
        assert_eq!(size_of::<Snapshot>(), 32);
    }

    #[test]
    fn steady_flight_yields_its_rate() {
        // One packet of 1000 B per ms is 8 Mbit/s; ACKs arrive 10 ms later at the same pace.
        let mut estimator = Estimator::new();
        let packets = send(&mut estimator, 0, 1, 10);
        let mut last = None;
        for (i, (snapshot, sent_at)) in packets.iter().enumerate() {
            estimator.on_packet_acknowledged(ms(10 + i as u64), snapshot, 1000, *sent_at);
            last = estimator.finish_ack(Duration::from_millis(10));
        }
        // The first ten packets span 19 ms; the next flight shows the full rate.
        assert_eq!(last.unwrap().delivered, 10_000);
        assert_eq!(last.unwrap().interval, Duration::from_millis(19));
        let next = estimator.on_sent(ms(19), 1000, 2000);
        estimator.on_packet_acknowledged(ms(20), &next, 1000, ms(19));
        estimator.finish_ack(Duration::ZERO);
        assert_eq!(estimator.delivered(), 11_000);
    }

    #[test]
    fn compressed_acks_do_not_inflate_rate() {
        // Ten packets are sent over 9 ms, and their ACKs all arrive at 30 ms
        // (draft-cheng-iccrg-delivery-rate-estimation-02, section 2.2: compression and aggregation).
        let mut estimator = Estimator::new();
        let packets = send(&mut estimator, 0, 1, 10);
        for (snapshot, sent_at) in &packets {
            estimator.on_packet_acknowledged(ms(30), snapshot, 1000, *sent_at);
        }
        let sample = estimator.finish_ack(Duration::from_millis(10)).unwrap();
        assert_eq!(
            (sample.delivered, sample.interval),
            (10_000, Duration::from_millis(30))
        );
        // Five more are sent from 31 to 35 ms, all acknowledged at 36 ms: the send interval bounds the sample, which
        // starts at the transmission of the last acknowledged packet (9 ms).
        let burst: Vec<_> = (0..5)
            .map(|i| (estimator.on_sent(ms(31 + i), 1000, (i + 2) * 1000), ms(31 + i)))
            .collect();
        for (snapshot, sent_at) in &burst {
            estimator.on_packet_acknowledged(ms(36), snapshot, 1000, *sent_at);
        }
        let sample = estimator.finish_ack(Duration::ZERO).unwrap();
        assert_eq!(
            (sample.delivered, sample.interval),
            (5000, Duration::from_millis(26))
        );
    }

    #[test]
    fn sample_below_min_rtt_has_no_rate() {
        let mut estimator = Estimator::new();
        let snapshot = estimator.on_sent(ms(5), 1000, 1000);
        estimator.on_packet_acknowledged(ms(6), &snapshot, 1000, ms(5));
        let sample = estimator.finish_ack(Duration::from_millis(10)).unwrap();
        assert_eq!((sample.rate(), sample.delivered), (None, 1000));
        assert_eq!(
            estimator.finish_ack(Duration::ZERO),
            None,
            "an ACK of nothing new has no sample"
        );
    }

    #[test]
    fn idle_time_does_not_count() {
        let mut estimator = Estimator::new();
        let first = estimator.on_sent(ms(0), 1000, 1000);
        estimator.on_packet_acknowledged(ms(10), &first, 1000, ms(0));
        estimator.finish_ack(Duration::ZERO);
        let second = estimator.on_sent(ms(5000), 1000, 1000);
        estimator.on_packet_acknowledged(ms(5010), &second, 1000, ms(5000));
        let sample = estimator.finish_ack(Duration::ZERO).unwrap();
        assert_eq!(sample.interval, Duration::from_millis(10));
    }

    #[test]
    fn lack_of_data_marks_one_round_trip() {
        let mut estimator = Estimator::new();
        let before = estimator.on_sent(ms(0), 1000, 1000);
        estimator.set_application_limited(1000);
        let during = estimator.on_sent(ms(1), 1000, 2000);
        assert!(!before.application_limited() && during.application_limited());
        estimator.on_packet_acknowledged(ms(10), &before, 1000, ms(0));
        assert!(!estimator.finish_ack(Duration::ZERO).unwrap().application_limited);
        assert!(estimator.is_application_limited());
        estimator.on_packet_acknowledged(ms(11), &during, 1000, ms(1));
        assert!(estimator.finish_ack(Duration::ZERO).unwrap().application_limited);
        assert!(
            !estimator.is_application_limited(),
            "the gap has left the network"
        );
    }

    #[test]
    fn counts_losses_since_transmission() {
        let mut estimator = Estimator::new();
        estimator.on_lost(u64::from(u32::MAX) - 500);
        let snapshot = estimator.on_sent(ms(0), 1000, 1000);
        estimator.on_lost(2000);
        assert_eq!(
            estimator.lost_since(&snapshot),
            2000,
            "across the wrap of 32 bits"
        );
        estimator.on_packet_acknowledged(ms(10), &snapshot, 1000, ms(0));
        assert_eq!(estimator.finish_ack(Duration::ZERO).unwrap().lost, 2000);
    }
}
