//! Multipath TCP: which connections of a capture are subflows of one (RFC 8684).
//!
//! Each end of the first subflow announces a key. A further subflow names the key of its peer by a token: the first 32 bits
//! of the key's SHA-256.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

/// Number of the option, and its subtypes.
pub const OPTION: u8 = 30;
const CAPABLE: u8 = 0;
const JOIN: u8 = 1;
/// Version of the protocol; the tokens of version 0 are made otherwise.
const VERSION: u8 = 1;

/// The option of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multipath {
    /// `MP_CAPABLE` with the keys of its sender and of its receiver.
    Capable(Option<u64>, Option<u64>),
    /// `MP_JOIN` of a SYN, with the token of its receiver.
    Join(u32),
}

impl Multipath {
    /// Reads an option with its kind and length; none for other subtypes.
    #[must_use]
    pub fn read(option: &[u8], is_first: bool) -> Option<Self> {
        let subtype = *option.get(2)?;
        let key = |at: usize| Some(u64::from_be_bytes(option.get(at..at + 8)?.try_into().ok()?));
        match (subtype >> 4, subtype & 0xf) {
            (CAPABLE, VERSION) => Some(Self::Capable(key(4), key(12))),
            (JOIN, _) if is_first && option.len() == 12 => {
                Some(Self::Join(u32::from_be_bytes(option[4..8].try_into().ok()?)))
            }
            _ => None,
        }
    }
}

/// Returns the token of a key.
#[must_use]
pub fn token(key: u64) -> u32 {
    let hash = Sha256::digest(key.to_be_bytes());
    u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]])
}

/// Keys of both ends, and the token of a joining subflow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Subflow {
    /// Keys of the client and of the server.
    pub keys: [Option<u64>; 2],
    /// Token of the server's key.
    pub joins: Option<u32>,
}

impl Subflow {
    /// Takes the option of a packet of an end (0 is the client).
    pub const fn option(&mut self, option: Multipath, from: usize) {
        match option {
            Multipath::Capable(own, peer) => {
                if let Some(key) = own {
                    self.keys[from] = Some(key);
                }
                if let Some(key) = peer {
                    self.keys[1 - from] = Some(key);
                }
            }
            Multipath::Join(token) => self.joins = Some(token),
        }
    }
}

/// Returns, for each subflow with its stream, the stream of the first subflow of its connection.
#[must_use]
pub fn first_subflows(all: impl Iterator<Item = (usize, Subflow)>) -> HashMap<usize, usize> {
    let all: Vec<(usize, Subflow)> = all.collect();
    let keys = all
        .iter()
        .flat_map(|(stream, one)| one.keys.into_iter().flatten().map(|key| (token(key), *stream)));
    let first: HashMap<u32, usize> = keys.collect();
    all.iter()
        .filter_map(|(stream, one)| match one.joins {
            Some(token) => first.get(&token).map(|first| (*stream, *first)),
            None => one.keys.iter().any(Option::is_some).then_some((*stream, *stream)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subflows_are_joined_by_the_token_of_the_key() {
        // SHA-256 of eight zero bytes starts with af5570f5.
        assert_eq!(token(0), 0xaf55_70f5);
        let mut first = Subflow::default();
        first.option(Multipath::Capable(Some(5), Some(0)), 0);
        let mut second = Subflow::default();
        let syn = [30, 12, 0x10, 1, 0xaf, 0x55, 0x70, 0xf5, 0, 0, 0, 9];
        second.option(Multipath::read(&syn, true).expect("join"), 0);
        let other = Subflow::default();
        let found = first_subflows([(0, first), (2, second), (3, other)].into_iter());
        assert_eq!(found, HashMap::from([(0, 0), (2, 0)]));
    }

    #[test]
    fn cut_options_are_none() {
        for length in 0..12 {
            let syn = [30, 12, 0x10, 1, 1, 2, 3, 4, 5, 6, 7, 8];
            assert_eq!(Multipath::read(&syn[..length], true), None);
        }
        assert_eq!(
            Multipath::read(&[30, 4, 1, 0], true),
            Some(Multipath::Capable(None, None))
        );
    }
}
