//! The one-time code, which a receiver prints and a sender's user types.

use std::fmt;
use std::str::FromStr;

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::text::{self, TextError};

/// Random bytes of a code: 96 bits, too many to be guessed from a recorded handshake.
const SECRET: usize = 12;
/// Bytes of the checksum, which detects typing errors.
const CHECKSUM: usize = 3;
/// Characters between hyphens.
const GROUP: usize = 6;

/// A shared secret of 96 random bits. Text form: four groups of six characters, the last 24 bits a checksum.
/// It is erased from memory when it is dropped.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Code {
    secret: [u8; SECRET],
}

impl Code {
    /// Creates a code from random bytes.
    #[must_use]
    pub const fn new(secret: [u8; SECRET]) -> Self {
        Self { secret }
    }

    /// Returns the pre-shared key of the handshake.
    #[must_use]
    pub fn key(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(blake3::derive_key(
            "longfat transfer 1: key of a code",
            &self.secret,
        ))
    }

    fn checksum(&self) -> [u8; CHECKSUM] {
        let hash = blake3::derive_key("longfat transfer 1: checksum of a code", &self.secret);
        [hash[0], hash[1], hash[2]]
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = Zeroizing::new([&self.secret[..], &self.checksum()].concat());
        let digits = Zeroizing::new(text::encode(&bytes));
        for (number, digit) in digits.chars().enumerate() {
            if number > 0 && number % GROUP == 0 {
                f.write_str("-")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code(secret)")
    }
}

impl FromStr for Code {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let bytes = text::decode::<{ SECRET + CHECKSUM }>(text.trim())?;
        let mut secret = [0; SECRET];
        secret.copy_from_slice(&bytes[..SECRET]);
        let code = Self { secret };
        if bytes[SECRET..] != code.checksum() {
            return Err(TextError::Checksum);
        }
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_typing_errors() {
        let code = Code::new([7; SECRET]);
        let text = code.to_string();
        assert_eq!(text.len(), 27);
        assert_eq!(text.parse(), Ok(code.clone()));
        assert_eq!(text.to_uppercase().replace('-', " ").parse(), Ok(code.clone()));
        for at in (0..text.len()).filter(|&at| text.as_bytes()[at] != b'-') {
            let mut wrong = text.clone().into_bytes();
            wrong[at] = if wrong[at] == b'7' { b'8' } else { b'7' };
            let wrong = String::from_utf8(wrong).unwrap();
            assert_eq!(wrong.parse::<Code>(), Err(TextError::Checksum), "{wrong}");
        }
        assert!(!format!("{code:?}").contains('7'));
    }
}
