//! Options of the TCP header (RFC 9293 section 3.2, RFC 7323, RFC 2018, RFC 7413, RFC 1644).

use super::accurate_ecn::{ByteCounters, option_room};
use super::fast_open::FastOpen;
use super::sequence::SequenceNumber;
use super::ttcp::Count;

/// MSS of a peer that announces none (RFC 9293, section 3.7.1).
pub(super) const DEFAULT_MSS: u32 = 536;

/// The timestamps option (RFC 7323, section 3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timestamps {
    /// `TSval`: the sender's clock.
    pub value: u32,
    /// `TSecr`: the echo of the peer's clock, or 0.
    pub echo: u32,
}

/// Returns the bytes of the timestamps option with its padding (RFC 7323, appendix A); 0 without it.
pub(super) const fn timestamps_room(has_timestamps: bool) -> u32 {
    if has_timestamps { 12 } else { 0 }
}

/// A SACK block: bytes from the first number up to but not including the second (RFC 2018, section 3).
pub type SackBlock = (SequenceNumber, SequenceNumber);

/// Bytes of a SACK block in a header.
pub(super) const SACK_BLOCK_LENGTH: u32 = 8;

/// The blocks of a SACK option, at most four. So that segments stay small, the same bytes store two rarer options: in a
/// SYN or SYN-ACK, which has no blocks, the [`OpeningOptions`], and in place of the fourth block, for which it leaves no
/// room, the AccECN option.
#[derive(Clone, Copy, Default)]
pub struct SackBlocks {
    /// Number of blocks, or [`OPENING`].
    count: u8,
    /// Description of the AccECN option, or 0, and the last byte of its counters.
    counters: u8,
    last_counter_byte: u8,
    blocks: [SackBlock; 4],
}

/// Marks blocks that store [`OpeningOptions`]: the echoed count, flags and the cookie's length, and the cookie.
const OPENING: u8 = 0x80;
/// Flags: the count is new; there is a Fast Open option; it has the experimental kind. The bits below are the cookie's length.
const IS_NEW: u32 = 0x100;
const FAST_OPEN: u32 = 0x200;
const EXPERIMENTAL: u32 = 0x400;

/// Options that only a SYN or SYN-ACK of an early connection carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpeningOptions {
    /// Fast Open cookie or cookie request (RFC 7413, section 2).
    pub fast_open: Option<FastOpen>,
    /// The Fast Open option has the experimental kind 254 with the magic number 0xF989 (RFC 7413, appendix A).
    pub experimental: bool,
    /// The count is sent as CC.NEW: it may be lower than earlier ones (RFC 1644, section 3.1).
    pub count_is_new: bool,
    /// Echo of the peer's count: CC.ECHO (RFC 1644, section 3.1).
    pub count_echo: Option<Count>,
}

impl SackBlocks {
    /// No blocks.
    pub const EMPTY: Self = Self {
        count: 0,
        counters: 0,
        last_counter_byte: 0,
        blocks: [(SequenceNumber(0), SequenceNumber(0)); 4],
    };

    fn of_opening(opening: OpeningOptions) -> Self {
        let cookie = opening.fast_open.as_ref().map_or(&[][..], FastOpen::cookie_bytes);
        let mut bytes = [0; 16];
        bytes[..cookie.len()].copy_from_slice(cookie);
        let number = |at: usize| {
            SequenceNumber(u32::from_be_bytes([
                bytes[at],
                bytes[at + 1],
                bytes[at + 2],
                bytes[at + 3],
            ]))
        };
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let flags = cookie.len() as u32
            | flag(opening.count_is_new, IS_NEW)
            | flag(opening.fast_open.is_some(), FAST_OPEN)
            | flag(opening.experimental, EXPERIMENTAL);
        let echo = opening.count_echo.map_or(0, Count::get);
        Self {
            count: OPENING,
            counters: 0,
            last_counter_byte: 0,
            blocks: [
                (SequenceNumber(echo), SequenceNumber(flags)),
                (number(0), number(4)),
                (number(8), number(12)),
                Default::default(),
            ],
        }
    }

    fn opening(&self) -> OpeningOptions {
        if self.count != OPENING {
            return OpeningOptions::default();
        }
        let [(echo, flags), (a, b), (c, d), _] = self.blocks;
        let mut bytes = [0; 16];
        for (place, number) in bytes.chunks_mut(4).zip([a, b, c, d]) {
            place.copy_from_slice(&number.0.to_be_bytes());
        }
        let length = (flags.0 & 0xff) as usize;
        OpeningOptions {
            fast_open: (flags.0 & FAST_OPEN != 0)
                .then(|| FastOpen::from_cookie_bytes(&bytes[..length]))
                .flatten(),
            experimental: flags.0 & EXPERIMENTAL != 0,
            count_is_new: flags.0 & IS_NEW != 0,
            count_echo: Count::new(echo.0),
        }
    }

    /// Adds a block and returns whether there was room.
    pub fn push(&mut self, block: SackBlock) -> bool {
        let most = self.blocks.len() - usize::from(self.counters != 0);
        let room = usize::from(self.count) < most;
        if room {
            self.blocks[usize::from(self.count)] = block;
            self.count += 1;
        }
        room
    }

    /// Sets the AccECN option (RFC 9768, section 3.2.3) and removes a fourth block.
    pub fn set_counters(&mut self, counters: ByteCounters) {
        let ([a, b, c, d, e, f, g, h, last], description) = counters.pack();
        self.blocks[3] = (
            SequenceNumber(u32::from_be_bytes([a, b, c, d])),
            SequenceNumber(u32::from_be_bytes([e, f, g, h])),
        );
        (self.counters, self.last_counter_byte) = (description, last);
        if self.count != OPENING {
            self.count = self.count.min(3);
        }
    }

    /// Returns the AccECN option.
    #[inline]
    #[must_use]
    pub fn counters(&self) -> Option<ByteCounters> {
        if self.counters == 0 {
            return None;
        }
        let (first, second) = self.blocks[3];
        let [a, b, c, d] = first.0.to_be_bytes();
        let [e, f, g, h] = second.0.to_be_bytes();
        ByteCounters::unpack([a, b, c, d, e, f, g, h, self.last_counter_byte], self.counters)
    }

    /// Returns the blocks in the order of the header.
    #[must_use]
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..self.len()]
    }

    /// Returns the number of blocks.
    #[must_use]
    pub const fn len(&self) -> usize {
        if self.count == OPENING {
            0
        } else {
            self.count as usize
        }
    }

    /// Whether there are no blocks.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl PartialEq for SackBlocks {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
            && self.opening() == other.opening()
            && self.counters() == other.counters()
    }
}

impl Eq for SackBlocks {}

impl std::fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.count == OPENING {
            return self.opening().fmt(f);
        }
        let mut list = f.debug_list();
        list.entries(self.as_slice().iter().map(|(start, end)| start.0..end.0));
        if let Some(counters) = self.counters() {
            list.entry(&counters);
        }
        list.finish()
    }
}

impl FromIterator<SackBlock> for SackBlocks {
    /// Collects the first four blocks.
    fn from_iter<I: IntoIterator<Item = SackBlock>>(blocks: I) -> Self {
        let mut all = Self::EMPTY;
        for block in blocks {
            if !all.push(block) {
                break;
            }
        }
        all
    }
}

/// Bytes of CC, CC.NEW or CC.ECHO in a header, with the two NOPs that align the number.
pub(super) const COUNT_LENGTH: u32 = 8;

/// Options of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size, in a SYN (RFC 9293, section 3.7.1).
    pub mss: Option<u16>,
    /// Window scale shift, in a SYN (RFC 7323, section 2.2).
    pub window_scale: Option<u8>,
    /// SACK permitted, in a SYN (RFC 2018, section 2).
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// SACK blocks, most recent first, after a DSACK block (RFC 2883).
    pub sack: SackBlocks,
    /// Connection count of the sender: CC or CC.NEW (RFC 1644, section 3.1).
    pub count: Option<Count>,
}

impl Options {
    /// Returns the options of an early connection.
    #[must_use]
    pub fn opening(&self) -> OpeningOptions {
        self.sack.opening()
    }

    /// Sets the options of an early connection and removes SACK blocks.
    pub fn set_opening(&mut self, opening: OpeningOptions) {
        let counters = self.sack.counters();
        self.sack = SackBlocks::of_opening(opening);
        if let Some(counters) = counters {
            self.sack.set_counters(counters);
        }
    }

    /// Returns the bytes of the options in a header. As in common stacks, options are packed tightly in a SYN, and otherwise
    /// each is padded with leading NOPs to a multiple of four bytes (RFC 7323, appendix A).
    #[inline]
    #[must_use]
    pub fn encoded_length(&self) -> u32 {
        let mut length = 0;
        if self.mss.is_some() {
            length += 4;
        }
        // SACK-permitted replaces the two NOPs of timestamps; alone it has two NOPs itself.
        length += match (self.timestamps.is_some(), self.sack_permitted) {
            (true, _) => 12,
            (false, true) => 4,
            (false, false) => 0,
        };
        if self.window_scale.is_some() {
            length += 4;
        }
        if self.count.is_some() {
            length += COUNT_LENGTH;
        }
        if self.sack.counters != 0 {
            length += self.encoded_counters_length();
        }
        match self.sack.count {
            0 => length,
            OPENING => length + self.encoded_opening_length(),
            count => length + 4 + SACK_BLOCK_LENGTH * u32::from(count),
        }
    }

    /// Returns the bytes of the AccECN option with its padding.
    #[cold]
    fn encoded_counters_length(&self) -> u32 {
        let fields = self.sack.counters().map_or(0, |counters| counters.values().len());
        option_room(fields, self.has_alignment())
    }

    /// Whether two NOPs before SACK blocks or SACK-permitted align them, which can be part of the AccECN option.
    pub(super) fn has_alignment(&self) -> bool {
        !self.sack.is_empty() || self.sack_permitted && self.timestamps.is_none()
    }

    /// Returns the bytes of the options of an early connection.
    #[cold]
    fn encoded_opening_length(&self) -> u32 {
        let mut length = 0;
        let opening = self.opening();
        if opening.count_echo.is_some() {
            length += COUNT_LENGTH;
        }
        if let Some(fast_open) = &opening.fast_open {
            let header = if opening.experimental { 4 } else { 2 };
            length += (header + fast_open.cookie_bytes().len() as u32).next_multiple_of(4);
        }
        length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_length_matches_the_wire_format() {
        let timestamps = Some(Timestamps::default());
        let syn = Options {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps,
            ..Options::default()
        };
        assert_eq!(syn.encoded_length(), 20, "mss, sackOK, timestamps, nop, wscale");
        let block = (SequenceNumber(1), SequenceNumber(2));
        let ack = |blocks, timestamps| Options {
            timestamps,
            sack: std::iter::repeat_n(block, blocks).collect(),
            ..Options::default()
        };
        assert_eq!(ack(0, timestamps).encoded_length(), 12, "RFC 7323, appendix A");
        assert_eq!(
            ack(3, timestamps).encoded_length(),
            40,
            "RFC 2018, section 3: three next to timestamps"
        );
        assert_eq!(ack(4, None).encoded_length(), 36);
    }

    #[test]
    fn the_fourth_block_makes_way_for_counters() {
        let block = (SequenceNumber(1), SequenceNumber(2));
        let mut blocks: SackBlocks = std::iter::repeat_n(block, 4).collect();
        let counters = ByteCounters::new(true, &[0xab_cdef, 0, 0xff_ffff]);
        blocks.set_counters(counters);
        assert_eq!((blocks.len(), blocks.counters()), (3, Some(counters)));
        assert!(!blocks.push(block));
        let mut options = Options {
            sack: blocks,
            ..Options::default()
        };
        assert_eq!(
            options.encoded_length(),
            12 + 4 + 24,
            "11 bytes, 3 NOPs before SACK"
        );
        let opening = OpeningOptions {
            count_echo: Count::new(5),
            ..OpeningOptions::default()
        };
        options.set_opening(opening);
        assert_eq!(
            (options.opening(), options.sack.counters()),
            (opening, Some(counters))
        );
    }

    #[test]
    fn rejects_a_fifth_block() {
        let block = (SequenceNumber(1), SequenceNumber(2));
        let mut blocks: SackBlocks = std::iter::repeat_n(block, 9).collect();
        assert_eq!(blocks.len(), 4);
        assert!(!blocks.push(block));
    }
}
