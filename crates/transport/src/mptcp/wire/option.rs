//! Every option of RFC 8684 as it stands in a header, and its bytes.

use std::net::IpAddr;

/// The kind of all of them (RFC 8684, section 8.1).
pub(super) const KIND: u8 = 30;
/// The subtypes (section 8.2).
pub(super) mod subtype {
    pub const CAPABLE: u8 = 0;
    pub const JOIN: u8 = 1;
    pub const DSS: u8 = 2;
    pub const ADD_ADDRESS: u8 = 3;
    pub const REMOVE_ADDRESS: u8 = 4;
    pub const PRIORITY: u8 = 5;
    pub const FAIL: u8 = 6;
    pub const FAST_CLOSE: u8 = 7;
    pub const RESET: u8 = 8;
}
/// The version that RFC 8684 describes.
pub const VERSION: u8 = 1;
/// Flags of MP_CAPABLE (section 3.1): A, checksums are required; H, HMAC-SHA256 is used.
pub const CHECKSUMS: u8 = 0x80;
/// See [`CHECKSUMS`].
pub const HMAC_SHA256: u8 = 0x01;
/// MP_JOIN and MP_PRIO: a backup (section 3.2).
pub(super) const BACKUP: u8 = 0x01;
/// ADD_ADDR: an echo (section 3.4.1).
pub(super) const ECHO: u8 = 0x01;
/// DSS (section 3.3): a DATA_ACK, of eight bytes; a mapping, with a number of eight bytes; a DATA_FIN.
pub(super) const HAS_ACK: u8 = 0x01;
pub(super) const LONG_ACK: u8 = 0x02;
pub(super) const HAS_MAPPING: u8 = 0x04;
pub(super) const LONG_NUMBER: u8 = 0x08;
pub(super) const HAS_FIN: u8 = 0x10;
const NOP: u8 = 1;

/// A number of data: whole, or its lower half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// The lower 32 bits.
    Four(u32),
    /// All 64 bits.
    Eight(u64),
}

/// A mapping (section 3.3.1), or what stands for one in MP_CAPABLE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireMapping {
    /// Data sequence number of the first byte.
    pub data: Number,
    /// Relative subflow sequence number: 1 is the first byte of the subflow, 0 is for a DATA_FIN alone.
    pub subflow: u32,
    /// Bytes of data, a DATA_FIN counting for one; 0 is a mapping without end (section 3.7).
    pub length: u16,
    /// The checksum over data and pseudo-header, where the ends agreed on checksums.
    pub checksum: Option<u16>,
}

/// One option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireOption {
    /// MP_CAPABLE (section 3.1): no key in a SYN, one in the answer, two from then on.
    Capable {
        /// The version.
        version: u8,
        /// The flags A to H, A highest.
        flags: u8,
        /// The sender's key.
        sender: Option<u64>,
        /// The receiver's key, beside the sender's alone.
        receiver: Option<u64>,
        /// With payload: its length and, if agreed on, its checksum; beside both keys alone.
        data: Option<(u16, Option<u16>)>,
    },
    /// MP_JOIN in a SYN (section 3.2).
    JoinSyn {
        /// To be used where no other can be.
        backup: bool,
        /// The number of the sender's address.
        address: u8,
        /// The connection, as the receiver's token.
        token: u32,
        /// The sender's random number.
        nonce: u32,
    },
    /// MP_JOIN in the answer to it.
    JoinAnswer {
        /// As in the SYN.
        backup: bool,
        /// The number of the sender's address.
        address: u8,
        /// The first 64 bits of the HMAC.
        hmac: [u8; 8],
        /// The sender's random number.
        nonce: u32,
    },
    /// MP_JOIN in the third segment.
    JoinThird {
        /// The first 160 bits of the HMAC.
        hmac: [u8; 20],
    },
    /// DSS (section 3.3).
    Dss {
        /// DATA_ACK.
        acknowledgement: Option<Number>,
        /// Where the payload belongs.
        mapping: Option<WireMapping>,
        /// DATA_FIN.
        fin: bool,
    },
    /// ADD_ADDR (section 3.4.1): another address of the sender.
    AddAddress {
        /// Its number.
        id: u8,
        /// The address.
        address: IpAddr,
        /// The port, where it is not that of the subflow.
        port: Option<u16>,
        /// The last 64 bits of the HMAC; an echo has none.
        hmac: Option<[u8; 8]>,
    },
    /// REMOVE_ADDR (section 3.4.2): addresses that are gone, by their numbers, at least one.
    RemoveAddress {
        /// Their numbers.
        ids: Vec<u8>,
    },
    /// MP_PRIO (section 3.3.8).
    Priority {
        /// Whether the subflow is a backup from now on.
        backup: bool,
    },
    /// MP_FAIL (section 3.7): a checksum did not hold.
    Fail {
        /// The data sequence number of what it was of.
        data: u64,
    },
    /// MP_FASTCLOSE (section 3.5).
    FastClose {
        /// The receiver's key.
        receiver: u64,
    },
    /// MP_TCPRST (section 3.6): why a subflow is reset.
    Reset {
        /// The flags U, V, W and T; the last one, 1, says that the cause will pass.
        flags: u8,
        /// The reason.
        reason: u8,
    },
}

impl WireOption {
    /// Its bytes, padded with NOPs to whole words.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Writer::new();
        match *self {
            Self::Capable {
                version,
                flags,
                sender,
                receiver,
                data,
            } => {
                out.head(subtype::CAPABLE, version, &[flags]);
                for key in [sender, receiver].into_iter().flatten() {
                    out.put(&key.to_be_bytes());
                }
                if let Some((length, checksum)) = data {
                    out.put(&length.to_be_bytes());
                    out.checksum(checksum);
                }
            }
            Self::JoinSyn {
                backup,
                address,
                token,
                nonce,
            } => {
                out.head(subtype::JOIN, flag(backup, BACKUP), &[address]);
                out.put(&token.to_be_bytes());
                out.put(&nonce.to_be_bytes());
            }
            Self::JoinAnswer {
                backup,
                address,
                hmac,
                nonce,
            } => {
                out.head(subtype::JOIN, flag(backup, BACKUP), &[address]);
                out.put(&hmac);
                out.put(&nonce.to_be_bytes());
            }
            Self::JoinThird { hmac } => {
                out.head(subtype::JOIN, 0, &[0]);
                out.put(&hmac);
            }
            Self::Dss {
                acknowledgement,
                mapping,
                fin,
            } => {
                let long = |number| matches!(number, Some(Number::Eight(_)));
                let number = mapping.map(|mapping| mapping.data);
                let flags = flag(acknowledgement.is_some(), HAS_ACK)
                    | flag(long(acknowledgement), LONG_ACK)
                    | flag(mapping.is_some(), HAS_MAPPING)
                    | flag(long(number), LONG_NUMBER)
                    | flag(fin, HAS_FIN);
                out.head(subtype::DSS, 0, &[flags]);
                if let Some(number) = acknowledgement {
                    out.number(number);
                }
                if let Some(mapping) = mapping {
                    out.number(mapping.data);
                    out.put(&mapping.subflow.to_be_bytes());
                    out.put(&mapping.length.to_be_bytes());
                    out.checksum(mapping.checksum);
                }
            }
            Self::AddAddress {
                id,
                address,
                port,
                hmac,
            } => {
                out.head(subtype::ADD_ADDRESS, flag(hmac.is_none(), ECHO), &[id]);
                match address {
                    IpAddr::V4(address) => out.put(&address.octets()),
                    IpAddr::V6(address) => out.put(&address.octets()),
                }
                if let Some(port) = port {
                    out.put(&port.to_be_bytes());
                }
                out.put(hmac.as_ref().map_or(&[], |hmac| hmac));
            }
            Self::RemoveAddress { ref ids } => out.head(subtype::REMOVE_ADDRESS, 0, ids),
            Self::Priority { backup } => out.head(subtype::PRIORITY, flag(backup, BACKUP), &[]),
            Self::Fail { data } => {
                out.head(subtype::FAIL, 0, &[0]);
                out.put(&data.to_be_bytes());
            }
            Self::FastClose { receiver } => {
                out.head(subtype::FAST_CLOSE, 0, &[0]);
                out.put(&receiver.to_be_bytes());
            }
            Self::Reset { flags, reason } => out.head(subtype::RESET, flags, &[reason]),
        }
        out.finish()
    }
}

const fn flag(is: bool, bit: u8) -> u8 {
    if is { bit } else { 0 }
}

struct Writer(Vec<u8>);

impl Writer {
    fn new() -> Self {
        Self(Vec::with_capacity(32))
    }

    fn head(&mut self, subtype: u8, low: u8, rest: &[u8]) {
        self.put(&[KIND, 0, subtype << 4 | low & 0x0f]);
        self.put(rest);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn number(&mut self, number: Number) {
        match number {
            Number::Four(low) => self.put(&low.to_be_bytes()),
            Number::Eight(whole) => self.put(&whole.to_be_bytes()),
        }
    }

    fn checksum(&mut self, checksum: Option<u16>) {
        if let Some(checksum) = checksum {
            self.put(&checksum.to_be_bytes());
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.0[1] = self.0.len() as u8;
        self.0.resize(self.0.len().next_multiple_of(4), NOP);
        self.0
    }
}
