//! Cookies: proof that a client has received something at the address that it sends from (RFC 7413, section 4.1).

use std::fmt;
use std::net::IpAddr;

/// The most bytes of a cookie (RFC 7413, section 4.1.1).
const MOST: usize = 16;
/// The fewest.
const LEAST: usize = 4;
/// Bytes of the cookies that are made here, as Linux makes them.
const LENGTH: usize = 8;

/// A cookie: 4 to 16 bytes, an even number of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cookie {
    length: u8,
    bytes: [u8; MOST],
}

impl Cookie {
    /// The cookie of these bytes; `None` where no cookie is so long.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let length = bytes.len();
        if !(LEAST..=MOST).contains(&length) || !length.is_multiple_of(2) {
            return None;
        }
        let mut all = [0; MOST];
        all[..length].copy_from_slice(bytes);
        Some(Self {
            length: length as u8,
            bytes: all,
        })
    }

    /// Its bytes.
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

/// The option of a SYN or its answer (RFC 7413, section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FastOpen {
    /// The client asks for a cookie.
    Request,
    /// The client shows its cookie, or the server gives one.
    Cookie(Cookie),
}

impl FastOpen {
    /// Bytes of the cookie: none in a request.
    #[must_use]
    pub fn cookie_bytes(&self) -> &[u8] {
        match self {
            Self::Request => &[],
            Self::Cookie(cookie) => cookie.as_slice(),
        }
    }

    /// The option of these cookie bytes; `None` for a length that no option has.
    #[must_use]
    pub fn from_cookie_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self::Request);
        }
        Cookie::new(bytes).map(Self::Cookie)
    }
}

/// What a server makes of a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieStatus {
    /// It is the client's.
    Valid,
    /// It is the client's, made with the key before: it is taken, and the client is given a new one.
    Outdated,
    /// It is not.
    Invalid,
}

/// The keys of a server: that of the cookies that it gives, and the one before, whose cookies it still takes
/// (RFC 7413, section 4.1.2).
#[derive(Clone)]
pub struct CookieKeys {
    current: [u8; 32],
    previous: Option<[u8; 32]>,
}

impl CookieKeys {
    /// A server with this secret key.
    #[must_use]
    pub const fn new(key: [u8; 32]) -> Self {
        Self {
            current: key,
            previous: None,
        }
    }

    /// From now on cookies are made with `key`; those of the key until now are taken until the next change.
    pub const fn change(&mut self, key: [u8; 32]) {
        self.previous = Some(self.current);
        self.current = key;
    }

    /// The cookie of a client: a function of its address that nobody else can compute (RFC 7413, section 4.1.2, asks
    /// for a message authentication code of the address; this is keyed BLAKE3).
    #[must_use]
    pub fn cookie(&self, client: IpAddr) -> Cookie {
        make(&self.current, client)
    }

    /// Whether a cookie is the client's.
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
    /// Without the keys.
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
    let mut bytes = [0; MOST];
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
    fn a_cookie_is_one_clients_and_one_keys() {
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
    fn lengths_are_those_of_the_rfc() {
        // RFC 7413, section 4.1.1: 4 to 16 bytes, and an even number.
        let good: Vec<usize> = (0..20)
            .filter(|&length| Cookie::new(&vec![7; length]).is_some())
            .collect();
        assert_eq!(good, [4, 6, 8, 10, 12, 14, 16]);
        assert_eq!(FastOpen::from_cookie_bytes(&[]), Some(FastOpen::Request));
        assert_eq!(FastOpen::from_cookie_bytes(&[1; 3]), None);
    }
}
