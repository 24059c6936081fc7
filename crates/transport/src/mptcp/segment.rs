//! Segments of a multipath connection: a TCP segment, which subflow it is of, and its option (RFC 8684, section 3).

use crate::tcp;
use crate::tcp::wire::MAX_OPTIONS;

/// One of the ways between two hosts, as the owner of their connections numbers them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathIndex(pub u8);

impl PathIndex {
    /// The number as an index of slices.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Whose token it is: the most significant 32 bits of the SHA-256 of a host's key (RFC 8684, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// The token of this key, not computed yet.
    Of(u64),
    /// The token itself, as it came from bytes.
    Bits(u32),
}

/// An HMAC-SHA256 that shows that its sender knows both keys (RFC 8684, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// What it is computed of: the keys and the random numbers, the prover's first; not computed yet.
    Of {
        /// Keys.
        keys: (u64, u64),
        /// Random numbers of this handshake.
        nonces: (u32, u32),
    },
    /// Its first 64 bits in an answer, its first 160 in the third segment, as they came from bytes.
    Bits([u8; 20]),
}

/// Where payload belongs (RFC 8684, section 3.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// Position of its first byte in the data: 1 is the first byte, whose number is one above the initial one.
    pub data: u64,
    /// Position in the subflow's stream: 1 is its first byte. 0 for a DATA_FIN without payload.
    pub subflow: u32,
    /// Bytes, a DATA_FIN not counted.
    pub length: u32,
}

/// The option of a segment. Numbers of data are positions; the wire form adds the initial data sequence number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Option {
    /// None: a segment of plain TCP.
    #[default]
    None,
    /// MP_CAPABLE (section 3.1): without a key in a SYN, with the sender's in the answer, with both from then on.
    Capable {
        /// The sender's key.
        sender: std::option::Option<u64>,
        /// The receiver's key.
        receiver: std::option::Option<u64>,
        /// With payload, which is then the data from position 1 on.
        length: u32,
    },
    /// MP_JOIN in a SYN (section 3.2, figure 5).
    JoinSyn {
        /// The connection, by the token of the receiver's key.
        token: Token,
        /// The sender's random number.
        nonce: u32,
        /// The sender's address, by the number that the two hosts call it by.
        address: u8,
        /// Use it only where no other can be used.
        backup: bool,
    },
    /// MP_JOIN in the answer (figure 6).
    JoinAnswer {
        /// That the sender knows the keys.
        proof: Proof,
        /// The sender's random number.
        nonce: u32,
        /// The sender's address.
        address: u8,
        /// Use it only where no other can be used.
        backup: bool,
    },
    /// MP_JOIN in the third segment (figure 7).
    JoinThird {
        /// That the sender knows the keys.
        proof: Proof,
    },
    /// DSS (section 3.3).
    Dss {
        /// DATA_ACK: the position that is expected next.
        acknowledgement: u64,
        /// Where the payload belongs, or where a lone DATA_FIN stands.
        mapping: std::option::Option<Mapping>,
        /// DATA_FIN: the data ends after the mapping.
        fin: bool,
    },
    /// MP_PRIO (section 3.3.8): whether the subflow is a backup from now on.
    Priority {
        /// As in MP_JOIN.
        backup: bool,
    },
    /// MP_FASTCLOSE (section 3.5): the whole connection ends now.
    FastClose {
        /// The receiver's key.
        receiver: u64,
    },
    /// MP_TCPRST (section 3.6): why the subflow is reset.
    Reset {
        /// The cause will pass: another subflow may be tried in its place.
        transient: bool,
        /// The reason: 0 none, 1 an error of multipath TCP, 2 a lack of resources, 3 a prohibition, 4 too much unacknowledged
        /// data, 5 a bad performance, 6 interference on the way.
        reason: u8,
    },
}

impl Option {
    /// Bytes that it takes in a header, padded to whole words. DSS numbers are given in four bytes, which a window
    /// below 2^30 bytes leaves unambiguous (section 3.3.1).
    #[must_use]
    pub const fn encoded_length(&self) -> u32 {
        match self {
            Self::None => 0,
            Self::Capable { sender: None, .. } => 4,
            Self::Capable { receiver: None, .. } | Self::FastClose { .. } => 12,
            Self::Capable { length: 0, .. } => 20,
            Self::Capable { .. } => 24,
            Self::JoinSyn { .. } => 12,
            Self::JoinAnswer { .. } => 16,
            Self::JoinThird { .. } => 24,
            Self::Dss { mapping: None, .. } => DSS_BARE,
            Self::Dss { .. } => DSS_MAPPED,
            Self::Priority { .. } | Self::Reset { .. } => 4,
        }
    }
}

/// Reasons of MP_TCPRST (section 3.6) that connections give.
pub(super) mod reason {
    /// Something was wrong with an option, or nothing was where one belongs.
    pub const ERROR: u8 = 1;
    /// Something on the way takes options out.
    pub const INTERFERENCE: u8 = 6;
}

/// Bytes of a DSS option with a DATA_ACK alone, and with a mapping too.
pub const DSS_BARE: u32 = 8;
/// Bytes of a DSS option with DATA_ACK and mapping, padded.
pub const DSS_MAPPED: u32 = 20;
/// Bytes that MP_CAPABLE with payload takes beyond a DSS option.
pub(super) const CAPABLE_EXTRA: u32 = 4;

/// Bytes of the smallest MTU on which every segment of a multipath connection fits: an IPv4 header, the longest TCP header
/// (RFC 9293, section 3.1) and the smallest payload of a full segment. MP_CAPABLE with payload, timestamps and SACK blocks
/// fill the options.
pub const LEAST_MTU: u32 = 20 + 20 + MAX_OPTIONS + tcp::LEAST_SEGMENT;

/// A segment of a multipath connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The segment of its subflow.
    pub tcp: tcp::Segment,
    /// What it says of the connection.
    pub option: Option,
    /// Which subflow, by the number that its opener gave it: on the wire, its ports.
    pub subflow: u8,
}

impl Segment {
    /// Bytes of the TCP header: 20 and the padded options.
    #[must_use]
    pub fn header_length(&self) -> u32 {
        self.tcp.header_length() + self.option.encoded_length()
    }
}

/// A segment that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The segment.
    pub segment: Segment,
    /// Offset in the data of its first payload byte: 0 is the first byte that the application wrote.
    pub offset: u64,
    /// Whether any of its payload was sent before, on any subflow.
    pub retransmission: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_small() {
        assert!(size_of::<Option>() <= 40, "{}", size_of::<Option>());
        assert!(size_of::<Segment>() <= 128, "{}", size_of::<Segment>());
    }
}
