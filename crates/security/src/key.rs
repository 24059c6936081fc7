//! Keys of machines and users, and lists of trusted keys.

use std::fmt;
use std::str::FromStr;

use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::text::{self, TextError};

const SECRET_PREFIX: &str = "longfat-secret-";
const PUBLIC_PREFIX: &str = "longfat-key-";
const KEY: usize = 32;
/// Bytes of the checksum.
const CHECKSUM: usize = 3;

fn to_text(prefix: &str, key: &[u8; KEY]) -> String {
    let checksum = blake3::derive_key("longfat transfer 1: checksum of a key", key);
    let bytes = Zeroizing::new([key, &checksum[..CHECKSUM]].concat());
    format!("{prefix}{}", *Zeroizing::new(text::encode(&bytes)))
}

fn of_text(prefix: &'static str, text: &str) -> Result<[u8; KEY], TextError> {
    let digits = text.strip_prefix(prefix).ok_or(TextError::Prefix(prefix))?;
    let bytes = text::decode::<{ KEY + CHECKSUM }>(digits)?;
    let mut key = [0; KEY];
    key.copy_from_slice(&bytes[..KEY]);
    let checksum = blake3::derive_key("longfat transfer 1: checksum of a key", &key);
    if bytes[KEY..] != checksum[..CHECKSUM] {
        return Err(TextError::Checksum);
    }
    Ok(key)
}

/// A secret X25519 key (RFC 7748), which is erased from memory when it is dropped. Its text is the content of an identity
/// file.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct SecretKey([u8; KEY]);

impl SecretKey {
    /// Creates a key from random bytes.
    #[must_use]
    pub const fn new(bytes: [u8; KEY]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; KEY] {
        &self.0
    }

    /// Returns the text of an identity file.
    #[must_use]
    pub fn to_text(&self) -> String {
        to_text(SECRET_PREFIX, &self.0)
    }

    /// Returns the public key.
    ///
    /// # Panics
    /// Never: X25519 is part of the build.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        let mut exchange = DefaultResolver
            .resolve_dh(&DHChoice::Curve25519)
            .expect("X25519 is part of the build");
        exchange.set(&self.0);
        let mut bytes = [0; KEY];
        bytes.copy_from_slice(exchange.pubkey());
        PublicKey(bytes)
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(secret)")
    }
}

impl FromStr for SecretKey {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        of_text(SECRET_PREFIX, text.trim()).map(Self)
    }
}

/// A public key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicKey([u8; KEY]);

impl PublicKey {
    /// Returns the key with these bytes.
    #[must_use]
    pub const fn new(bytes: [u8; KEY]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&to_text(PUBLIC_PREFIX, &self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl FromStr for PublicKey {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        of_text(PUBLIC_PREFIX, text.trim()).map(Self)
    }
}

/// Keys that may connect, with the names that their owners have here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedKeys {
    entries: Vec<(PublicKey, String)>,
}

impl TrustedKeys {
    /// Reads a list: one key per line, optionally followed by a name. Empty lines and lines that start with `#` are
    /// ignored.
    ///
    /// # Errors
    /// The number of the first invalid line, from 1, and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut entries = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, name) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let key = key
                .parse()
                .map_err(|error| (number + 1, format!("the key {error}")))?;
            entries.push((key, name.trim().to_owned()));
        }
        Ok(Self { entries })
    }

    /// Returns the number of keys.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the list has no key.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the name of a trusted key; `None` if the key is not trusted.
    #[must_use]
    pub fn name(&self, key: &PublicKey) -> Option<&str> {
        let entry = self.entries.iter().find(|(trusted, _)| trusted == key)?;
        Some(&entry.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derives_the_public_key_of_rfc_7748() {
        // Section 5.2: one iteration with k = u = 9, the base point.
        let mut nine = [0; 32];
        nine[0] = 9;
        let PublicKey(public) = SecretKey::new(nine).public();
        let hex: String = public.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"
        );
    }

    #[test]
    fn keys_survive_their_text_form_and_typing_errors_are_detected() {
        let secret = SecretKey::new([5; 32]);
        assert_eq!(secret.to_text().parse(), Ok(secret.clone()));
        let public = secret.public();
        let text = public.to_string();
        assert_eq!(text.parse(), Ok(public));
        assert_eq!(
            secret.to_text().parse::<PublicKey>(),
            Err(TextError::Prefix(PUBLIC_PREFIX))
        );
        let last = if text.ends_with('0') { "1" } else { "0" };
        let wrong = format!("{}{last}", &text[..text.len() - 1]);
        assert_eq!(wrong.parse::<PublicKey>(), Err(TextError::Checksum));
        assert_eq!(format!("{secret:?}"), "SecretKey(secret)");
    }

    #[test]
    fn secrets_are_erased_when_dropped() {
        fn erased<T: ZeroizeOnDrop>(_: &T) {}
        erased(&SecretKey::new([5; 32]));
        erased(&crate::code::Code::new([5; 12]));
        erased(&crate::code::Code::new([5; 12]).key());
    }

    #[test]
    fn reads_a_list_of_trusted_keys() {
        let (alice, bob) = (SecretKey::new([1; 32]).public(), SecretKey::new([2; 32]).public());
        let list = format!("# friends\n\n{alice} Alice's laptop\n  {bob}\n");
        let trusted = TrustedKeys::parse(&list).unwrap();
        assert_eq!(trusted.name(&alice), Some("Alice's laptop"));
        assert_eq!(trusted.name(&bob), Some(""));
        assert_eq!(trusted.name(&SecretKey::new([3; 32]).public()), None);
        assert_eq!(
            TrustedKeys::parse(&format!("\n{alice}x Alice")).unwrap_err(),
            (2, "the key has 57 characters instead of 56".to_owned())
        );
        assert!(TrustedKeys::parse("#\n").unwrap().is_empty());
    }
}
