//! Encoding of multipath TCP segments (RFC 8684, section 3): MPTCP options follow those of TCP.
//!
//! [`WireOption`] covers every option as encoded in a header. Connections use [`MptcpOption`](super::MptcpOption), in
//! which data numbers are positions; the keys convert one into the other.

mod option;
mod read;

use std::net::IpAddr;

use super::keys::{Keys, address_hmac, initial_data_sequence, join_hmac, token};
use super::segment::{AddressForm, Checksum, JoinHmac, Mapping, MptcpOption, Segment, Signal, Token, Widths};
use crate::tcp::wire::{self, DecodeError, EncodeError, Endpoints};

pub use option::{CHECKSUMS, EXTENSIBILITY, HMAC_SHA256, Number, VERSION, WireMapping, WireOption};

/// Expected positions in a segment, nearest to which a 32-bit number is resolved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Near {
    /// Position in the sender's data.
    pub data: u64,
    /// Position in the receiver's data, for a DATA_ACK.
    pub acknowledgement: u64,
}

/// Returns the encoded option, padded to 32-bit words, of [`MptcpOption::encoded_length`] bytes.
#[must_use]
pub fn option_bytes(option: &MptcpOption, keys: Keys) -> Vec<u8> {
    on_wire(option, keys).map_or_else(Vec::new, |option| option.bytes())
}

/// Returns the option as encoded in a header, of a segment whose payload is all zeros.
#[must_use]
pub fn on_wire(option: &MptcpOption, keys: Keys) -> Option<WireOption> {
    on_wire_of(option, keys, &[])
}

/// Returns the checksum of a mapping: the Internet checksum over its payload and a pseudo-header of its data sequence number, subflow
/// sequence number and length (section 3.3.1). An empty payload stands for zeros.
#[must_use]
pub fn checksum_of(data: u64, subflow: u32, length: u16, payload: &[u8]) -> u16 {
    let mut header = [0; 16];
    header[..8].copy_from_slice(&data.to_be_bytes());
    header[8..12].copy_from_slice(&subflow.to_be_bytes());
    header[12..14].copy_from_slice(&length.to_be_bytes());
    let (pairs, rest) = payload.as_chunks::<2>();
    let words = header.as_chunks::<2>().0.iter().chain(pairs);
    let mut sum: u64 = words.map(|word| u64::from(u16::from_be_bytes(*word))).sum();
    sum += rest.first().map_or(0, |last| u64::from(*last) << 8);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Returns the value of a checksum; a wrong one has all bits inverted.
const fn checksum_value(checksum: Checksum, correct: u16) -> Option<u16> {
    match checksum {
        Checksum::Absent => None,
        Checksum::Correct => Some(correct),
        Checksum::Wrong => Some(!correct),
    }
}

/// Returns the option as encoded in a header, of a segment with this payload, which is empty if it is all zeros.
#[must_use]
pub fn on_wire_of(option: &MptcpOption, keys: Keys, payload: &[u8]) -> Option<WireOption> {
    let number = |key: u64, position: u64, is_wide: bool| {
        let whole = initial_data_sequence(key).wrapping_add(position);
        if is_wide {
            Number::Eight(whole)
        } else {
            Number::Four(whole as u32)
        }
    };
    Some(match *option {
        MptcpOption::None => return None,
        MptcpOption::Capable {
            sender,
            receiver,
            length,
            checksums,
            checksum,
        } => WireOption::Capable {
            version: VERSION,
            flags: HMAC_SHA256 | if checksums { CHECKSUMS } else { 0 },
            sender,
            receiver,
            data: (length > 0).then(|| {
                let first = initial_data_sequence(keys.sender).wrapping_add(1);
                let correct = checksum_of(first, 1, length as u16, payload);
                (length as u16, checksum_value(checksum, correct))
            }),
        },
        MptcpOption::JoinSyn {
            token: whose,
            nonce,
            address,
            backup,
        } => WireOption::JoinSyn {
            backup,
            address,
            token: match whose {
                Token::Derived(key) => token(key),
                Token::Value(bits) => bits,
            },
            nonce,
        },
        MptcpOption::JoinAnswer {
            hmac,
            nonce,
            address,
            backup,
        } => {
            let [a, b, c, d, e, f, g, h, ..] = hmac_bytes(&hmac);
            WireOption::JoinAnswer {
                backup,
                address,
                hmac: [a, b, c, d, e, f, g, h],
                nonce,
            }
        }
        MptcpOption::JoinThird { hmac } => WireOption::JoinThird {
            hmac: hmac_bytes(&hmac),
        },
        MptcpOption::Dss {
            acknowledgement,
            mapping,
            fin,
            widths,
            checksum,
        } => WireOption::Dss {
            acknowledgement: Some(number(keys.receiver, acknowledgement, widths.acknowledgement)),
            mapping: mapping.map(|mapping| {
                let first = initial_data_sequence(keys.sender).wrapping_add(mapping.data);
                // A DATA_FIN counts as one (section 3.3.3).
                let length = (mapping.length + u32::from(fin)) as u16;
                let correct = checksum_of(first, mapping.subflow, length, payload);
                WireMapping {
                    data: number(keys.sender, mapping.data, widths.data),
                    subflow: mapping.subflow,
                    length,
                    checksum: checksum_value(checksum, correct),
                }
            }),
            fin,
        },
        MptcpOption::Fail { data } => WireOption::Fail {
            data: initial_data_sequence(keys.receiver).wrapping_add(data),
        },
        MptcpOption::FastClose { receiver } => WireOption::FastClose { receiver },
        MptcpOption::Reset { transient, reason } => WireOption::Reset {
            flags: u8::from(transient),
            reason,
        },
    })
}

fn hmac_bytes(of: &JoinHmac) -> [u8; 20] {
    match *of {
        JoinHmac::Derived { keys, nonces } => join_hmac(keys, nonces),
        JoinHmac::Bytes(bits) => bits,
    }
}

/// An address of the sender that an ADD_ADDR option announces (section 3.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// Address ID.
    pub id: u8,
    /// Address.
    pub address: IpAddr,
    /// Port, if it differs from the subflow's.
    pub port: Option<u16>,
}

impl Announcement {
    /// Returns the parts that determine the option's length.
    #[must_use]
    pub const fn form(&self) -> AddressForm {
        AddressForm {
            six: self.address.is_ipv6(),
            port: self.port.is_some(),
        }
    }

    /// Returns the option; `keys` are those of its sender, `None` in an echo, which has no HMAC.
    #[must_use]
    pub fn on_wire(&self, keys: Option<Keys>) -> WireOption {
        let Self { id, address, port } = *self;
        WireOption::AddAddress {
            id,
            address,
            port,
            hmac: keys.map(|keys| address_hmac(keys, id, address, port)),
        }
    }

    /// Returns the announcement of an option whose HMAC is correct for the `keys` of its sender; an echo has none.
    #[must_use]
    pub fn verified(option: &WireOption, keys: Keys) -> Option<Self> {
        let WireOption::AddAddress {
            id,
            address,
            port,
            hmac,
        } = *option
        else {
            return None;
        };
        let is_correct = hmac.is_none_or(|hmac| hmac == address_hmac(keys, id, address, port));
        is_correct.then_some(Self { id, address, port })
    }
}

/// Returns the further option of a segment as encoded in a header. `announcement`: the address of an ADD_ADDR option, whose HMAC
/// is computed with the `keys` of its sender.
#[must_use]
pub fn signal_on_wire(signal: &Signal, keys: Keys, announcement: Option<Announcement>) -> Option<WireOption> {
    match *signal {
        Signal::None => None,
        Signal::Priority { backup } => Some(WireOption::Priority { backup }),
        Signal::AddAddress { echo, .. } => {
            announcement.map(|announcement| announcement.on_wire((!echo).then_some(keys)))
        }
        Signal::RemoveAddress { id } => Some(WireOption::RemoveAddress { ids: vec![id] }),
    }
}

/// Returns the part of an option that connections support as a further option of a segment. An ADD_ADDR option with a wrong HMAC
/// is ignored (section 3.4.1). Of several removed addresses, only the first counts.
#[must_use]
pub fn supported_signal(option: &WireOption, keys: Keys) -> Signal {
    match option {
        &WireOption::Priority { backup } => Signal::Priority { backup },
        WireOption::AddAddress { hmac, .. } => match Announcement::verified(option, keys) {
            Some(announcement) => Signal::AddAddress {
                id: announcement.id,
                echo: hmac.is_none(),
                form: announcement.form(),
            },
            None => Signal::None,
        },
        WireOption::RemoveAddress { ids } => match ids.first() {
            Some(&id) => Signal::RemoveAddress { id },
            None => Signal::None,
        },
        _ => Signal::None,
    }
}

/// Returns the part of an option that connections support, of a segment whose payload is all zeros, as
/// [`supported_with`] does.
#[must_use]
pub fn supported(option: &WireOption, keys: Keys, near: Near) -> MptcpOption {
    supported_with(option, keys, near, &[])
}

/// Returns the part of an option that connections support. [`MptcpOption::None`] for other versions, unknown flags, and the options of
/// [`supported_signal`]. A missing DATA_ACK becomes position 0, which acknowledges nothing. `payload`: that of the segment, empty if
/// it is all zeros, with which the checksum is verified; one over several segments counts as correct.
#[must_use]
pub fn supported_with(option: &WireOption, keys: Keys, near: Near, payload: &[u8]) -> MptcpOption {
    let position = |number: Number, key: u64, near: u64| {
        let first = initial_data_sequence(key);
        match number {
            Number::Eight(whole) => whole.wrapping_sub(first),
            Number::Four(low) => {
                let ahead = low.wrapping_sub(first.wrapping_add(near) as u32) as i32;
                near.saturating_add_signed(i64::from(ahead))
            }
        }
    };
    let verified = |found: Option<u16>, data: u64, subflow: u32, length: u16, fin: bool| {
        let is_whole = payload.is_empty() || payload.len() == usize::from(length) - usize::from(fin);
        match found {
            None => Checksum::Absent,
            Some(found) if is_whole && found != checksum_of(data, subflow, length, payload) => {
                Checksum::Wrong
            }
            Some(_) => Checksum::Correct,
        }
    };
    match *option {
        WireOption::Capable {
            version: VERSION,
            flags,
            sender,
            receiver,
            data,
        } if flags & EXTENSIBILITY == 0 && flags & HMAC_SHA256 != 0 => {
            let first = initial_data_sequence(sender.unwrap_or(0)).wrapping_add(1);
            MptcpOption::Capable {
                sender,
                receiver,
                length: data.map_or(0, |(length, _)| u32::from(length)),
                checksums: flags & CHECKSUMS != 0,
                checksum: data.map_or(Checksum::Absent, |(length, checksum)| {
                    verified(checksum, first, 1, length, false)
                }),
            }
        }
        WireOption::JoinSyn {
            backup,
            address,
            token,
            nonce,
        } => MptcpOption::JoinSyn {
            token: Token::Value(token),
            nonce,
            address,
            backup,
        },
        WireOption::JoinAnswer {
            backup,
            address,
            hmac,
            nonce,
        } => {
            let mut bits = [0; 20];
            bits[..8].copy_from_slice(&hmac);
            MptcpOption::JoinAnswer {
                hmac: JoinHmac::Bytes(bits),
                nonce,
                address,
                backup,
            }
        }
        WireOption::JoinThird { hmac } => MptcpOption::JoinThird {
            hmac: JoinHmac::Bytes(hmac),
        },
        WireOption::Dss {
            acknowledgement,
            mapping,
            fin,
        } => {
            if mapping.is_some_and(|mapping| mapping.length == 0 && fin) {
                return MptcpOption::None;
            }
            let is_wide = |number| matches!(number, Some(Number::Eight(_)));
            MptcpOption::Dss {
                acknowledgement: acknowledgement
                    .map_or(0, |number| position(number, keys.receiver, near.acknowledgement)),
                mapping: mapping.map(|mapping| Mapping {
                    data: position(mapping.data, keys.sender, near.data),
                    subflow: mapping.subflow,
                    length: u32::from(mapping.length) - u32::from(fin),
                }),
                fin: fin && mapping.is_some(),
                widths: Widths {
                    acknowledgement: is_wide(acknowledgement),
                    data: is_wide(mapping.map(|mapping| mapping.data)),
                },
                checksum: mapping.map_or(Checksum::Absent, |mapping| {
                    let data = position(mapping.data, keys.sender, near.data);
                    let first = initial_data_sequence(keys.sender).wrapping_add(data);
                    verified(mapping.checksum, first, mapping.subflow, mapping.length, fin)
                }),
            }
        }
        WireOption::Fail { data } => MptcpOption::Fail {
            data: data.wrapping_sub(initial_data_sequence(keys.receiver)),
        },
        WireOption::FastClose { receiver } => MptcpOption::FastClose { receiver },
        WireOption::Reset { flags, reason } => MptcpOption::Reset {
            transient: flags & 1 != 0,
            reason,
        },
        WireOption::Capable { .. }
        | WireOption::Priority { .. }
        | WireOption::AddAddress { .. }
        | WireOption::RemoveAddress { .. } => MptcpOption::None,
    }
}

/// Appends a packet to `out`, as [`wire::encode`] does. `announcement`: as in [`signal_on_wire`].
///
/// # Errors
/// As [`wire::encode`].
pub fn encode(
    segment: &Segment,
    keys: Keys,
    announcement: Option<Announcement>,
    endpoints: Endpoints,
    out: &mut Vec<u8>,
    fill: impl Fn(&mut [u8]),
) -> Result<(), EncodeError> {
    let mut payload = Vec::new();
    if let MptcpOption::Dss { checksum, .. } | MptcpOption::Capable { checksum, .. } = segment.option
        && checksum != Checksum::Absent
    {
        payload.resize(segment.tcp.length as usize, 0);
        fill(&mut payload);
    }
    let option = on_wire_of(&segment.option, keys, &payload);
    let mut options = option.map_or_else(Vec::new, |option| option.bytes());
    if let Some(signal) = signal_on_wire(&segment.signal, keys, announcement) {
        options.extend(signal.bytes());
    }
    wire::encode_with_options(&segment.tcp, &options, endpoints, out, fill)
}

/// Decodes a packet and its MPTCP options in order; options that [`WireOption::read`] rejects are omitted.
///
/// # Errors
/// As [`wire::decode`].
pub fn decode(bytes: &[u8]) -> Result<(wire::Packet, Vec<WireOption>), DecodeError> {
    let packet = wire::decode(bytes)?;
    let options = wire::options(&bytes[packet.options.clone()])
        .filter_map(WireOption::read)
        .collect();
    Ok((packet, options))
}
