//! Decoding of MPTCP options.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::option::{
    BACKUP, ECHO, HAS_ACK, HAS_FIN, HAS_MAPPING, KIND, LONG_ACK, LONG_NUMBER, Number, WireMapping,
    WireOption, subtype,
};

/// Cursor over bytes. Each read returns `None` if too few are left.
#[derive(Clone, Copy)]
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn read_u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    fn read_u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn read_u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn read_u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn number(&mut self, eight: bool) -> Option<Number> {
        if eight {
            self.read_u64().map(Number::Eight)
        } else {
            self.read_u32().map(Number::Four)
        }
    }

    /// Reads the last two bytes, if present.
    fn checksum(&mut self) -> std::result::Result<Option<u16>, ()> {
        match self.0.len() {
            0 => Ok(None),
            2 => Ok(self.read_u16()),
            _ => Err(()),
        }
    }
}

impl WireOption {
    /// Decodes an option from its kind byte to its length. Returns `None` for another kind, an unknown subtype, and a
    /// length that the subtype does not allow. Reserved bits are ignored.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let [kind, length, head] = from.array()?;
        if kind != KIND || usize::from(length) != bytes.len() {
            return None;
        }
        let low = head & 0x0f;
        let option = match head >> 4 {
            subtype::CAPABLE => capable(&mut from, low)?,
            subtype::JOIN => join(&mut from, low)?,
            subtype::DSS => dss(&mut from)?,
            subtype::ADD_ADDRESS => add_address(&mut from, low)?,
            subtype::REMOVE_ADDRESS if !from.0.is_empty() => {
                let ids = std::mem::take(&mut from.0);
                Self::RemoveAddress { ids: ids.to_vec() }
            }
            subtype::PRIORITY => Self::Priority {
                backup: low & BACKUP != 0,
            },
            subtype::FAIL => {
                from.read_u8()?;
                Self::Fail {
                    data: from.read_u64()?,
                }
            }
            subtype::FAST_CLOSE => {
                from.read_u8()?;
                Self::FastClose {
                    receiver: from.read_u64()?,
                }
            }
            subtype::RESET => Self::Reset {
                flags: low,
                reason: from.read_u8()?,
            },
            _ => return None,
        };
        from.0.is_empty().then_some(option)
    }
}

fn capable(from: &mut Reader<'_>, version: u8) -> Option<WireOption> {
    let flags = from.read_u8()?;
    let (mut sender, mut receiver, mut data) = (None, None, None);
    if !from.0.is_empty() {
        sender = Some(from.read_u64()?);
    }
    if !from.0.is_empty() {
        receiver = Some(from.read_u64()?);
    }
    if !from.0.is_empty() {
        let length = from.read_u16()?;
        data = Some((length, from.checksum().ok()?));
    }
    Some(WireOption::Capable {
        version,
        flags,
        sender,
        receiver,
        data,
    })
}

/// Decodes MP_JOIN, whose three forms differ in length (RFC 8684, figures 5 to 7).
fn join(from: &mut Reader<'_>, low: u8) -> Option<WireOption> {
    let (backup, address) = (low & BACKUP != 0, from.read_u8()?);
    Some(match from.0.len() {
        8 => WireOption::JoinSyn {
            backup,
            address,
            token: from.read_u32()?,
            nonce: from.read_u32()?,
        },
        12 => WireOption::JoinAnswer {
            backup,
            address,
            hmac: from.array()?,
            nonce: from.read_u32()?,
        },
        20 => WireOption::JoinThird { hmac: from.array()? },
        _ => return None,
    })
}

fn dss(from: &mut Reader<'_>) -> Option<WireOption> {
    let flags = from.read_u8()?;
    let has = |bit| flags & bit != 0;
    let mut acknowledgement = None;
    if has(HAS_ACK) {
        acknowledgement = Some(from.number(has(LONG_ACK))?);
    }
    let mut mapping = None;
    if has(HAS_MAPPING) {
        mapping = Some(WireMapping {
            data: from.number(has(LONG_NUMBER))?,
            subflow: from.read_u32()?,
            length: from.read_u16()?,
            checksum: from.checksum().ok()?,
        });
    }
    Some(WireOption::Dss {
        acknowledgement,
        mapping,
        fin: has(HAS_FIN),
    })
}

/// Decodes ADD_ADDR: the length determines the address family and the presence of a port; an echo has no HMAC (RFC
/// 8684, figure 12).
fn add_address(from: &mut Reader<'_>, low: u8) -> Option<WireOption> {
    let id = from.read_u8()?;
    let echo = low & ECHO != 0;
    let (address, has_port) = match from.0.len() + if echo { 8 } else { 0 } {
        length @ (12 | 14) => (IpAddr::V4(Ipv4Addr::from(from.array::<4>()?)), length == 14),
        length @ (24 | 26) => (IpAddr::V6(Ipv6Addr::from(from.array::<16>()?)), length == 26),
        _ => return None,
    };
    Some(WireOption::AddAddress {
        id,
        address,
        port: if has_port { Some(from.read_u16()?) } else { None },
        hmac: if echo { None } else { Some(from.array()?) },
    })
}
