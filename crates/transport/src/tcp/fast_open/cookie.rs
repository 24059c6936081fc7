//! Cookies: proof that a client receives packets at its source address (RFC 7413, section 4.1).

use std::fmt;
use std::net::IpAddr;

use super::siphash::siphash;

/// Maximum bytes of a cookie (RFC 7413, section 4.1.1).
const MAX_LENGTH: usize = 16;
/// Minimum bytes of a cookie.
const MIN_LENGTH: usize = 4;
/// Bytes of issued cookies, as in Linux.
const LENGTH: usize = 8;

/// A cookie of 4 to 16 bytes, with an even length.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cookie {
    length: u8,
    bytes: [u8; MAX_LENGTH],
}

impl Cookie {
    /// Returns the cookie with these bytes; `None` for an invalid length.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let length = bytes.len();
        if !(MIN_LENGTH..=MAX_LENGTH).contains(&length) || !length.is_multiple_of(2) {
            return None;
        }
        let mut all = [0; MAX_LENGTH];
        all[..length].copy_from_slice(bytes);
        Some(Self {
            length: length as u8,
            bytes: all,
        })
    }

    /// Returns the bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice()
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The Fast Open option of a SYN or SYN-ACK (RFC 7413, section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FastOpen {
    /// Cookie request of a client.
    Request,
    /// Cookie of a client's SYN, or issued by a server.
    Cookie(Cookie),
}

impl FastOpen {
    /// Returns the bytes of the cookie; empty for a request.
    #[must_use]
    pub fn cookie_bytes(&self) -> &[u8] {
        match self {
            Self::Request => &[],
            Self::Cookie(cookie) => cookie.as_slice(),
        }
    }

    /// Returns the option with these cookie bytes; `None` for an invalid length.
    #[must_use]
    pub fn from_cookie_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self::Request);
        }
        Cookie::new(bytes).map(Self::Cookie)
    }
}

/// Result of a server's check of a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieStatus {
    /// Valid for this client.
    Valid,
    /// Valid with the previous key: accepted, and answered with a new cookie.
    Outdated,
    /// Not valid for this client.
    Invalid,
}

/// A server's secret with the function that computes cookies.
#[derive(Clone, Copy)]
pub enum CookieKey {
    /// Keyed BLAKE3 of the client's address.
    Blake3([u8; 32]),
    /// SipHash-2-4 of both addresses, as Linux since version 5.4 (`tcp_fastopen_cookie_gen_cipher`).
    Linux {
        /// The key of `net.ipv4.tcp_fastopen_key` or `TCP_FASTOPEN_KEY`.
        key: [u8; 16],
        /// The server's address.
        server: IpAddr,
    },
}

impl From<[u8; 32]> for CookieKey {
    fn from(key: [u8; 32]) -> Self {
        Self::Blake3(key)
    }
}

impl CookieKey {
    /// Returns the cookie of a client: a message authentication code of its address (RFC 7413, section 4.1.2).
    #[must_use]
    pub fn cookie(&self, client: IpAddr) -> Cookie {
        let digest: [u8; LENGTH] = match self {
            Self::Blake3(key) => {
                let address = match client {
                    IpAddr::V4(address) => address.to_ipv6_mapped(),
                    IpAddr::V6(address) => address,
                };
                let digest = blake3::keyed_hash(key, &address.octets());
                std::array::from_fn(|index| digest.as_bytes()[index])
            }
            Self::Linux { key, server } => {
                let mut addresses = octets(client);
                addresses.extend(octets(*server));
                siphash(key, &addresses)
            }
        };
        let mut bytes = [0; MAX_LENGTH];
        bytes[..LENGTH].copy_from_slice(&digest);
        Cookie {
            length: LENGTH as u8,
            bytes,
        }
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// A server's current key, and the previous one, whose cookies remain valid (RFC 7413, section 4.1.2).
#[derive(Clone)]
pub struct CookieKeys {
    current: CookieKey,
    previous: Option<CookieKey>,
}

impl CookieKeys {
    /// Returns keys with this secret.
    #[must_use]
    pub fn new(key: impl Into<CookieKey>) -> Self {
        Self {
            current: key.into(),
            previous: None,
        }
    }

    /// Replaces the key. Cookies of the previous key remain valid until the next change.
    pub fn change(&mut self, key: impl Into<CookieKey>) {
        self.previous = Some(self.current);
        self.current = key.into();
    }

    /// Returns the cookie of a client with the current key.
    #[must_use]
    pub fn cookie(&self, client: IpAddr) -> Cookie {
        self.current.cookie(client)
    }

    /// Checks a client's cookie.
    #[must_use]
    pub fn check(&self, client: IpAddr, cookie: Cookie) -> CookieStatus {
        if self.current.cookie(client) == cookie {
            return CookieStatus::Valid;
        }
        match &self.previous {
            Some(key) if key.cookie(client) == cookie => CookieStatus::Outdated,
            _ => CookieStatus::Invalid,
        }
    }
}

impl fmt::Debug for CookieKeys {
    /// Omits the keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CookieKeys").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

    #[test]
    fn a_cookie_is_valid_for_one_client_and_one_key() {
        let mut keys = CookieKeys::new([1; 32]);
        let cookie = keys.cookie(CLIENT);
        assert_eq!(keys.check(CLIENT, cookie), CookieStatus::Valid);
        assert_eq!(keys.check(OTHER, cookie), CookieStatus::Invalid);
        assert_eq!(
            CookieKeys::new([2; 32]).check(CLIENT, cookie),
            CookieStatus::Invalid
        );
        keys.change([2; 32]);
        assert_eq!(keys.check(CLIENT, cookie), CookieStatus::Outdated);
        assert_eq!(keys.check(CLIENT, keys.cookie(CLIENT)), CookieStatus::Valid);
        keys.change([3; 32]);
        assert_eq!(keys.check(CLIENT, cookie), CookieStatus::Invalid);
    }

    #[test]
    fn linux_cookies_match_those_of_the_kernel() {
        // Cookies that Linux issues with these keys and addresses, from the scripts of google/packetdrill.
        let cookie = |words: [u32; 4], client: [u8; 4], server: [u8; 4]| {
            let mut key = [0; 16];
            for (place, word) in key.chunks_mut(4).zip(words) {
                place.copy_from_slice(&word.to_le_bytes());
            }
            let server = Ipv4Addr::from(server).into();
            CookieKey::Linux { key, server }
                .cookie(Ipv4Addr::from(client).into())
                .to_string()
        };
        let first = [0xa1a1_a1a1, 0xb2b2_b2b2, 0xc3c3_c3c3, 0xd4d4_d4d4];
        assert_eq!(
            cookie(first, [192, 0, 2, 1], [192, 168, 0, 1]),
            "3021b9d889017eeb"
        );
        let second = [0xa0bf_63f7, 0xed80_3d81, 0xcd64_1d30, 0xcebc_4a90];
        assert_eq!(
            cookie(second, [10, 248, 0, 2], [192, 168, 0, 2]),
            "00abaaabe8e954c2"
        );
        assert_eq!(
            cookie([0; 4], [10, 248, 0, 2], [192, 168, 0, 2]),
            "93b7aa4f550f8a1a"
        );
    }

    #[test]
    fn accepts_only_valid_cookie_lengths() {
        // RFC 7413, section 4.1.1: 4 to 16 bytes, and an even number.
        let good: Vec<usize> = (0..20)
            .filter(|&length| Cookie::new(&vec![7; length]).is_some())
            .collect();
        assert_eq!(good, [4, 6, 8, 10, 12, 14, 16]);
        assert_eq!(FastOpen::from_cookie_bytes(&[]), Some(FastOpen::Request));
        assert_eq!(FastOpen::from_cookie_bytes(&[1; 3]), None);
    }
}
