//! Counters of a connection, from the packets that it sends and receives. The library reports neither retransmissions nor
//! acknowledged bytes.

use std::collections::BTreeMap;

use foundation::{Duration, Instant};
use transport::Statistics;
use transport::ranges::RangeSet;
use transport::rtt::RttEstimator;

use crate::wire::{self, Ack, Frame, PacketType};

/// Unacknowledged packets this far below the newest acknowledged one are lost, and forgotten.
const REMEMBERED: u64 = 1 << 16;

/// A 1-RTT packet that asks for an acknowledgement.
#[derive(Debug)]
struct Sent {
    at: Instant,
    /// Offsets of the stream's payload, start and end.
    ranges: Vec<(u64, u64)>,
}

/// The counters of one end.
#[derive(Debug)]
pub(super) struct Ledger {
    statistics: Statistics,
    rtt: RttEstimator,
    /// Number of the next 1-RTT packet of each direction.
    next_sent: u64,
    next_received: u64,
    largest_acknowledged: Option<u64>,
    sent: BTreeMap<u64, Sent>,
    /// End of the payload sent so far.
    highest_sent: u64,
    acknowledged: RangeSet,
    received: RangeSet,
}

impl Ledger {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            statistics: Statistics {
                opened_at: Some(now),
                ..Statistics::default()
            },
            rtt: RttEstimator::new(Duration::ZERO),
            next_sent: 0,
            next_received: 0,
            largest_acknowledged: None,
            sent: BTreeMap::new(),
            highest_sent: 0,
            acknowledged: RangeSet::default(),
            received: RangeSet::default(),
        }
    }

    pub(super) const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    pub(super) const fn statistics_mut(&mut self) -> &mut Statistics {
        &mut self.statistics
    }

    pub(super) const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Returns the payload bytes that arrived, each counted once.
    pub(super) fn received(&self) -> u64 {
        self.received.total()
    }

    /// Returns the payload bytes sent and not acknowledged.
    pub(super) fn in_flight(&self) -> u64 {
        self.highest_sent - self.acknowledged.total()
    }

    /// Counts a datagram that leaves. Returns its payload bytes.
    pub(super) fn sends(&mut self, now: Instant, datagram: &[u8]) -> u32 {
        let mut payload = 0;
        wire::packets(datagram, |packet| {
            if packet.kind != PacketType::OneRtt {
                return;
            }
            let number = packet.full_number(self.next_sent);
            self.next_sent = number + 1;
            let mut ranges = Vec::new();
            let (mut asks, mut has_ack) = (false, false);
            packet.frames(|frame| match frame {
                Frame::Stream { offset, length, .. } => {
                    asks = true;
                    ranges.push((offset, offset + length));
                }
                Frame::Ack(_) => has_ack = true,
                Frame::Other => asks = true,
                Frame::Padding | Frame::Close => {}
            });
            payload += self.count(now, &ranges);
            if asks {
                self.sent.insert(number, Sent { at: now, ranges });
            } else if has_ack {
                self.statistics.acknowledgements_sent += 1;
            }
        });
        payload as u32
    }

    /// Counts the payload of a packet that leaves. Returns its bytes.
    fn count(&mut self, now: Instant, ranges: &[(u64, u64)]) -> u64 {
        let bytes: u64 = ranges.iter().map(|(start, end)| end - start).sum();
        if bytes == 0 {
            return 0;
        }
        let again: u64 = ranges
            .iter()
            .map(|&(start, end)| end.min(self.highest_sent).saturating_sub(start))
            .sum();
        let end = ranges.iter().map(|&(_, end)| end).max();
        self.highest_sent = self.highest_sent.max(end.unwrap_or(0));
        let statistics = &mut self.statistics;
        statistics.packets_sent += 1;
        statistics.bytes_sent += bytes;
        statistics.retransmissions += u64::from(again > 0);
        statistics.bytes_retransmitted += again;
        statistics.first_data_at.get_or_insert(now);
        bytes
    }

    /// Counts a datagram that arrived.
    pub(super) fn receives(&mut self, now: Instant, datagram: &[u8]) {
        wire::packets(datagram, |packet| {
            if packet.kind != PacketType::OneRtt {
                return;
            }
            let number = packet.full_number(self.next_received);
            self.next_received = self.next_received.max(number + 1);
            let (mut bytes, mut new) = (0, 0);
            packet.frames(|frame| match frame {
                Frame::Stream { offset, length, .. } => {
                    bytes += length;
                    self.received
                        .insert(offset, offset + length, |start, end| new += end - start);
                }
                Frame::Ack(ack) => self.acknowledge(now, &ack),
                Frame::Padding | Frame::Close | Frame::Other => {}
            });
            if bytes > 0 {
                self.statistics.packets_received += 1;
                self.statistics.duplicates_received += u64::from(new == 0);
            }
        });
    }

    fn acknowledge(&mut self, now: Instant, ack: &Ack<'_>) {
        if ack.largest >= self.next_sent {
            return;
        }
        let is_newest = self
            .largest_acknowledged
            .is_none_or(|before| ack.largest > before);
        if is_newest && let Some(sent) = self.sent.get(&ack.largest) {
            let rtt = now - sent.at;
            self.rtt.sample(now, rtt);
            self.statistics.record_rtt(rtt);
        }
        let mut new = 0;
        ack.ranges(|low, high| {
            while let Some((&number, _)) = self.sent.range(low..=high).next() {
                let sent = self.sent.remove(&number);
                for (start, end) in sent.into_iter().flat_map(|sent| sent.ranges) {
                    self.acknowledged
                        .insert(start, end, |start, end| new += end - start);
                }
            }
        });
        if new > 0 {
            self.statistics.last_acknowledged_at = Some(now);
            let first = self.acknowledged.first().filter(|&(start, _)| start == 0);
            self.statistics.bytes_acknowledged = first.map_or(0, |(_, end)| end);
        }
        if is_newest {
            self.largest_acknowledged = Some(ack.largest);
            self.sent = self.sent.split_off(&ack.largest.saturating_sub(REMEMBERED));
        }
    }
}
