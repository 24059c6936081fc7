//! Segments of a multipath connection: a TCP segment, its subflow and its MPTCP option (RFC 8684, section 3).

use super::keys::{Keys, Nonces};
use crate::tcp;
use crate::tcp::wire::MAX_OPTIONS;

/// Number of a path between two hosts, from 0; the owner of the connections numbers the paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathIndex(pub u8);

impl PathIndex {
    /// Returns the number as a slice index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Token of a connection: the most significant 32 bits of the SHA-256 of a host's key (RFC 8684, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// The token of this key, computed only when it is encoded.
    Derived(u64),
    /// A decoded token.
    Value(u32),
}

/// HMAC-SHA256 that proves knowledge of both keys (RFC 8684, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinHmac {
    /// The inputs; the HMAC is computed only when it is encoded.
    Derived {
        /// Keys of both ends.
        keys: Keys,
        /// Random numbers of both ends.
        nonces: Nonces,
    },
    /// A decoded HMAC: its first 64 bits in the SYN/ACK, its first 160 bits in the third segment.
    Bytes([u8; 20]),
}

/// Mapping of payload to the data stream (RFC 8684, section 3.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// Position of the first byte in the data, from 1: its data sequence number is one above the initial one.
    pub data: u64,
    /// Position of the first byte in the subflow's stream, from 1; 0 for a DATA_FIN without payload.
    pub subflow: u32,
    /// Bytes of payload, without the DATA_FIN; 0 for an infinite mapping (section 3.7), which has a segment with payload.
    pub length: u32,
}

/// Checksum over a mapping and its payload (section 3.3.1). Connections have no bytes: the codec computes and verifies it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// There is none.
    #[default]
    Absent,
    /// It is correct.
    Correct,
    /// It is wrong: something changed the payload.
    Wrong,
}

/// MPTCP option of a segment. Data numbers are positions; encoding adds the initial data sequence number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MptcpOption {
    /// No option: a plain TCP segment.
    #[default]
    None,
    /// MP_CAPABLE (section 3.1): no key in a SYN, the sender's key in a SYN/ACK, both keys afterwards.
    Capable {
        /// Key of the sender.
        sender: Option<u64>,
        /// Key of the receiver.
        receiver: Option<u64>,
        /// Bytes of payload, which starts at data position 1.
        length: u32,
        /// Flag A: checksums are required.
        checksums: bool,
        /// Checksum of the payload.
        checksum: Checksum,
    },
    /// MP_JOIN in a SYN (section 3.2, figure 5).
    JoinSyn {
        /// Token of the receiver's key, which identifies the connection.
        token: Token,
        /// Random number of the sender.
        nonce: u32,
        /// Address ID of the sender.
        address: u8,
        /// Whether the subflow is a backup.
        backup: bool,
    },
    /// MP_JOIN in a SYN/ACK (figure 6).
    JoinAnswer {
        /// HMAC of the sender.
        hmac: JoinHmac,
        /// Random number of the sender.
        nonce: u32,
        /// Address ID of the sender.
        address: u8,
        /// Whether the subflow is a backup.
        backup: bool,
    },
    /// MP_JOIN in the third segment (figure 7).
    JoinThird {
        /// HMAC of the sender.
        hmac: JoinHmac,
    },
    /// DSS (section 3.3).
    Dss {
        /// DATA_ACK: the next expected position.
        acknowledgement: u64,
        /// Mapping of the payload, or the position of a DATA_FIN without payload.
        mapping: Option<Mapping>,
        /// DATA_FIN: the data stops after the mapping.
        fin: bool,
        /// Lengths of the numbers.
        widths: Widths,
        /// Checksum of the mapping.
        checksum: Checksum,
    },
    /// MP_FAIL (section 3.7).
    Fail {
        /// Position of the receiver's data at which a checksum failed.
        data: u64,
    },
    /// MP_FASTCLOSE (section 3.5): closes the whole connection at once.
    FastClose {
        /// Key of the receiver.
        receiver: u64,
    },
    /// MP_TCPRST (section 3.6).
    Reset {
        /// Whether the error is transient: another subflow may replace this one.
        transient: bool,
        /// Reason code: 0 unspecified, 1 MPTCP-specific error, 2 lack of resources, 3 administratively prohibited, 4 too much
        /// outstanding data, 5 unacceptable performance, 6 middlebox interference.
        reason: u8,
    },
}

impl MptcpOption {
    /// Returns the encoded length in bytes, padded to 32-bit words. DSS numbers take four bytes, which are unambiguous for
    /// windows below 2^30 bytes (section 3.3.1).
    #[inline]
    #[must_use]
    pub const fn encoded_length(&self) -> u32 {
        match self {
            Self::None => 0,
            Self::Capable { sender: None, .. } => 4,
            Self::Capable { receiver: None, .. } | Self::FastClose { .. } | Self::Fail { .. } => 12,
            Self::Capable { length: 0, .. } => 20,
            Self::Capable { .. } => 24,
            Self::JoinSyn { .. } => 12,
            Self::JoinAnswer { .. } => 16,
            Self::JoinThird { .. } => 24,
            Self::Dss {
                mapping: None,
                widths,
                ..
            } => DSS_BARE + widths.acknowledgement_extra(),
            Self::Dss { widths, .. } => {
                // The padding has room for a checksum.
                let extra = widths.acknowledgement_extra() + if widths.data { 4 } else { 0 };
                DSS_MAPPED + extra
            }
            Self::Reset { .. } => 4,
        }
    }
}

/// Lengths of the numbers in a DSS option: eight bytes where set, four otherwise (section 3.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Widths {
    /// The DATA_ACK.
    pub acknowledgement: bool,
    /// The data sequence number.
    pub data: bool,
}

impl Widths {
    /// Returns the bytes of the DATA_ACK above four.
    const fn acknowledgement_extra(self) -> u32 {
        if self.acknowledgement { 4 } else { 0 }
    }
}

/// Option of an ACK in addition to its DSS option. Addresses have numbers; the owner of the connection knows what they
/// stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signal {
    /// No option.
    #[default]
    None,
    /// MP_PRIO (section 3.3.8).
    Priority {
        /// Whether the subflow becomes a backup.
        backup: bool,
    },
    /// ADD_ADDR (section 3.4.1). Its HMAC is computed when it is encoded, and verified when it is decoded.
    AddAddress {
        /// Address ID.
        id: u8,
        /// Whether it repeats the peer's announcement, without HMAC.
        echo: bool,
        /// Parts of the option that determine its length.
        form: AddressForm,
    },
    /// REMOVE_ADDR of one address (section 3.4.2).
    RemoveAddress {
        /// Address ID.
        id: u8,
    },
}

impl Signal {
    /// Returns the encoded length in bytes, padded to 32-bit words.
    #[inline]
    #[must_use]
    pub const fn encoded_length(&self) -> u32 {
        match *self {
            Self::None => 0,
            Self::Priority { .. } | Self::RemoveAddress { .. } => 4,
            Self::AddAddress { echo, form, .. } => {
                let address = if form.six { 16 } else { 4 };
                let hmac = if echo { 0 } else { 8 };
                4 + address + hmac + if form.port { 4 } else { 0 }
            }
        }
    }
}

/// Parts of an ADD_ADDR option that determine its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddressForm {
    /// The address belongs to IPv6.
    pub six: bool,
    /// A port follows.
    pub port: bool,
}

/// Reason codes of MP_TCPRST (section 3.6) that connections send.
pub(super) mod reason {
    /// No particular one.
    pub const UNSPECIFIED: u8 = 0;
    /// An option is wrong or missing.
    pub const ERROR: u8 = 1;
    /// A middlebox removes options.
    pub const INTERFERENCE: u8 = 6;
}

/// Bytes of a DSS option with a DATA_ACK only.
pub const DSS_BARE: u32 = 8;
/// Bytes of a DSS option with DATA_ACK and mapping, padded.
pub const DSS_MAPPED: u32 = 20;
/// Bytes of MP_CAPABLE with payload beyond those of a DSS option.
pub(super) const CAPABLE_EXTRA: u32 = 4;

/// Smallest MTU in bytes that fits every segment of a multipath connection: an IPv4 header, the longest TCP header
/// (RFC 9293, section 3.1) and the smallest payload of a full segment. MP_CAPABLE with payload, timestamps and SACK blocks
/// fill the option space.
pub const LEAST_MTU: u32 = 20 + 20 + MAX_OPTIONS + tcp::MIN_SEGMENT;

/// A segment of a multipath connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// TCP segment of the subflow.
    pub tcp: tcp::Segment,
    /// MPTCP option.
    pub option: MptcpOption,
    /// Further MPTCP option.
    pub signal: Signal,
    /// Number of the subflow, assigned by the client; encoded as the segment's ports.
    pub subflow: u8,
}

impl Segment {
    /// Whether it has any MPTCP option.
    #[must_use]
    pub fn is_multipath(&self) -> bool {
        self.option != MptcpOption::None || self.signal != Signal::None
    }

    /// Returns the bytes of the TCP header: 20 plus the padded options.
    #[inline]
    #[must_use]
    pub fn header_length(&self) -> u32 {
        self.tcp.header_length() + self.option.encoded_length() + self.signal.encoded_length()
    }
}

/// A segment to transmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The segment.
    pub segment: Segment,
    /// Offset of its first payload byte in the data, from 0.
    pub offset: u64,
    /// Whether any of its payload was sent before, on any subflow.
    pub retransmission: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segment_fits_in_128_bytes() {
        assert!(size_of::<MptcpOption>() <= 40, "{}", size_of::<MptcpOption>());
        assert!(size_of::<Segment>() <= 128, "{}", size_of::<Segment>());
    }
}
