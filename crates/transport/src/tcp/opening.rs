//! How connections that may carry data before their handshake ends open, and what a host caches about its peers for them.

use std::net::IpAddr;

use foundation::Instant;

use super::config::{Profile, TcpConfig};
use super::fast_open::{
    Cookie, CookieCache, CookieKeys, CookieStatus, FastOpen, PendingOpens, SynAckFinding, SynOption,
};
use super::segment::{Flags, Segment};
use super::ttcp::{Count, CountCache, Counter, TaoTest};

/// How a connection opens, as decided by [`HostMemory`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Opening(pub(super) OpeningMode);

#[derive(Clone, Copy, Debug, Default)]
pub(super) enum OpeningMode {
    /// A three-way handshake.
    #[default]
    Plain,
    /// TCP Fast Open at the client.
    FastOpenClient {
        syn: SynOption,
        /// The SYN carries data without a cookie.
        cookieless: bool,
    },
    /// TCP Fast Open at the server.
    FastOpenServer {
        /// New cookie for the client.
        grant: Option<Cookie>,
        /// The client's option has the experimental kind.
        experimental: bool,
        /// The client's cookie is valid.
        early: bool,
    },
    /// T/TCP at the client.
    TtcpClient {
        count: Count,
        /// The server has cached an earlier count: send CC, otherwise CC.NEW.
        known: bool,
        mss: Option<u16>,
    },
    /// T/TCP at the server.
    TtcpServer {
        count: Count,
        /// The client's count.
        peer: Count,
        /// The client passed the TAO test.
        early: bool,
    },
}

impl Opening {
    pub(super) const fn is_plain(&self) -> bool {
        matches!(self.0, OpeningMode::Plain)
    }
}

/// What a connection has discovered about its peer, for [`HostMemory::apply`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerUpdate(pub(super) Discovery);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discovery {
    /// A server's SYN-ACK to a SYN with the Fast Open option.
    CookieReply(SynAckFinding),
    /// A SYN with data was answered only after its retransmission without data.
    SynDataLost,
    /// A connection that opened early is established or has failed; `reset`: the client reset it.
    PendingClosed { reset: bool },
    /// A server echoed this host's count and sent its own.
    CountEcho {
        count: Count,
        peer: Count,
        mss: Option<u16>,
    },
    /// A server did not echo this host's count.
    NoEcho,
    /// A handshake proved that a client's count is new.
    CountProof { peer: Count, mss: Option<u16> },
}

/// Cached state of peers, by address, and the host's secrets, for connections with `fast_open` or `ttcp`.
#[derive(Clone, Debug)]
pub struct HostMemory {
    keys: CookieKeys,
    cookies: CookieCache,
    pending: PendingOpens,
    /// Whether clients and servers do without cookies.
    cookieless: (bool, bool),
    counter: Counter,
    counts: CountCache,
}

impl HostMemory {
    /// A host with an empty cache. `key`: secret of its cookies; `count`: start of its connection counts.
    #[must_use]
    pub fn new(key: [u8; 32], count: u32) -> Self {
        Self {
            keys: CookieKeys::new(key),
            cookies: CookieCache::default(),
            pending: PendingOpens::default(),
            cookieless: (false, false),
            counter: Counter::new(count),
            counts: CountCache::default(),
        }
    }

    /// Returns the keys of the host's cookies.
    pub const fn cookie_keys(&mut self) -> &mut CookieKeys {
        &mut self.keys
    }

    /// Limits how many Fast Open connections may be open before their handshake ends (`PendingFastOpenRequests` of
    /// RFC 7413, section 4.2); further ones complete the handshake first. Default: 256.
    pub const fn limit_pending(&mut self, limit: usize) {
        self.pending.set_limit(limit);
    }

    /// Sets whether clients send data, and servers accept it, without a cookie (bits 0x4 and 0x200 of Linux's
    /// `net.ipv4.tcp_fastopen`). This opens the server to forged addresses. Default: neither.
    pub const fn set_cookieless(&mut self, client: bool, server: bool) {
        self.cookieless = (client, server);
    }

    /// Discards the cached cookies.
    pub fn forget_cookies(&mut self) {
        self.cookies = CookieCache::default();
    }

    /// Returns how a client with these settings opens a connection to `peer`.
    pub fn opening(&mut self, now: Instant, config: &TcpConfig, peer: IpAddr) -> Opening {
        Opening(if config.fast_open {
            let mut syn = self.cookies.option(now, peer, config.profile == Profile::Linux);
            let cookieless = self.cookieless.0;
            if cookieless {
                syn.option = None;
            }
            OpeningMode::FastOpenClient { syn, cookieless }
        } else if config.ttcp {
            let count = self.counter.take();
            let (known, mss) = self.counts.on_open(peer, count);
            OpeningMode::TtcpClient { count, known, mss }
        } else {
            OpeningMode::Plain
        })
    }

    /// Returns how a listener with these settings answers a SYN of `peer`.
    pub fn admission(&mut self, now: Instant, config: &TcpConfig, peer: IpAddr, syn: &Segment) -> Opening {
        if !syn.has(Flags::SYN) || syn.has(Flags::RST | Flags::ACK) {
            return Opening::default();
        }
        Opening(if config.fast_open {
            self.admit_fast_open(now, peer, syn)
        } else if let Some(count) = syn.options.count.filter(|_| config.ttcp) {
            let test = self
                .counts
                .on_syn(peer, count, syn.options.opening().count_is_new);
            OpeningMode::TtcpServer {
                count: self.counter.take(),
                peer: count,
                early: test == TaoTest::Passed,
            }
        } else {
            OpeningMode::Plain
        })
    }

    /// RFC 7413, section 4.2.2: a valid cookie opens early; an invalid one and a request are answered with a new cookie.
    fn admit_fast_open(&mut self, now: Instant, peer: IpAddr, syn: &Segment) -> OpeningMode {
        let opening = syn.options.opening();
        let status = match opening.fast_open {
            option if self.cookieless.1 && (option.is_some() || syn.length > 0) => CookieStatus::Valid,
            None => return OpeningMode::Plain,
            Some(FastOpen::Request) => CookieStatus::Invalid,
            Some(FastOpen::Cookie(cookie)) => self.keys.check(peer, cookie),
        };
        OpeningMode::FastOpenServer {
            grant: (status != CookieStatus::Valid).then(|| self.keys.cookie(peer)),
            experimental: opening.experimental,
            early: status != CookieStatus::Invalid && self.pending.start(now),
        }
    }

    /// Updates the cache with what a connection to `peer` discovered.
    pub fn apply(&mut self, now: Instant, peer: IpAddr, update: PeerUpdate) {
        match update.0 {
            Discovery::CookieReply(finding) => self.cookies.on_answer(now, peer, finding),
            Discovery::SynDataLost => self.cookies.on_loss(now, peer),
            Discovery::PendingClosed { reset } => self.pending.finish(now, reset),
            Discovery::CountEcho {
                count,
                peer: theirs,
                mss,
            } => {
                self.counts.on_echo(peer, count);
                self.counts.on_proven(peer, theirs, mss);
            }
            Discovery::NoEcho => self.counts.on_missing_echo(peer),
            Discovery::CountProof { peer: theirs, mss } => self.counts.on_proven(peer, theirs, mss),
        }
    }
}
