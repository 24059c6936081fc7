//! Secrets and keys as text that people type: Crockford's base 32, without the letters i, l, o and u.

use std::sync::LazyLock;

use data_encoding::{DecodeKind, Encoding, Specification};
use zeroize::Zeroizing;

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

/// Digits in lower case, read in either case. Blanks and hyphens are ignored, and letters that resemble a digit count
/// as it.
static CROCKFORD: LazyLock<Encoding> = LazyLock::new(|| {
    let mut specification = Specification::new();
    specification.symbols.push_str("0123456789abcdefghjkmnpqrstvwxyz");
    specification
        .translate
        .from
        .push_str("ABCDEFGHJKMNPQRSTVWXYZoOiIlL");
    specification
        .translate
        .to
        .push_str("abcdefghjkmnpqrstvwxyz001111");
    specification.ignore.push_str("- ");
    specification.encoding().expect("a valid alphabet")
});

/// Returns `bytes` as digits, 5 bits each, filled with zero bits at the end.
pub fn encode(bytes: &[u8]) -> String {
    CROCKFORD.encode(bytes)
}

/// Reads digits.
///
/// # Errors
/// A character or length that does not fit `N` bytes.
pub fn decode<const N: usize>(text: &str) -> Result<Zeroizing<[u8; N]>, TextError> {
    let is_digit = |c: &char| !matches!(c, '-' | ' ');
    let unknown = |c: &char| !c.is_ascii_alphanumeric() || matches!(c, 'u' | 'U');
    if let Some(character) = text.chars().filter(is_digit).find(unknown) {
        return Err(TextError::Character(character));
    }
    let (digits, expected) = (text.chars().filter(is_digit).count(), (N * 8).div_ceil(5));
    if digits != expected {
        return Err(TextError::Length(digits, expected));
    }
    let decoded = CROCKFORD.decode(text.as_bytes()).map(Zeroizing::new);
    // Only the last digit's unused bits can be wrong now.
    let decoded = decoded.map_err(|error| {
        debug_assert_eq!(error.kind, DecodeKind::Trailing);
        TextError::Checksum
    })?;
    let mut bytes = Zeroizing::new([0; N]);
    bytes.copy_from_slice(&decoded);
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
        for typed in ["OOO-ZXZR", "ooozxzr", " 000 zx-zr"] {
            assert_eq!(*decode(typed).unwrap(), [0, 1, 254, 255], "{typed}");
        }
        assert_eq!(decode::<4>("000zxz"), Err(TextError::Length(6, 7)));
        assert_eq!(decode::<4>("000zxz!"), Err(TextError::Character('!')));
        assert_eq!(decode::<4>("000zxzu"), Err(TextError::Character('u')));
        assert_eq!(decode::<4>("000zxzé"), Err(TextError::Character('é')));
        assert_eq!(decode::<4>("000zxzs"), Err(TextError::Checksum));
        assert_eq!(decode::<5>("iIlLoO11"), decode("11110011"));
    }

    proptest! {
        #[test]
        fn returns_the_same_bytes(bytes in any::<[u8; 34]>()) {
            prop_assert_eq!(*decode(&encode(&bytes)).unwrap(), bytes);
        }

        #[test]
        fn reads_any_text_without_a_panic(text in ".{0,80}") {
            let _ = decode::<12>(&text);
        }

        #[test]
        fn reads_any_digits_without_a_panic(text in "[0-9a-zA-Z -]{20}") {
            let _ = decode::<12>(&text);
        }
    }
}
