//! The data of one sender that its receiver has not acknowledged.

use std::collections::VecDeque;

use foundation::{Duration, Instant};

/// Segments that are kept; a capture without ACKs has no more than these.
const MOST_SEGMENTS: usize = 1 << 16;

/// A range of the stream, as captured.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// First byte.
    pub start: u64,
    /// Byte after the last one.
    pub end: u64,
    /// Time of the last transmission, or of the detection of the hole.
    pub time: Instant,
    /// Frame of the last transmission; 0 for a hole.
    pub frame: u64,
    /// Number of its first packet among those of its sender, from 1. A hole counts as full segments.
    pub ordinal: u64,
    /// Bytes in flight with it when it was first sent, or when the hole was detected.
    pub flight: u64,
    /// Whether it was captured more than once.
    pub is_repeated: bool,
    /// Whether a SACK block covered it.
    pub is_sacked: bool,
    /// Whether it was never captured, although later data was.
    pub is_hole: bool,
}

/// What an acknowledgement or a SACK block covered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Covered {
    /// Bytes that were neither acknowledged nor sacked before.
    pub bytes: u64,
    /// Bytes that were acknowledged without having been captured.
    pub unseen: u64,
    /// The latest transmission among those captured once, for samples of the RTT.
    pub newest: Option<Instant>,
    /// Whether a segment was captured again and its first transmission had arrived, or it is not known which arrived.
    pub has_repeated: bool,
}

/// What a retransmission repeats or fills.
#[derive(Clone, Copy, Debug, Default)]
pub struct Repeated {
    /// The first segment of the range, as it was before.
    pub before: Option<Sent>,
    /// Bytes of holes that it fills.
    pub filled: u64,
}

/// Data of one sender in flight, in the order of the stream.
#[derive(Clone, Debug, Default)]
pub struct Outstanding {
    segments: VecDeque<Sent>,
    sacked: u64,
}

impl Outstanding {
    /// Adds a segment at the end of the stream.
    pub fn push(&mut self, sent: Sent) {
        if self.segments.len() == MOST_SEGMENTS {
            self.drop_first();
        }
        self.segments.push_back(sent);
    }

    fn drop_first(&mut self) {
        if let Some(first) = self.segments.pop_front()
            && first.is_sacked
        {
            self.sacked -= first.end - first.start;
        }
    }

    /// Returns the bytes that SACK blocks cover.
    pub const fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Whether one captured segment is in flight.
    pub fn is_single(&self) -> bool {
        self.segments.len() == 1 && self.segments.front().is_some_and(|one| !one.is_hole)
    }

    /// Whether the sender waited at least `pause` after a time before it sent the first segment that is still in flight.
    pub fn is_paused_after(&self, time: Instant, pause: Duration) -> bool {
        self.segments
            .front()
            .is_none_or(|next| next.time.saturating_since(time) >= pause)
    }

    /// Takes data of a range that was sent before, or that fills holes. The rest of a hole stays one.
    pub fn repeat(&mut self, (start, end): (u64, u64), time: Instant, frame: u64, mss: u32) -> Repeated {
        self.split(start, mss);
        self.split(end, mss);
        let first = self.segments.partition_point(|one| one.end <= start);
        let mut found = Repeated::default();
        for one in self.segments.range_mut(first..).take_while(|one| one.start < end) {
            found.before.get_or_insert(*one);
            if one.is_hole {
                found.filled += one.end - one.start;
            }
            one.is_repeated |= !one.is_hole;
            one.is_hole = false;
            one.time = time;
            one.frame = frame;
        }
        found
    }

    /// Splits the hole that contains a position.
    fn split(&mut self, position: u64, mss: u32) {
        let place = self.segments.partition_point(|one| one.end <= position);
        if let Some(one) = self.segments.get_mut(place)
            && one.is_hole
            && one.start < position
        {
            let rest = Sent {
                start: position,
                ordinal: one.ordinal + (position - one.start) / u64::from(mss),
                ..*one
            };
            one.end = position;
            self.segments.insert(place + 1, rest);
        }
    }

    /// Takes a cumulative acknowledgement.
    pub fn acknowledge(&mut self, number: u64) -> Covered {
        let mut covered = Covered::default();
        while let Some(first) = self.segments.front_mut() {
            if first.start >= number {
                break;
            }
            let end = first.end.min(number);
            let bytes = end - first.start;
            if first.is_sacked {
                self.sacked -= bytes;
            } else {
                covered.bytes += bytes;
            }
            if first.is_hole {
                covered.unseen += bytes;
            } else if first.is_repeated {
                covered.has_repeated = true;
            } else if !first.is_sacked {
                covered.newest = covered.newest.max(Some(first.time));
            }
            if first.end > number {
                first.start = number;
                break;
            }
            self.segments.pop_front();
        }
        covered
    }

    /// Takes a SACK block.
    pub fn sack(&mut self, start: u64, end: u64) -> Covered {
        let mut covered = Covered::default();
        let first = self.segments.partition_point(|one| one.start < start);
        for one in self.segments.range_mut(first..).take_while(|one| one.end <= end) {
            if !one.is_sacked {
                one.is_sacked = true;
                let bytes = one.end - one.start;
                self.sacked += bytes;
                covered.bytes += bytes;
                if one.is_hole {
                    covered.unseen += bytes;
                } else if one.is_repeated {
                    covered.has_repeated = true;
                } else {
                    covered.newest = covered.newest.max(Some(one.time));
                }
            }
        }
        covered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(start: u64, end: u64, millis: u64) -> Sent {
        Sent {
            start,
            end,
            time: Instant::from_nanos(millis * 1_000_000),
            frame: millis,
            ordinal: millis,
            flight: end,
            is_repeated: false,
            is_sacked: false,
            is_hole: false,
        }
    }

    #[test]
    fn acknowledgements_cover_each_byte_once() {
        let mut data = Outstanding::default();
        for number in 0..4 {
            data.push(sent(number * 100, number * 100 + 100, number));
        }
        assert_eq!(data.sack(200, 300).bytes, 100);
        assert_eq!(data.sacked(), 100);
        assert_eq!(data.sack(200, 400).bytes, 100);
        let covered = data.acknowledge(350);
        assert_eq!(covered.bytes, 200);
        assert_eq!(data.sacked(), 50);
        assert_eq!(data.acknowledge(400).bytes, 0);
        assert_eq!(data.sacked(), 0);
    }

    #[test]
    fn a_repeated_segment_gives_no_sample() {
        let mut data = Outstanding::default();
        data.push(sent(0, 100, 1));
        data.push(sent(100, 200, 2));
        let found = data.repeat((0, 100), Instant::from_nanos(9_000_000), 9, 100);
        assert_eq!(found.before.map(|one| one.frame), Some(1));
        let covered = data.acknowledge(100);
        assert!(covered.has_repeated && covered.newest.is_none());
        assert_eq!(data.acknowledge(200).newest, Some(Instant::from_nanos(2_000_000)));
    }

    #[test]
    fn a_hole_is_filled_piece_by_piece() {
        let mut data = Outstanding::default();
        data.push(Sent {
            is_hole: true,
            ..sent(0, 300, 1)
        });
        data.push(sent(300, 400, 1));
        let now = Instant::from_nanos(9_000_000);
        for (start, filled) in [(100, 100), (0, 100), (100, 0), (200, 100)] {
            let found = data.repeat((start, start + 100), now, 9, 100);
            assert_eq!(found.filled, filled, "{start}");
            let ordinal = found.before.map(|one| one.ordinal);
            assert_eq!(ordinal, Some(1 + start / 100), "of the first packet");
        }
        assert_eq!(data.acknowledge(400).unseen, 0);
    }

    #[test]
    fn data_that_was_not_captured_is_counted_when_acknowledged() {
        let mut data = Outstanding::default();
        data.push(Sent {
            is_hole: true,
            ..sent(0, 100, 1)
        });
        data.push(sent(100, 200, 1));
        assert_eq!(data.acknowledge(200).unseen, 100);
    }
}
