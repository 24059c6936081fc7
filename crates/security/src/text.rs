//! Secrets and keys as text that people type: Crockford's base 32, without the letters i, l, o and u.

const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Why text is not valid. Each message completes "KEY ...".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// A character outside the alphabet.
    #[error("contains the character {0:?}")]
    Character(char),
    /// A wrong number of characters.
    #[error("has {0} characters instead of {1}")]
    Length(usize, usize),
    /// The checksum differs.
    #[error("has a typing error: its checksum differs")]
    Checksum,
    /// A different kind of text.
    #[error("does not start with {0:?}")]
    Prefix(&'static str),
}

/// Returns `bytes` as digits, 5 bits each, filled with zero bits at the end.
pub fn encode(bytes: &[u8]) -> String {
    let digits = (bytes.len() * 8).div_ceil(5);
    let bit = |at: usize| {
        bytes
            .get(at / 8)
            .is_some_and(|byte| byte >> (7 - at % 8) & 1 == 1)
    };
    (0..digits)
        .map(|digit| (0..5).fold(0, |value, at| value << 1 | usize::from(bit(digit * 5 + at))))
        .map(|value| char::from(DIGITS[value]))
        .collect()
}

/// Reads digits in upper or lower case. Blanks and hyphens are ignored, and letters that resemble a digit count as it.
///
/// # Errors
/// A character or length that does not fit `N` bytes.
pub fn decode<const N: usize>(text: &str) -> Result<[u8; N], TextError> {
    let mut bits = Vec::new();
    for character in text.chars().filter(|c| !matches!(c, '-' | ' ')) {
        let digit = match character.to_ascii_lowercase() {
            'o' => '0',
            'i' | 'l' => '1',
            other => other,
        };
        let value = DIGITS
            .iter()
            .position(|&d| char::from(d) == digit)
            .ok_or(TextError::Character(character))?;
        bits.extend((0..5).rev().map(|at| value >> at & 1 == 1));
    }
    let digits = (N * 8).div_ceil(5);
    if bits.len() != digits * 5 {
        return Err(TextError::Length(bits.len() / 5, digits));
    }
    if bits[N * 8..].contains(&true) {
        return Err(TextError::Checksum);
    }
    let mut bytes = [0; N];
    for (byte, bits) in bytes.iter_mut().zip(bits.chunks(8)) {
        *byte = bits.iter().fold(0, |value, &bit| value << 1 | u8::from(bit));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_type() {
        let text = encode(&[0, 1, 254, 255]);
        assert_eq!(text, "000zxzr");
        assert_eq!(decode("OOO-ZXZR"), Ok([0, 1, 254, 255]));
        assert_eq!(decode::<4>("000zxz"), Err(TextError::Length(6, 7)));
        assert_eq!(decode::<4>("000zxz!"), Err(TextError::Character('!')));
        assert_eq!(decode::<4>("000zxzs"), Err(TextError::Checksum));
    }

    proptest! {
        #[test]
        fn returns_the_same_bytes(bytes in any::<[u8; 34]>()) {
            prop_assert_eq!(decode(&encode(&bytes)), Ok(bytes));
        }

        #[test]
        fn reads_any_text_without_a_panic(text in ".{0,80}") {
            let _ = decode::<12>(&text);
        }
    }
}
