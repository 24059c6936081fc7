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
    ranges: Vec<Range>,
    /// Payload bytes of DATAGRAM frames.
    unreliable: u64,
}

/// Payload of a stream.
#[derive(Clone, Copy, Debug)]
struct Range {
    /// Number of the stream.
    stream: usize,
    start: u64,
    end: u64,
}

/// The payload of a stream in both directions.
#[derive(Debug, Default)]
struct StreamBytes {
    /// End of the payload sent so far.
    highest_sent: u64,
    acknowledged: RangeSet,
    /// Payload acknowledged without a gap.
    prefix: u64,
    received: RangeSet,
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
    streams: Vec<StreamBytes>,
    /// Payload bytes of all streams, each counted once: sent, acknowledged and received.
    sent_bytes: u64,
    acknowledged_bytes: u64,
    received_bytes: u64,
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
            streams: Vec::new(),
            sent_bytes: 0,
            acknowledged_bytes: 0,
            received_bytes: 0,
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
    pub(super) const fn received(&self) -> u64 {
        self.received_bytes
    }

    /// Returns the payload bytes of streams sent and not acknowledged.
    pub(super) const fn in_flight(&self) -> u64 {
        self.sent_bytes - self.acknowledged_bytes
    }

    /// Returns the bytes of a stream.
    fn stream(&mut self, number: usize) -> &mut StreamBytes {
        if self.streams.len() <= number {
            self.streams.resize_with(number + 1, StreamBytes::default);
        }
        &mut self.streams[number]
    }

    /// Counts a datagram that leaves. Returns its payload bytes.
    pub(super) fn sends(&mut self, now: Instant, datagram: &[u8]) -> u32 {
        let mut payload = 0;
        wire::packets(datagram, |packet| {
            // Early data shares the packet numbers (RFC 9000, section 12.3).
            if !matches!(packet.kind, PacketType::OneRtt | PacketType::ZeroRtt) {
                return;
            }
            let number = packet.full_number(self.next_sent);
            payload += self.sends_packet(now, number, packet.payload());
        });
        payload as u32
    }

    /// Counts a 1-RTT packet that leaves, by its frames in clear text. Returns its payload bytes.
    pub(super) fn sends_packet(&mut self, now: Instant, number: u64, frames: &[u8]) -> u64 {
        self.next_sent = number + 1;
        let mut ranges = Vec::new();
        let (mut asks, mut has_ack, mut unreliable) = (false, false, 0);
        wire::frames(frames, |frame| match frame {
            Frame::Stream {
                id, offset, length, ..
            } => {
                asks = true;
                ranges.push(Range {
                    stream: number_of(id),
                    start: offset,
                    end: offset + length,
                });
            }
            Frame::Datagram { length } => {
                asks = true;
                unreliable += length;
            }
            Frame::Ack(_) => has_ack = true,
            Frame::Crypto { .. } | Frame::Other(_) => asks = true,
            Frame::Padding | Frame::Close => {}
        });
        let payload = self.count(now, &ranges, unreliable);
        if asks {
            let sent = Sent {
                at: now,
                ranges,
                unreliable,
            };
            self.sent.insert(number, sent);
        } else if has_ack {
            self.statistics.acknowledgements_sent += 1;
        }
        payload
    }

    /// Counts the payload of a packet that leaves. Returns its bytes.
    fn count(&mut self, now: Instant, ranges: &[Range], unreliable: u64) -> u64 {
        let of_streams: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        let bytes = of_streams + unreliable;
        if bytes == 0 {
            return 0;
        }
        let mut new = 0;
        for range in ranges {
            let highest = &mut self.stream(range.stream).highest_sent;
            new += range.end.saturating_sub(range.start.max(*highest));
            *highest = range.end.max(*highest);
        }
        self.sent_bytes += new;
        let again = of_streams - new;
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
            // Early data shares the packet numbers (RFC 9000, section 12.3).
            if !matches!(packet.kind, PacketType::OneRtt | PacketType::ZeroRtt) {
                return;
            }
            let number = packet.full_number(self.next_received);
            self.receives_packet(now, number, packet.payload());
        });
    }

    /// Counts a 1-RTT packet that arrived, by its frames in clear text.
    pub(super) fn receives_packet(&mut self, now: Instant, number: u64, frames: &[u8]) {
        self.next_received = self.next_received.max(number + 1);
        let (mut bytes, mut new) = (0, 0);
        wire::frames(frames, |frame| match frame {
            Frame::Stream {
                id, offset, length, ..
            } => {
                bytes += length;
                let received = &mut self.stream(number_of(id)).received;
                received.insert(offset, offset + length, |start, end| new += end - start);
            }
            // The library passes a DATAGRAM frame to the application at once, and a packet once.
            Frame::Datagram { length } => {
                bytes += length;
                new += length;
            }
            Frame::Ack(ack) => self.acknowledge(now, &ack),
            Frame::Padding | Frame::Close | Frame::Crypto { .. } | Frame::Other(_) => {}
        });
        self.received_bytes += new;
        if bytes > 0 {
            self.statistics.packets_received += 1;
            self.statistics.duplicates_received += u64::from(new == 0);
        }
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
        let (mut new, mut in_order, mut unreliable) = (0, 0, 0);
        ack.ranges(|low, high| {
            while let Some((&number, _)) = self.sent.range(low..=high).next() {
                let sent = self.sent.remove(&number);
                unreliable += sent.as_ref().map_or(0, |sent| sent.unreliable);
                for range in sent.into_iter().flat_map(|sent| sent.ranges) {
                    let stream = self.stream(range.stream);
                    let acknowledged = &mut stream.acknowledged;
                    acknowledged.insert(range.start, range.end, |start, end| new += end - start);
                    let first = acknowledged.first().filter(|&(start, _)| start == 0);
                    let prefix = first.map_or(0, |(_, end)| end);
                    in_order += prefix - stream.prefix;
                    stream.prefix = prefix;
                }
            }
        });
        if new + unreliable > 0 {
            self.acknowledged_bytes += new;
            self.statistics.last_acknowledged_at = Some(now);
            self.statistics.bytes_acknowledged += in_order + unreliable;
        }
        if is_newest {
            self.largest_acknowledged = Some(ack.largest);
            self.sent = self.sent.split_off(&ack.largest.saturating_sub(REMEMBERED));
        }
    }
}

/// Returns the number of a stream that the client opened: all are for both directions, or all for one (RFC 9000, section 2.1).
const fn number_of(id: u64) -> usize {
    (id >> 2) as usize
}
