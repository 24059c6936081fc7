//! Keys of one direction of a connection. After 2^22 records a new key replaces the old one, which keeps AES-GCM far
//! below its limits (RFC 9001, appendix B.1: 2^23 packets of any size). The record number determines the key, so no
//! message announces the change.

use ring::aead::{AES_128_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use zeroize::Zeroizing;

/// Records under one key.
pub const RECORDS_PER_KEY: u64 = 1 << 22;

/// How records are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    /// AES-128 in Galois/Counter Mode, for processors with AES instructions.
    Aes128Gcm,
    /// ChaCha20-Poly1305 (RFC 8439), fast on every processor.
    ChaCha20Poly1305,
}

impl Cipher {
    /// Returns the number in the handshake.
    pub const fn code(self) -> u8 {
        match self {
            Self::Aes128Gcm => 1,
            Self::ChaCha20Poly1305 => 2,
        }
    }

    /// Returns the cipher with this number.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Aes128Gcm),
            2 => Some(Self::ChaCha20Poly1305),
            _ => None,
        }
    }
}

/// The key of [`RECORDS_PER_KEY`] records.
pub struct TrafficKey {
    cipher: Cipher,
    /// The secret that this key and the next secret derive from.
    secret: Zeroizing<[u8; 32]>,
    key: LessSafeKey,
    iv: [u8; NONCE_LEN],
}

impl TrafficKey {
    /// Returns the first key of a direction.
    ///
    /// # Panics
    /// Never: the keys have the ciphers' lengths.
    pub fn new(cipher: Cipher, secret: Zeroizing<[u8; 32]>) -> Self {
        let key = Zeroizing::new(blake3::derive_key("longfat transfer 1: traffic key", &secret[..]));
        let (algorithm, length) = match cipher {
            Cipher::Aes128Gcm => (&AES_128_GCM, 16),
            Cipher::ChaCha20Poly1305 => (&CHACHA20_POLY1305, 32),
        };
        let key = UnboundKey::new(algorithm, &key[..length]).expect("the length of the cipher's key");
        let mut iv = [0; NONCE_LEN];
        iv.copy_from_slice(
            &blake3::derive_key("longfat transfer 1: traffic nonce", &secret[..])[..NONCE_LEN],
        );
        Self {
            cipher,
            secret,
            key: LessSafeKey::new(key),
            iv,
        }
    }

    /// Returns the key of the records that follow. The secret of this key does not derive from it.
    pub fn next(&self) -> Self {
        let secret = blake3::derive_key("longfat transfer 1: next traffic secret", &self.secret[..]);
        Self::new(self.cipher, Zeroizing::new(secret))
    }

    fn nonce(&self, record: u64) -> Nonce {
        let mut nonce = self.iv;
        for (byte, number) in nonce[NONCE_LEN - 8..].iter_mut().zip(record.to_be_bytes()) {
            *byte ^= number;
        }
        Nonce::assume_unique_for_key(nonce)
    }

    /// Encrypts `payload` of record number `record` in place; returns the tag. No number may be used twice.
    ///
    /// # Panics
    /// Never: datagrams are shorter than the cipher's limit.
    pub fn seal(&self, record: u64, header: &[u8], payload: &mut [u8]) -> [u8; 16] {
        let tag = self
            .key
            .seal_in_place_separate_tag(self.nonce(record), Aad::from(header), payload)
            .expect("a datagram is short enough");
        let mut bytes = [0; 16];
        bytes.copy_from_slice(tag.as_ref());
        bytes
    }

    /// Decrypts `payload`, which its tag follows, in place. Returns whether the tag is right.
    pub fn open(&self, record: u64, header: &[u8], payload: &mut [u8]) -> bool {
        self.key
            .open_in_place(self.nonce(record), Aad::from(header), payload)
            .is_ok()
    }
}

impl std::fmt::Debug for TrafficKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrafficKey")
            .field("cipher", &self.cipher)
            .finish_non_exhaustive()
    }
}
