//! Keys that leave packets as they are and append a tag: a constant, and the number of key updates.

use bytes::BytesMut;
use noq_proto::PathId;
use noq_proto::crypto::{CryptoError, HandshakeTokenKey, HeaderKey, HmacKey, KeyPair, Keys, PacketKey};

use crate::TAG;

/// Each byte of the tag, so that truncated or shifted packets fail like those of a real cipher.
const MARK: [u8; TAG] = [0xa5; TAG];

/// Packet protection without encryption, after this number of key updates. A receiver that uses keys of another number drops the
/// packet, as with a real cipher: over several paths the library does so with packets that a key update overtakes.
struct NullPacket(u8);

impl NullPacket {
    const fn mark(&self) -> [u8; TAG] {
        [MARK[0].wrapping_add(self.0); TAG]
    }
}

impl PacketKey for NullPacket {
    fn encrypt(&self, _: PathId, _: u64, buf: &mut [u8], _: usize) {
        let tag = buf.len() - TAG;
        buf[tag..].copy_from_slice(&self.mark());
    }

    fn decrypt(&self, _: PathId, _: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let length = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        if payload[length..] != self.mark() {
            return Err(CryptoError);
        }
        payload.truncate(length);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    /// AES-GCM (RFC 9001, section 6.6).
    fn confidentiality_limit(&self) -> u64 {
        1 << 23
    }

    /// AES-GCM (RFC 9001, section 6.6).
    fn integrity_limit(&self) -> u64 {
        1 << 52
    }
}

/// Header protection without a mask.
struct NullHeader;

impl HeaderKey for NullHeader {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}
    fn encrypt(&self, _: usize, _: &mut [u8]) {}
    fn sample_size(&self) -> usize {
        16
    }
}

/// Returns the keys after this number of updates.
pub(super) fn packet_pair(updates: u8) -> KeyPair<Box<dyn PacketKey>> {
    KeyPair {
        local: Box::new(NullPacket(updates)),
        remote: Box::new(NullPacket(updates)),
    }
}

pub(super) fn keys() -> Keys {
    Keys {
        header: KeyPair {
            local: Box::new(NullHeader),
            remote: Box::new(NullHeader),
        },
        packet: packet_pair(0),
    }
}

/// A signature of 32 bytes (SHA-256) that repeats the signed bytes, so that different connection IDs have different reset tokens.
pub(in crate::machine) struct NullHmac;

impl HmacKey for NullHmac {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        let repeated = data.iter().chain(&[0x5a]).cycle();
        for (out, byte) in signature_out.iter_mut().zip(repeated) {
            *out = *byte;
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut expected = vec![0; signature.len()];
        self.sign(data, &mut expected);
        if expected == signature {
            Ok(())
        } else {
            Err(CryptoError)
        }
    }
}

/// Handshake tokens in clear text with a tag.
pub(in crate::machine) struct NullToken;

impl HandshakeTokenKey for NullToken {
    fn seal(&self, _: u128, data: &mut Vec<u8>) -> Result<(), CryptoError> {
        data.extend(MARK);
        Ok(())
    }

    fn open<'a>(&self, _: u128, data: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        let length = data.len().checked_sub(TAG).ok_or(CryptoError)?;
        let (clear, tag) = data.split_at(length);
        if tag == MARK { Ok(clear) } else { Err(CryptoError) }
    }
}
