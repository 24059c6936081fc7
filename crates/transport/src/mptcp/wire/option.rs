//! All MPTCP options of RFC 8684 and their encoding.

use std::net::IpAddr;

/// TCP option kind of MPTCP (RFC 8684, section 8.1).
pub(super) const KIND: u8 = 30;
/// Option subtypes (section 8.2).
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
/// Version described by RFC 8684.
pub const VERSION: u8 = 1;
/// MP_CAPABLE flag A (section 3.1): checksums required.
pub const CHECKSUMS: u8 = 0x80;
/// MP_CAPABLE flag B: extensions that this version does not define; an option with it is ignored.
pub const EXTENSIBILITY: u8 = 0x40;
/// MP_CAPABLE flag H: HMAC-SHA256.
pub const HMAC_SHA256: u8 = 0x01;
/// MP_JOIN and MP_PRIO flag B: backup (section 3.2).
pub(super) const BACKUP: u8 = 0x01;
/// ADD_ADDR flag E: echo (section 3.4.1).
pub(super) const ECHO: u8 = 0x01;
/// DSS flags A, a, M, m and F (section 3.3).
pub(super) const HAS_ACK: u8 = 0x01;
pub(super) const LONG_ACK: u8 = 0x02;
pub(super) const HAS_MAPPING: u8 = 0x04;
pub(super) const LONG_NUMBER: u8 = 0x08;
pub(super) const HAS_FIN: u8 = 0x10;
const NOP: u8 = 1;

/// Data sequence number, whole or its lower half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// The lower 32 bits.
    Four(u32),
    /// All 64 bits.
    Eight(u64),
}

/// Mapping (section 3.3.1), also in MP_CAPABLE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireMapping {
    /// Data sequence number of the first byte.
    pub data: Number,
    /// Relative subflow sequence number: 1 is the first byte of the subflow, 0 a DATA_FIN without payload.
    pub subflow: u32,
    /// Bytes of data, plus one for a DATA_FIN; 0 is an infinite mapping (section 3.7).
    pub length: u16,
    /// Checksum over data and pseudo-header, if the ends negotiated checksums.
    pub checksum: Option<u16>,
}

/// An MPTCP option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireOption {
    /// MP_CAPABLE (section 3.1): no key in a SYN, one in a SYN/ACK, two afterwards.
    Capable {
        /// Version.
        version: u8,
        /// Flags A (highest bit) to H.
        flags: u8,
        /// Key of the sender.
        sender: Option<u64>,
        /// Key of the receiver; only with the sender's.
        receiver: Option<u64>,
        /// Length of the payload and its optional checksum; only with both keys.
        data: Option<(u16, Option<u16>)>,
    },
    /// MP_JOIN in a SYN (section 3.2).
    JoinSyn {
        /// Whether the subflow is a backup.
        backup: bool,
        /// Address ID of the sender.
        address: u8,
        /// Token of the receiver's key.
        token: u32,
        /// Random number of the sender.
        nonce: u32,
    },
    /// MP_JOIN in a SYN/ACK.
    JoinAnswer {
        /// Whether the subflow is a backup.
        backup: bool,
        /// Address ID of the sender.
        address: u8,
        /// First 64 bits of the HMAC.
        hmac: [u8; 8],
        /// Random number of the sender.
        nonce: u32,
    },
    /// MP_JOIN in the third segment.
    JoinThird {
        /// First 160 bits of the HMAC.
        hmac: [u8; 20],
    },
    /// DSS (section 3.3).
    Dss {
        /// DATA_ACK.
        acknowledgement: Option<Number>,
        /// Mapping of the payload.
        mapping: Option<WireMapping>,
        /// DATA_FIN.
        fin: bool,
    },
    /// ADD_ADDR (section 3.4.1): another address of the sender.
    AddAddress {
        /// Address ID.
        id: u8,
        /// Address.
        address: IpAddr,
        /// Port, if it differs from the subflow's.
        port: Option<u16>,
        /// Last 64 bits of the HMAC; absent in an echo.
        hmac: Option<[u8; 8]>,
    },
    /// REMOVE_ADDR (section 3.4.2).
    RemoveAddress {
        /// IDs of the removed addresses, at least one.
        ids: Vec<u8>,
    },
    /// MP_PRIO (section 3.3.8).
    Priority {
        /// Whether the subflow becomes a backup.
        backup: bool,
    },
    /// MP_FAIL (section 3.7): a checksum was wrong.
    Fail {
        /// Data sequence number of the failed mapping.
        data: u64,
    },
    /// MP_FASTCLOSE (section 3.5).
    FastClose {
        /// Key of the receiver.
        receiver: u64,
    },
    /// MP_TCPRST (section 3.6).
    Reset {
        /// Flags U, V, W and T; T (1) marks a transient error.
        flags: u8,
        /// Reason code.
        reason: u8,
    },
}

impl WireOption {
    /// Returns the encoded option, padded with NOPs to 32-bit words.
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
