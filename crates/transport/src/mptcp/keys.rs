//! Keys and the values derived from them: tokens, initial data sequence numbers and HMACs (RFC 8684, sections 3.1 and
//! 3.2).

use std::net::IpAddr;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// The keys of both ends (section 3.1), as seen by the sender of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// Key of the segment's sender.
    pub sender: u64,
    /// Key of the segment's receiver.
    pub receiver: u64,
}

/// The random numbers of both ends in an MP_JOIN handshake (section 3.2), as seen by the sender of an HMAC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nonces {
    /// Random number of the HMAC's sender.
    pub sender: u32,
    /// Random number of the HMAC's receiver.
    pub receiver: u32,
}

impl Nonces {
    /// Returns the same numbers as the other end sees them.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self {
            sender: self.receiver,
            receiver: self.sender,
        }
    }
}

fn digest(key: u64) -> [u8; 32] {
    Sha256::digest(key.to_be_bytes()).into()
}

/// Returns the token of a key: the most significant 32 bits of its SHA-256.
#[must_use]
pub fn token(key: u64) -> u32 {
    let [a, b, c, d, ..] = digest(key);
    u32::from_be_bytes([a, b, c, d])
}

/// Returns the initial data sequence number of the host with this key: the least significant 64 bits of its SHA-256.
#[must_use]
pub fn initial_data_sequence(key: u64) -> u64 {
    let digest = digest(key);
    let mut low = [0; 8];
    low.copy_from_slice(&digest[24..]);
    u64::from_be_bytes(low)
}

/// Returns the HMAC-SHA256 keyed by both keys, the sender's first.
fn hmac_sha256(keys: Keys, parts: &[&[u8]]) -> [u8; 32] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&keys.sender.to_be_bytes());
    key[8..].copy_from_slice(&keys.receiver.to_be_bytes());
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// Returns the first 160 bits of the HMAC-SHA256 over both random numbers, the sender's first.
#[must_use]
pub fn join_hmac(keys: Keys, nonces: Nonces) -> [u8; 20] {
    let whole = hmac_sha256(
        keys,
        &[&nonces.sender.to_be_bytes(), &nonces.receiver.to_be_bytes()],
    );
    let mut first = [0; 20];
    first.copy_from_slice(&whole[..20]);
    first
}

/// Returns the last 64 bits of the HMAC-SHA256 over an address of the sender, its ID and its port; an absent port
/// counts as 0 (RFC 8684, section 3.4.1).
#[must_use]
pub fn address_hmac(keys: Keys, id: u8, address: IpAddr, port: Option<u16>) -> [u8; 8] {
    let port = port.unwrap_or(0).to_be_bytes();
    let whole = match address {
        IpAddr::V4(address) => hmac_sha256(keys, &[&[id], &address.octets(), &port]),
        IpAddr::V6(address) => hmac_sha256(keys, &[&[id], &address.octets(), &port]),
    };
    let mut last = [0; 8];
    last.copy_from_slice(&whole[24..]);
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reference values of an independent implementation of SHA-256 (FIPS 180-4) and HMAC (RFC 2104).
    #[test]
    fn derives_tokens_sequence_numbers_and_hmacs() {
        let keys = Keys {
            sender: 0x0123456789abcdef,
            receiver: 0xfedcba9876543210,
        };
        assert_eq!(token(keys.sender), 0x55c53f5d);
        assert_eq!(initial_data_sequence(keys.sender), 0x570762cd38be9818);
        let own = join_hmac(
            keys,
            Nonces {
                sender: 0xdead_beef,
                receiver: 0x0102_0304,
            },
        );
        assert_eq!(hex(&own), "b31b72218c9cccc47721ed25d6c5f20b5908ee98");
        let address = |id, text: &str, port| hex(&address_hmac(keys, id, text.parse().unwrap(), port));
        assert_eq!(address(7, "192.0.2.1", None), "467032caa887b481");
        assert_eq!(address(8, "2001:db8::1", Some(5001)), "2187cdfe37b0e344");
    }
}
