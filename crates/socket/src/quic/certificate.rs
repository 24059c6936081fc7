//! A chain of self-signed certificates (RFC 5280) of an exact size, with a key of ECDSA on P-256.

use quic::SMALLEST_REAL_CHAIN as SMALLEST_CHAIN;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};

use crate::error::Error;

/// Bytes of a signature in DER: 70 to 72, mostly 71.
const SIGNATURE: usize = 71;
/// Attempts to make a signature of this size; about half of them succeed.
const ATTEMPTS: usize = 200;

/// Types of DER (X.690, section 8).
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT: u8 = 0x06;
const UTF8: u8 = 0x0c;
const IA5: u8 = 0x16;
const TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;

/// ecdsa-with-SHA256 (RFC 5758, section 3.2).
const ECDSA_SHA256: [u8; 8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
/// id-ecPublicKey and secp256r1 (RFC 5480, section 2.1.1).
const EC_KEY: [u8; 7] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256: [u8; 8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
/// Common name and subject alternative name (RFC 5280, sections 4.1.2.4 and 4.2.1.6).
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
const ALTERNATIVE_NAME: [u8; 3] = [0x55, 0x1d, 0x11];
/// A comment, which verifiers ignore (nsComment, 2.16.840.1.113730.1.13).
const COMMENT: [u8; 9] = [0x60, 0x86, 0x48, 0x01, 0x86, 0xf8, 0x42, 0x01, 0x0d];

/// The name that certificates and clients use.
pub(super) const NAME: &str = "example.com";

/// A chain, its own key first.
pub(super) struct Chain {
    /// Certificates in DER.
    pub certificates: Vec<Vec<u8>>,
    /// The private key in PKCS#8.
    pub key: Vec<u8>,
}

/// Makes a chain of two certificates with `bytes` in all, or of one if two do not fit.
pub(super) fn chain(bytes: usize) -> Result<Chain, Error> {
    let failed = |what| Error::Tls(format!("no certificate of {bytes} bytes: {what}"));
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random);
    let key = key.map_err(|_| failed("no key"))?.as_ref().to_vec();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &key, &random);
    let pair = pair.map_err(|_| failed("no key"))?;
    let sizes = match bytes {
        ..SMALLEST_CHAIN => return Err(failed("too small")),
        _ if bytes < 2 * SMALLEST_CHAIN => vec![bytes],
        _ => vec![bytes - bytes / 2, bytes / 2],
    };
    let certificates = sizes
        .into_iter()
        .map(|size| certificate(size, &pair, &random).ok_or_else(|| failed("no signature")));
    Ok(Chain {
        certificates: certificates.collect::<Result<_, _>>()?,
        key,
    })
}

/// Returns a certificate of `size` bytes.
fn certificate(size: usize, pair: &EcdsaKeyPair, random: &SystemRandom) -> Option<Vec<u8>> {
    let key = pair.public_key().as_ref();
    let with = |comment: usize| {
        let content = content(key, comment);
        let length = der(SEQUENCE, &[&content, &algorithm(), &bits(&[0; SIGNATURE])]).len();
        (content, length)
    };
    // Lengths of DER take up to three bytes, so a few comments have no size of their own: the next smaller one does.
    let mut comment = size.saturating_sub(with(0).1);
    let mut content = with(comment);
    while content.1 > size && comment > 0 {
        comment -= 1;
        content = with(comment);
    }
    let (content, _) = content;
    (0..ATTEMPTS).find_map(|_| {
        let signature = pair.sign(random, &content).ok()?;
        let is_fit = signature.as_ref().len() == SIGNATURE;
        is_fit.then(|| der(SEQUENCE, &[&content, &algorithm(), &bits(signature.as_ref())]))
    })
}

/// Returns the signed part (RFC 5280, section 4.1).
fn content(key: &[u8], comment: usize) -> Vec<u8> {
    let name = der(
        SEQUENCE,
        &[&der(
            SET,
            &[&der(
                SEQUENCE,
                &[&der(OBJECT, &[&COMMON_NAME]), &der(UTF8, &[NAME.as_bytes()])],
            )],
        )],
    );
    let validity = der(
        SEQUENCE,
        &[
            &der(TIME, &[b"20000101000000Z"]),
            &der(TIME, &[b"21000101000000Z"]),
        ],
    );
    let key_type = der(SEQUENCE, &[&der(OBJECT, &[&EC_KEY]), &der(OBJECT, &[&P256])]);
    let key = der(SEQUENCE, &[&key_type, &bits(key)]);
    // dNSName has the context tag 2.
    let names = der(SEQUENCE, &[&der(0x82, &[NAME.as_bytes()])]);
    let mut extensions = extension(&ALTERNATIVE_NAME, &names);
    if comment > 0 {
        extensions.extend(extension(&COMMENT, &der(IA5, &[&vec![b'.'; comment]])));
    }
    let version = der(0xa0, &[&der(INTEGER, &[&[2]])]);
    let serial = der(INTEGER, &[&[1]]);
    let extensions = der(0xa3, &[&der(SEQUENCE, &[&extensions])]);
    der(
        SEQUENCE,
        &[
            &version,
            &serial,
            &algorithm(),
            &name,
            &validity,
            &name,
            &key,
            &extensions,
        ],
    )
}

fn algorithm() -> Vec<u8> {
    der(SEQUENCE, &[&der(OBJECT, &[&ECDSA_SHA256])])
}

fn extension(object: &[u8], value: &[u8]) -> Vec<u8> {
    der(SEQUENCE, &[&der(OBJECT, &[object]), &der(OCTET_STRING, &[value])])
}

/// Returns a bit string of whole bytes.
fn bits(bytes: &[u8]) -> Vec<u8> {
    der(BIT_STRING, &[&[0], bytes])
}

/// Returns a value: type, length and content.
fn der(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut out = vec![kind];
    match content.len() {
        short @ 0..0x80 => out.push(short as u8),
        short @ 0x80..0x100 => out.extend([0x81, short as u8]),
        long => out.extend([0x82, (long >> 8) as u8, long as u8]),
    }
    out.extend(content);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The study's key is the size of the chain, so real chains have it, up to the few sizes that DER lacks.
    #[test]
    fn chains_have_their_size() {
        for bytes in [SMALLEST_CHAIN, 500, 640, 1000, 3000, 10_000, 12_000] {
            let chain = chain(bytes).unwrap();
            let size: usize = chain.certificates.iter().map(Vec::len).sum();
            assert!((bytes - 8..=bytes).contains(&size), "{size} of {bytes}");
        }
        assert!(chain(SMALLEST_CHAIN - 1).is_err());
    }
}
