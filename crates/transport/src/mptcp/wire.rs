//! Options of multipath TCP as bytes (RFC 8684, section 3), behind those of TCP.

use super::keys::{initial_data_sequence, proof, token};
use super::segment::{Option, Proof, Segment, Token};
use crate::tcp::wire::{self, EncodeError, Endpoints};

/// The option's kind, and its subtypes (RFC 8684, section 8.2).
const KIND: u8 = 30;
const CAPABLE: u8 = 0;
const JOIN: u8 = 1;
const DSS: u8 = 2;
const PRIORITY: u8 = 5;
const FAST_CLOSE: u8 = 7;
/// The version that RFC 8684 describes.
const VERSION: u8 = 1;
/// MP_CAPABLE: HMAC-SHA256 is used, and no checksum (section 3.1).
const HMAC_SHA256: u8 = 0x01;
/// MP_JOIN and MP_PRIO: a backup (section 3.2).
const BACKUP: u8 = 0x01;
/// DSS: a DATA_ACK, a mapping and a DATA_FIN are there (section 3.3); numbers have four bytes.
const HAS_ACK: u8 = 0x01;
const HAS_MAPPING: u8 = 0x04;
const HAS_FIN: u8 = 0x10;
const NOP: u8 = 1;

/// The keys of a connection, as far as they are known: data sequence numbers begin where they say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// The sender's of the segment at hand.
    pub sender: u64,
    /// The receiver's.
    pub receiver: u64,
}

/// The option's bytes, padded to whole words; as many as [`Option::encoded_length`] says.
#[must_use]
pub fn option_bytes(option: &Option, keys: Keys) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(24);
    let head = |bytes: &mut Vec<u8>, subtype: u8, low: u8, rest: u8| {
        bytes.extend([KIND, 0, subtype << 4 | low, rest]);
    };
    let backup = |is: bool| if is { BACKUP } else { 0 };
    match *option {
        Option::None => return bytes,
        Option::Capable {
            sender,
            receiver,
            length,
        } => {
            head(&mut bytes, CAPABLE, VERSION, HMAC_SHA256);
            for key in [sender, receiver].into_iter().flatten() {
                bytes.extend(key.to_be_bytes());
            }
            if length > 0 {
                bytes.extend((length as u16).to_be_bytes());
            }
        }
        Option::JoinSyn {
            token: whose,
            nonce,
            address,
            backup: is_backup,
        } => {
            head(&mut bytes, JOIN, backup(is_backup), address);
            let bits = match whose {
                Token::Of(key) => token(key),
                Token::Bits(bits) => bits,
            };
            bytes.extend(bits.to_be_bytes());
            bytes.extend(nonce.to_be_bytes());
        }
        Option::JoinAnswer {
            proof,
            nonce,
            address,
            backup: is_backup,
        } => {
            head(&mut bytes, JOIN, backup(is_backup), address);
            bytes.extend(&proof_bytes(&proof)[..8]);
            bytes.extend(nonce.to_be_bytes());
        }
        Option::JoinThird { proof } => {
            head(&mut bytes, JOIN, 0, 0);
            bytes.extend(proof_bytes(&proof));
        }
        Option::Dss {
            acknowledgement,
            mapping,
            fin,
        } => {
            let mut flags = HAS_ACK;
            if mapping.is_some() {
                flags |= HAS_MAPPING;
            }
            if fin {
                flags |= HAS_FIN;
            }
            head(&mut bytes, DSS, 0, flags);
            let number = |key: u64, position: u64| {
                (initial_data_sequence(key).wrapping_add(position) as u32).to_be_bytes()
            };
            bytes.extend(number(keys.receiver, acknowledgement));
            if let Some(mapping) = mapping {
                bytes.extend(number(keys.sender, mapping.data));
                bytes.extend(mapping.subflow.to_be_bytes());
                // Section 3.3.3: a DATA_FIN counts for one.
                let length = mapping.length + u32::from(fin);
                bytes.extend((length as u16).to_be_bytes());
            }
        }
        Option::Priority { backup: is_backup } => {
            bytes.extend([KIND, 0, PRIORITY << 4 | backup(is_backup)]);
        }
        Option::FastClose { receiver } => {
            head(&mut bytes, FAST_CLOSE, 0, 0);
            bytes.extend(receiver.to_be_bytes());
        }
    }
    bytes[1] = bytes.len() as u8;
    bytes.resize(bytes.len().next_multiple_of(4), NOP);
    bytes
}

fn proof_bytes(of: &Proof) -> [u8; 20] {
    match *of {
        Proof::Of { keys, nonces } => proof(keys, nonces),
        Proof::Bits(bits) => bits,
    }
}

/// Appends a packet to `out`, as [`wire::encode`] does.
///
/// # Errors
/// As there.
pub fn encode(
    segment: &Segment,
    keys: Keys,
    endpoints: Endpoints,
    out: &mut Vec<u8>,
    fill: impl FnOnce(&mut [u8]),
) -> Result<(), EncodeError> {
    wire::encode_beside(
        &segment.tcp,
        &option_bytes(&segment.option, keys),
        endpoints,
        out,
        fill,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mptcp::segment::Mapping;

    #[test]
    fn lengths_are_those_that_were_reserved() {
        let proof = Proof::Of {
            keys: (1, 2),
            nonces: (3, 4),
        };
        let capable = |sender, receiver, length| Option::Capable {
            sender,
            receiver,
            length,
        };
        let mapping = Some(Mapping::default());
        let dss = |mapping, fin| Option::Dss {
            acknowledgement: 1,
            mapping,
            fin,
        };
        // The lengths on the wire: RFC 8684, figures 4 to 9, 13, 14; those of a multiple of four but for NOPs.
        for (option, told) in [
            (capable(None, None, 0), 4),
            (capable(Some(1), None, 0), 12),
            (capable(Some(1), Some(2), 0), 20),
            (capable(Some(1), Some(2), 100), 22),
            (Option::JoinThird { proof }, 24),
            (dss(None, false), 8),
            (dss(mapping, false), 18),
            (dss(mapping, true), 18),
            (Option::Priority { backup: true }, 3),
            (Option::FastClose { receiver: 1 }, 12),
        ] {
            let bytes = option_bytes(&option, Keys::default());
            assert_eq!(bytes[1], told, "{option:?}");
            assert_eq!(bytes.len() as u32, option.encoded_length(), "{option:?}");
        }
    }
}
