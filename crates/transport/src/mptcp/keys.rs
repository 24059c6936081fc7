//! What follows from the keys: tokens, initial data sequence numbers and proofs (RFC 8684, sections 3.1 and 3.2).

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

fn digest(key: u64) -> [u8; 32] {
    Sha256::digest(key.to_be_bytes()).into()
}

/// The token of a key: the most significant 32 bits of its SHA-256.
#[must_use]
pub fn token(key: u64) -> u32 {
    let [a, b, c, d, ..] = digest(key);
    u32::from_be_bytes([a, b, c, d])
}

/// The initial data sequence number of the host with this key: the least significant 64 bits of its SHA-256.
#[must_use]
pub fn initial_data_sequence(key: u64) -> u64 {
    let digest = digest(key);
    let mut low = [0; 8];
    low.copy_from_slice(&digest[24..]);
    u64::from_be_bytes(low)
}

/// The first 160 bits of HMAC-SHA256 with both keys, over both random numbers; the prover's first.
#[must_use]
pub fn proof(keys: (u64, u64), nonces: (u32, u32)) -> [u8; 20] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&keys.0.to_be_bytes());
    key[8..].copy_from_slice(&keys.1.to_be_bytes());
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of any length");
    mac.update(&nonces.0.to_be_bytes());
    mac.update(&nonces.1.to_be_bytes());
    let whole = mac.finalize().into_bytes();
    let mut first = [0; 20];
    first.copy_from_slice(&whole[..20]);
    first
}
