//! Connections that may carry data before their handshake ends: what a host keeps between its connections for that, how one
//! connection opens, and what it teaches the host.

use std::net::IpAddr;

use foundation::Instant;

use super::config::TcpConfig;
use super::fast_open::{Cookie, CookieCache, CookieKeys, CookieStatus, FastOpen, PendingOpens};
use super::segment::{Flags, Segment};
use super::ttcp::{Count, CountCache, Counter, TaoTest};

/// How a connection opens: an answer of [`HostMemory`], which knows the peer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Opening(pub(super) OpeningMode);

/// The ways to open.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum OpeningMode {
    /// With a handshake, and nothing else.
    #[default]
    Plain,
    /// TCP Fast Open, at the client.
    FastOpenClient {
        option: Option<FastOpen>,
        /// The segment size that the server announced before.
        mss: Option<u16>,
    },
    /// TCP Fast Open, at the server.
    FastOpenServer {
        /// A cookie for the client.
        grant: Option<Cookie>,
        /// The client has shown a good one.
        early: bool,
    },
    /// T/TCP at the client.
    TtcpClient {
        count: Count,
        /// The server remembers an earlier count: CC; else CC.NEW.
        known: bool,
        mss: Option<u16>,
    },
    /// T/TCP at the server.
    TtcpServer {
        count: Count,
        /// The client's.
        peer: Count,
        /// The TAO test was passed.
        early: bool,
    },
}

impl Opening {
    pub(super) const fn is_plain(&self) -> bool {
        matches!(self.0, OpeningMode::Plain)
    }
}

/// What a connection has found out that is of use to later ones: for [`HostMemory::learn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lesson(pub(super) Discovery);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discovery {
    /// A server's answer to a SYN with the option of Fast Open.
    CookieReply {
        cookie: Option<Cookie>,
        /// It was requested for a cookie.
        requested: bool,
        mss: Option<u16>,
    },
    /// A SYN with data was answered only when it was sent again without.
    SynDataLost,
    /// A connection that was opened early stands or has failed; `reset` by the client.
    PendingClosed { reset: bool },
    /// A server has echoed this host's count, and told its own.
    CountEcho {
        count: Count,
        peer: Option<Count>,
        mss: Option<u16>,
    },
    /// A server has not.
    NoEcho,
    /// A handshake has proven a client's count.
    CountProof { peer: Count, mss: Option<u16> },
}

/// What a host remembers of others, and its secrets: for connections with `fast_open` or `ttcp`. Peers are named by their
/// addresses.
#[derive(Clone, Debug)]
pub struct HostMemory {
    keys: CookieKeys,
    cookies: CookieCache,
    pending: PendingOpens,
    counter: Counter,
    counts: CountCache,
}

impl HostMemory {
    /// A host that remembers nothing. `key` is the secret of its cookies; `count` where its connection counts begin.
    #[must_use]
    pub fn new(key: [u8; 32], count: u32) -> Self {
        Self {
            keys: CookieKeys::new(key),
            cookies: CookieCache::default(),
            pending: PendingOpens::default(),
            counter: Counter::new(count),
            counts: CountCache::default(),
        }
    }

    /// The keys of its cookies.
    pub const fn cookie_keys(&mut self) -> &mut CookieKeys {
        &mut self.keys
    }

    /// At most so many connections of Fast Open are answered at a time whose clients have not yet shown that they hear
    /// (`PendingFastOpenRequests` of RFC 7413, section 4.2); further ones do the whole handshake. 256 where nothing is said.
    pub const fn limit_pending(&mut self, limit: usize) {
        self.pending.set_limit(limit);
    }

    /// How a connection to `peer` opens with these settings.
    pub fn opening(&mut self, now: Instant, config: &TcpConfig, peer: IpAddr) -> Opening {
        Opening(if config.fast_open {
            let (option, mss) = self.cookies.option(now, peer);
            OpeningMode::FastOpenClient { option, mss }
        } else if config.ttcp {
            let count = self.counter.take();
            let (known, mss) = self.counts.on_open(peer, count);
            OpeningMode::TtcpClient { count, known, mss }
        } else {
            OpeningMode::Plain
        })
    }

    /// How a SYN of `peer` is answered that came to a listener with these settings.
    pub fn admission(&mut self, now: Instant, config: &TcpConfig, peer: IpAddr, syn: &Segment) -> Opening {
        if !syn.has(Flags::SYN) || syn.has(Flags::RST | Flags::ACK) {
            return Opening::default();
        }
        Opening(if config.fast_open {
            self.admit_fast_open(now, peer, syn.options.opening().fast_open)
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

    /// RFC 7413, section 4.2.2: a good cookie opens early; for a bad one and for a request there is a new cookie.
    fn admit_fast_open(&mut self, now: Instant, peer: IpAddr, option: Option<FastOpen>) -> OpeningMode {
        let (verdict, fresh) = match option {
            None => return OpeningMode::Plain,
            Some(FastOpen::Request) => (CookieStatus::Invalid, true),
            Some(FastOpen::Cookie(cookie)) => {
                let verdict = self.keys.check(peer, cookie);
                (verdict, verdict != CookieStatus::Valid)
            }
        };
        OpeningMode::FastOpenServer {
            grant: fresh.then(|| self.keys.cookie(peer)),
            early: verdict != CookieStatus::Invalid && self.pending.start(now),
        }
    }

    /// A connection with `peer` has found something out.
    pub fn learn(&mut self, now: Instant, peer: IpAddr, lesson: Lesson) {
        match lesson.0 {
            Discovery::CookieReply {
                cookie,
                requested,
                mss,
            } => {
                self.cookies.on_answer(now, peer, cookie, requested, mss);
            }
            Discovery::SynDataLost => self.cookies.on_loss(now, peer),
            Discovery::PendingClosed { reset } => self.pending.finish(now, reset),
            Discovery::CountEcho {
                count,
                peer: theirs,
                mss,
            } => {
                self.counts.on_echo(peer, count);
                if let Some(theirs) = theirs {
                    self.counts.on_proven(peer, theirs, mss);
                }
            }
            Discovery::NoEcho => self.counts.on_missing_echo(peer),
            Discovery::CountProof { peer: theirs, mss } => self.counts.on_proven(peer, theirs, mss),
        }
    }
}
