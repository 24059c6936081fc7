//! The host's TCP Fast Open settings (`net.ipv4.tcp_fastopen`), and what its connections remember.

use std::net::{IpAddr, Ipv4Addr};

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
            local: Ipv4Addr::new(192, 168, 0, 1).into(),
            remote: Ipv4Addr::new(192, 0, 2, 1).into(),
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

    /// Whether a listener uses Fast Open. `queue`: the value of its option `TCP_FASTOPEN`.
    pub fn listens(&self, queue: Option<u64>) -> bool {
        let is_wanted = queue.map_or(self.mode & ALL_LISTENERS != 0, |queue| queue > 0);
        self.mode & SERVER != 0 && is_wanted
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
        (key, queue): (Option<[u8; 16]>, Option<u64>),
    ) -> Opening {
        self.prepare(memory, key.unwrap_or(self.key));
        if let Some(queue) = queue {
            memory.limit_pending(usize::try_from(queue).unwrap_or(usize::MAX));
        }
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
        assert!(mode(0x402).listens(None) && !mode(0x400).listens(None) && !mode(0x2).listens(None));
        assert!(mode(0x2).listens(Some(5)) && !mode(0x402).listens(Some(0)));
        assert!(mode(0x5).has_client() && !mode(0x2).has_client());
    }
}
