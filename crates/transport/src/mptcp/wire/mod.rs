//! Encoding of multipath TCP segments (RFC 8684, section 3): MPTCP options follow those of TCP.
//!
//! [`WireOption`] covers every option as encoded in a header. Connections use [`MptcpOption`](super::MptcpOption), in
//! which data numbers are positions; the keys convert one into the other.

mod option;
mod read;

use super::keys::{Keys, initial_data_sequence, join_hmac, token};
use super::segment::{JoinHmac, Mapping, MptcpOption, Segment, Token};
use crate::tcp::wire::{self, DecodeError, EncodeError, Endpoints};

pub use option::{CHECKSUMS, HMAC_SHA256, Number, VERSION, WireMapping, WireOption};

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

/// Returns the option as encoded in a header, with four-byte data numbers and without checksums.
#[must_use]
pub fn on_wire(option: &MptcpOption, keys: Keys) -> Option<WireOption> {
    let number =
        |key: u64, position: u64| Number::Four(initial_data_sequence(key).wrapping_add(position) as u32);
    Some(match *option {
        MptcpOption::None => return None,
        MptcpOption::Capable {
            sender,
            receiver,
            length,
        } => WireOption::Capable {
            version: VERSION,
            flags: HMAC_SHA256,
            sender,
            receiver,
            data: (length > 0).then_some((length as u16, None)),
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
        } => WireOption::Dss {
            acknowledgement: Some(number(keys.receiver, acknowledgement)),
            mapping: mapping.map(|mapping| WireMapping {
                data: number(keys.sender, mapping.data),
                subflow: mapping.subflow,
                // A DATA_FIN counts as one (section 3.3.3).
                length: (mapping.length + u32::from(fin)) as u16,
                checksum: None,
            }),
            fin,
        },
        MptcpOption::Priority { backup } => WireOption::Priority { backup },
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

/// Returns the part of an option that connections support. [`MptcpOption::None`] for other versions, required
/// checksums, infinite mappings, addresses and MP_FAIL. A missing DATA_ACK becomes position 0, which acknowledges
/// nothing.
#[must_use]
pub fn supported(option: &WireOption, keys: Keys, near: Near) -> MptcpOption {
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
    match *option {
        WireOption::Capable {
            version: VERSION,
            flags,
            sender,
            receiver,
            data,
        } if flags & CHECKSUMS == 0 && flags & HMAC_SHA256 != 0 => MptcpOption::Capable {
            sender,
            receiver,
            length: data.map_or(0, |(length, _)| u32::from(length)),
        },
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
            if mapping.is_some_and(|mapping| mapping.length == 0) {
                return MptcpOption::None;
            }
            MptcpOption::Dss {
                acknowledgement: acknowledgement
                    .map_or(0, |number| position(number, keys.receiver, near.acknowledgement)),
                mapping: mapping.map(|mapping| Mapping {
                    data: position(mapping.data, keys.sender, near.data),
                    subflow: mapping.subflow,
                    length: u32::from(mapping.length) - u32::from(fin),
                }),
                fin: fin && mapping.is_some(),
            }
        }
        WireOption::Priority { backup } => MptcpOption::Priority { backup },
        WireOption::FastClose { receiver } => MptcpOption::FastClose { receiver },
        WireOption::Reset { flags, reason } => MptcpOption::Reset {
            transient: flags & 1 != 0,
            reason,
        },
        WireOption::Capable { .. }
        | WireOption::AddAddress { .. }
        | WireOption::RemoveAddress { .. }
        | WireOption::Fail { .. } => MptcpOption::None,
    }
}

/// Appends a packet to `out`, as [`wire::encode`] does.
///
/// # Errors
/// As [`wire::encode`].
pub fn encode(
    segment: &Segment,
    keys: Keys,
    endpoints: Endpoints,
    out: &mut Vec<u8>,
    fill: impl FnOnce(&mut [u8]),
) -> Result<(), EncodeError> {
    wire::encode_with_options(
        &segment.tcp,
        &option_bytes(&segment.option, keys),
        endpoints,
        out,
        fill,
    )
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
