//! The host's TCP Fast Open settings (`net.ipv4.tcp_fastopen`), and its addresses, on which cookies depend.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use foundation::Instant;
use transport::tcp::fast_open::{CookieKey, CookieKeys};
use transport::tcp::{HostMemory, Opening, Segment, TcpConfig};

/// Clients use Fast Open.
const CLIENT: u64 = 0x1;
/// Listeners with the socket option `TCP_FASTOPEN` use Fast Open.
const SERVER: u64 = 0x2;
/// Clients send data without a cookie.
const CLIENT_WITHOUT_COOKIE: u64 = 0x4;
/// Servers accept data without a cookie.
const SERVER_WITHOUT_COOKIE: u64 = 0x200;
/// Listeners need no socket option.
const ALL_LISTENERS: u64 = 0x400;

/// Maximum of a listener's limit of pending connections (Linux's default of `net.core.somaxconn`).
const MAX_QUEUE: u64 = 4096;

/// packetdrill's addresses of the machine under test and of its peer.
const IPV4: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(192, 168, 0, 1)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
];
const IPV6: [IpAddr; 2] = [
    IpAddr::V6(Ipv6Addr::new(0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
];

/// Settings of Fast Open.
#[derive(Clone, Debug)]
pub struct FastOpenSettings {
    /// The bits of `net.ipv4.tcp_fastopen`.
    pub mode: u64,
    /// `net.ipv4.tcp_fastopen_key`.
    pub key: [u8; 16],
    /// The address of the machine under test.
    pub local: IpAddr,
    /// The address of its peer.
    pub remote: IpAddr,
}

impl Default for FastOpenSettings {
    /// Linux's default mode, and packetdrill's addresses.
    fn default() -> Self {
        Self {
            mode: CLIENT,
            key: [0; 16],
            local: IPV4[0],
            remote: IPV4[1],
        }
    }
}

/// Parses a key as the kernel writes it: four hexadecimal words, the first of a list of keys.
pub fn key(text: &str) -> Option<[u8; 16]> {
    let first = text.split(',').next()?;
    let words: Option<Vec<u32>> = first
        .split('-')
        .map(|word| u32::from_str_radix(word, 16).ok())
        .collect();
    let bytes: Vec<u8> = words?.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.try_into().ok()
}

impl FastOpenSettings {
    /// Whether clients may use Fast Open.
    pub const fn has_client(&self) -> bool {
        self.mode & CLIENT != 0
    }

    /// Replaces the default addresses by those of IPv6; addresses that the script set stay.
    pub fn use_ipv6(&mut self) {
        for (address, [old, new]) in [
            (&mut self.local, [IPV4[0], IPV6[0]]),
            (&mut self.remote, [IPV4[1], IPV6[1]]),
        ] {
            if *address == old {
                *address = new;
            }
        }
    }

    /// Returns a listener's limit of pending connections from the call of `listen` on (`__inet_listen_sk` of Linux). `queue`: the
    /// limit that its option `TCP_FASTOPEN` has set, initially 0.
    pub const fn queue_at_listen(&self, queue: u64, backlog: u64) -> u64 {
        if queue == 0 && self.mode & ALL_LISTENERS != 0 && self.mode & SERVER != 0 {
            Self::limited(backlog)
        } else {
            queue
        }
    }

    /// Returns a limit of pending connections as Linux stores it (`fastopen_queue_tune`).
    pub const fn limited(queue: u64) -> u64 {
        if queue < MAX_QUEUE { queue } else { MAX_QUEUE }
    }

    /// Whether a listener uses Fast Open. `queue`: its limit of pending connections.
    pub const fn listens(&self, queue: u64) -> bool {
        self.mode & SERVER != 0 && queue > 0
    }

    /// Returns how a client opens a connection.
    pub fn opening(&self, now: Instant, config: &TcpConfig, memory: &mut HostMemory) -> Opening {
        self.prepare(memory, self.key);
        memory.opening(now, &with_fast_open(config), self.remote)
    }

    /// Returns how a listener answers a SYN. `key`: that of the listener's option `TCP_FASTOPEN_KEY`; `queue`: its limit of
    /// pending connections.
    pub fn admission(
        &self,
        now: Instant,
        config: &TcpConfig,
        memory: &mut HostMemory,
        syn: &Segment,
        (key, queue): (Option<[u8; 16]>, u64),
    ) -> Opening {
        self.prepare(memory, key.unwrap_or(self.key));
        memory.limit_pending(usize::try_from(queue).unwrap_or(usize::MAX));
        memory.admission(now, &with_fast_open(config), self.remote, syn)
    }

    fn prepare(&self, memory: &mut HostMemory, key: [u8; 16]) {
        let server = self.local;
        *memory.cookie_keys() = CookieKeys::new(CookieKey::Linux { key, server });
        memory.set_cookieless(
            self.mode & CLIENT_WITHOUT_COOKIE != 0,
            self.mode & SERVER_WITHOUT_COOKIE != 0,
        );
    }
}

fn with_fast_open(config: &TcpConfig) -> TcpConfig {
    TcpConfig {
        fast_open: true,
        ..config.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_keys_and_modes() {
        let words = key("a0bf63f7-ed803d81-cd641d30-cebc4a90").unwrap();
        assert_eq!(words[..5], [0xf7, 0x63, 0xbf, 0xa0, 0x81]);
        assert_eq!((key("1-2-3"), key("x-1-2-3")), (None, None));
        let mode = |mode| FastOpenSettings {
            mode,
            ..FastOpenSettings::default()
        };
        let after_listen = |bits, queue| {
            let queue = mode(bits).queue_at_listen(queue, 3);
            (queue, mode(bits).listens(queue))
        };
        assert_eq!(after_listen(0x402, 0), (3, true));
        assert_eq!(after_listen(0x402, 5), (5, true));
        assert_eq!(after_listen(0x2, 5), (5, true));
        assert_eq!(after_listen(0x2, 0), (0, false));
        assert_eq!(after_listen(0x400, 0), (0, false));
        // The option disables Fast Open of a socket that listens.
        assert!(!mode(0x402).listens(0));
        assert!(mode(0x5).has_client() && !mode(0x2).has_client());
    }

    #[test]
    fn ipv6_replaces_default_addresses_only() {
        let own: IpAddr = "2001:db8::7".parse().unwrap();
        let mut settings = FastOpenSettings {
            remote: own,
            ..FastOpenSettings::default()
        };
        settings.use_ipv6();
        assert_eq!(settings.local, "fd3d:fa7b:d17d::1".parse::<IpAddr>().unwrap());
        assert_eq!(settings.remote, own);
    }
}
