//! Counters of a connection, from the packets that it sends and receives. The library reports neither retransmissions nor
//! acknowledged bytes.

use std::collections::BTreeMap;

use foundation::{Duration, Instant};
use smallvec::SmallVec;
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
    /// Most packets have one.
    ranges: SmallVec<[Range; 1]>,
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

/// The 1-RTT packets of a path. Each path numbers its own (draft-ietf-quic-multipath-21, section 2).
#[derive(Debug)]
struct PathPackets {
    rtt: RttEstimator,
    /// Number of the next packet of each direction.
    next_sent: u64,
    next_received: u64,
    largest_acknowledged: Option<u64>,
    sent: BTreeMap<u64, Sent>,
    counters: PathCounters,
}

/// The payload of a path in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathCounters {
    /// Sent, retransmissions included.
    pub sent: u64,
    /// Acknowledged, each packet once.
    pub acknowledged: u64,
    /// Packets with payload that was sent before.
    pub retransmissions: u64,
}

impl Default for PathPackets {
    fn default() -> Self {
        Self {
            rtt: RttEstimator::new(Duration::ZERO),
            next_sent: 0,
            next_received: 0,
            largest_acknowledged: None,
            sent: BTreeMap::new(),
            counters: PathCounters::default(),
        }
    }
}

/// The counters of one end.
#[derive(Debug)]
pub(super) struct Ledger {
    statistics: Statistics,
    /// By path ID.
    paths: Vec<PathPackets>,
    /// Largest path ID for which the peer has issued connection IDs.
    largest_path: u64,
    /// The peer's limit of payload bytes.
    limit: u64,
    streams: Vec<StreamBytes>,
    /// Payload bytes of all streams, each counted once: sent, acknowledged and received.
    sent_bytes: u64,
    acknowledged_bytes: u64,
    received_bytes: u64,
}

impl Ledger {
    /// `limit` is the peer's limit of payload bytes at the start.
    pub(super) fn new(now: Instant, limit: u64) -> Self {
        Self {
            statistics: Statistics {
                opened_at: Some(now),
                ..Statistics::default()
            },
            paths: vec![PathPackets::default()],
            largest_path: 0,
            limit,
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

    /// Returns the round-trip times of the first path.
    pub(super) fn rtt(&self) -> &RttEstimator {
        &self.paths[0].rtt
    }

    /// Returns the counters of a path.
    pub(super) fn path(&self, path: u8) -> PathCounters {
        let packets = self.paths.get(usize::from(path));
        packets.map(|packets| packets.counters).unwrap_or_default()
    }

    /// Returns the round-trip times of a path, if it has packets.
    pub(super) fn rtt_of(&self, path: u8) -> Option<&RttEstimator> {
        self.paths.get(usize::from(path)).map(|packets| &packets.rtt)
    }

    /// Returns the largest path ID for which the peer has issued connection IDs.
    pub(super) const fn largest_path(&self) -> u64 {
        self.largest_path
    }

    /// Returns the payload bytes sent, each counted once.
    pub(super) const fn sent(&self) -> u64 {
        self.sent_bytes
    }

    /// Returns the payload bytes that the peer's limit allows in addition to those sent.
    pub(super) const fn credit(&self) -> u64 {
        self.limit.saturating_sub(self.sent_bytes)
    }

    fn packets(&mut self, path: u8) -> &mut PathPackets {
        let path = usize::from(path);
        if self.paths.len() <= path {
            self.paths.resize_with(path + 1, PathPackets::default);
        }
        &mut self.paths[path]
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

    /// Counts a datagram that leaves on a path. Returns its payload bytes.
    pub(super) fn sends(&mut self, now: Instant, path: u8, datagram: &[u8]) -> u32 {
        let mut payload = 0;
        wire::packets(datagram, |packet| {
            // Early data shares the packet numbers (RFC 9000, section 12.3).
            if !matches!(packet.kind, PacketType::OneRtt | PacketType::ZeroRtt) {
                return;
            }
            let number = packet.full_number(self.packets(path).next_sent);
            payload += self.sends_packet(now, path, number, packet.payload());
        });
        payload as u32
    }

    /// Counts a 1-RTT packet that leaves, by its frames in clear text. Returns its payload bytes.
    pub(super) fn sends_packet(&mut self, now: Instant, path: u8, number: u64, frames: &[u8]) -> u64 {
        self.packets(path).next_sent = number + 1;
        let mut ranges = SmallVec::new();
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
            Frame::Crypto { .. } | Frame::MaxData(_) | Frame::PathConnectionId(_) | Frame::Other(_) => {
                asks = true;
            }
            Frame::Padding | Frame::Close => {}
        });
        let payload = self.count(now, path, &ranges, unreliable);
        if asks {
            let sent = Sent {
                at: now,
                ranges,
                unreliable,
            };
            self.packets(path).sent.insert(number, sent);
        } else if has_ack {
            self.statistics.acknowledgements_sent += 1;
        }
        payload
    }

    /// Counts the payload of a packet that leaves. Returns its bytes.
    fn count(&mut self, now: Instant, path: u8, ranges: &[Range], unreliable: u64) -> u64 {
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
        let counters = &mut self.packets(path).counters;
        counters.sent += bytes;
        counters.retransmissions += u64::from(again > 0);
        let statistics = &mut self.statistics;
        statistics.packets_sent += 1;
        statistics.bytes_sent += bytes;
        statistics.retransmissions += u64::from(again > 0);
        statistics.bytes_retransmitted += again;
        statistics.first_data_at.get_or_insert(now);
        bytes
    }

    /// Counts a datagram that arrived on a path.
    pub(super) fn receives(&mut self, now: Instant, path: u8, datagram: &[u8]) {
        wire::packets(datagram, |packet| {
            // Early data shares the packet numbers (RFC 9000, section 12.3).
            if !matches!(packet.kind, PacketType::OneRtt | PacketType::ZeroRtt) {
                return;
            }
            let number = packet.full_number(self.packets(path).next_received);
            self.receives_packet(now, path, number, packet.payload());
        });
    }

    /// Counts a 1-RTT packet that arrived, by its frames in clear text.
    pub(super) fn receives_packet(&mut self, now: Instant, path: u8, number: u64, frames: &[u8]) {
        let next = &mut self.packets(path).next_received;
        *next = (*next).max(number + 1);
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
            Frame::MaxData(limit) => self.limit = self.limit.max(limit),
            Frame::PathConnectionId(path) => self.largest_path = self.largest_path.max(path),
            Frame::Padding | Frame::Close | Frame::Crypto { .. } | Frame::Other(_) => {}
        });
        self.received_bytes += new;
        if bytes > 0 {
            self.statistics.packets_received += 1;
            self.statistics.duplicates_received += u64::from(new == 0);
        }
    }

    fn acknowledge(&mut self, now: Instant, ack: &Ack<'_>) {
        let path = usize::try_from(ack.path.unwrap_or(0)).unwrap_or(usize::MAX);
        let Some(packets) = self.paths.get_mut(path).filter(|it| ack.largest < it.next_sent) else {
            return;
        };
        let before = packets.largest_acknowledged;
        let is_newest = before.is_none_or(|before| ack.largest > before);
        if is_newest && let Some(sent) = packets.sent.get(&ack.largest) {
            let rtt = now - sent.at;
            packets.rtt.sample(now, rtt);
            self.statistics.record_rtt(rtt);
        }
        let (mut ranges, mut unreliable) = (SmallVec::<[Range; 4]>::new(), 0);
        ack.ranges(|low, high| {
            while let Some((&number, _)) = packets.sent.range(low..=high).next()
                && let Some(sent) = packets.sent.remove(&number)
            {
                unreliable += sent.unreliable;
                ranges.extend(sent.ranges);
            }
        });
        if is_newest {
            packets.largest_acknowledged = Some(ack.largest);
            let remembered = ack.largest.saturating_sub(REMEMBERED);
            while let Some(oldest) = packets
                .sent
                .first_entry()
                .filter(|entry| *entry.key() < remembered)
            {
                oldest.remove();
            }
        }
        packets.counters.acknowledged +=
            ranges.iter().map(|range| range.end - range.start).sum::<u64>() + unreliable;
        let (mut new, mut in_order) = (0, 0);
        for range in ranges {
            let stream = self.stream(range.stream);
            let acknowledged = &mut stream.acknowledged;
            acknowledged.insert(range.start, range.end, |start, end| new += end - start);
            let first = acknowledged.first().filter(|&(start, _)| start == 0);
            let prefix = first.map_or(0, |(_, end)| end);
            in_order += prefix - stream.prefix;
            stream.prefix = prefix;
        }
        if new + unreliable > 0 {
            self.acknowledged_bytes += new;
            self.statistics.last_acknowledged_at = Some(now);
            self.statistics.bytes_acknowledged += in_order + unreliable;
        }
    }
}

/// Returns the number of a stream that the client opened: all are for both directions, or all for one (RFC 9000, section 2.1).
const fn number_of(id: u64) -> usize {
    (id >> 2) as usize
}
