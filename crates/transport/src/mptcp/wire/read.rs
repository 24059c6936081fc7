//! Bytes that may be an option.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::option::{
    BACKUP, ECHO, HAS_ACK, HAS_FIN, HAS_MAPPING, KIND, LONG_ACK, LONG_NUMBER, Number, WireMapping,
    WireOption, subtype,
};

/// Bytes that are taken from the front. Each step fails where they are too few.
#[derive(Clone, Copy)]
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    fn short(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn word(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn long(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn number(&mut self, eight: bool) -> Option<Number> {
        if eight {
            self.long().map(Number::Eight)
        } else {
            self.word().map(Number::Four)
        }
    }

    /// The two bytes that are left, if any are.
    fn checksum(&mut self) -> std::result::Result<Option<u16>, ()> {
        match self.0.len() {
            0 => Ok(None),
            2 => Ok(self.short()),
            _ => Err(()),
        }
    }
}

impl WireOption {
    /// The option that begins with its kind and ends where its length says; `None` for another kind, a subtype that
    /// RFC 8684 does not have, and a length that the subtype does not have. Bits that mean nothing are passed over.
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
                from.byte()?;
                Self::Fail { data: from.long()? }
            }
            subtype::FAST_CLOSE => {
                from.byte()?;
                Self::FastClose {
                    receiver: from.long()?,
                }
            }
            subtype::RESET => Self::Reset {
                flags: low,
                reason: from.byte()?,
            },
            _ => return None,
        };
        from.0.is_empty().then_some(option)
    }
}

fn capable(from: &mut Reader<'_>, version: u8) -> Option<WireOption> {
    let flags = from.byte()?;
    let (mut sender, mut receiver, mut data) = (None, None, None);
    if !from.0.is_empty() {
        sender = Some(from.long()?);
    }
    if !from.0.is_empty() {
        receiver = Some(from.long()?);
    }
    if !from.0.is_empty() {
        let length = from.short()?;
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

/// The three forms differ in length (RFC 8684, figures 5 to 7).
fn join(from: &mut Reader<'_>, low: u8) -> Option<WireOption> {
    let (backup, address) = (low & BACKUP != 0, from.byte()?);
    Some(match from.0.len() {
        8 => WireOption::JoinSyn {
            backup,
            address,
            token: from.word()?,
            nonce: from.word()?,
        },
        12 => WireOption::JoinAnswer {
            backup,
            address,
            hmac: from.array()?,
            nonce: from.word()?,
        },
        20 => WireOption::JoinThird { hmac: from.array()? },
        _ => return None,
    })
}

fn dss(from: &mut Reader<'_>) -> Option<WireOption> {
    let flags = from.byte()?;
    let has = |bit| flags & bit != 0;
    let mut acknowledgement = None;
    if has(HAS_ACK) {
        acknowledgement = Some(from.number(has(LONG_ACK))?);
    }
    let mut mapping = None;
    if has(HAS_MAPPING) {
        mapping = Some(WireMapping {
            data: from.number(has(LONG_NUMBER))?,
            subflow: from.word()?,
            length: from.short()?,
            checksum: from.checksum().ok()?,
        });
    }
    Some(WireOption::Dss {
        acknowledgement,
        mapping,
        fin: has(HAS_FIN),
    })
}

/// Address and port by what is left beside the HMAC, which an echo does not have (RFC 8684, figure 12).
fn add_address(from: &mut Reader<'_>, low: u8) -> Option<WireOption> {
    let id = from.byte()?;
    let echo = low & ECHO != 0;
    let (address, has_port) = match from.0.len() + if echo { 8 } else { 0 } {
        length @ (12 | 14) => (IpAddr::V4(Ipv4Addr::from(from.array::<4>()?)), length == 14),
        length @ (24 | 26) => (IpAddr::V6(Ipv6Addr::from(from.array::<16>()?)), length == 26),
        _ => return None,
    };
    Some(WireOption::AddAddress {
        id,
        address,
        port: if has_port { Some(from.short()?) } else { None },
        hmac: if echo { None } else { Some(from.array()?) },
    })
}
