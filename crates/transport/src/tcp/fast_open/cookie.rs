//! Cookies: proof that a client receives packets at its source address (RFC 7413, section 4.1).

use std::fmt;
use std::net::IpAddr;

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

/// A server's current key, and the previous one, whose cookies remain valid (RFC 7413, section 4.1.2).
#[derive(Clone)]
pub struct CookieKeys {
    current: [u8; 32],
    previous: Option<[u8; 32]>,
}

impl CookieKeys {
    /// Returns keys with this secret.
    #[must_use]
    pub const fn new(key: [u8; 32]) -> Self {
        Self {
            current: key,
            previous: None,
        }
    }

    /// Replaces the key. Cookies of the previous key remain valid until the next change.
    pub const fn change(&mut self, key: [u8; 32]) {
        self.previous = Some(self.current);
        self.current = key;
    }

    /// Returns the cookie of a client: a message authentication code of its address (RFC 7413, section 4.1.2), here keyed
    /// BLAKE3.
    #[must_use]
    pub fn cookie(&self, client: IpAddr) -> Cookie {
        make(&self.current, client)
    }

    /// Checks a client's cookie.
    #[must_use]
    pub fn check(&self, client: IpAddr, cookie: Cookie) -> CookieStatus {
        if make(&self.current, client) == cookie {
            return CookieStatus::Valid;
        }
        match &self.previous {
            Some(key) if make(key, client) == cookie => CookieStatus::Outdated,
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

fn make(key: &[u8; 32], client: IpAddr) -> Cookie {
    let address = match client {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    let digest = blake3::keyed_hash(key, &address.octets());
    let mut bytes = [0; MAX_LENGTH];
    bytes[..LENGTH].copy_from_slice(&digest.as_bytes()[..LENGTH]);
    Cookie {
        length: LENGTH as u8,
        bytes,
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
