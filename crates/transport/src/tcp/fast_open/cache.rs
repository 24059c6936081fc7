//! A client's cookie cache (RFC 7413, section 4.1.3).

use std::collections::BTreeMap;
use std::net::IpAddr;

use foundation::{Duration, Instant};

use super::cookie::{Cookie, FastOpen};

/// Maximum number of cached servers; the least recently used one is evicted.
const CAPACITY: usize = 4096;
/// Time until the next cookie request to a server that issued none (RFC 7413, section 4.1.3, sets no value).
const REFUSAL_LIFE: Duration = Duration::from_secs(3600);
/// Consecutive losses of SYNs with data after which the path is assumed to drop them. SYNs then carry no data for
/// [`LOSS_LIFE`], doubled with each further loss, as in Linux.
const MAX_LOSSES: u32 = 2;
const LOSS_LIFE: Duration = Duration::from_secs(60);
const MAX_DOUBLINGS: u32 = 10;

#[derive(Clone, Copy, Debug)]
struct Server {
    cookie: Option<Cookie>,
    /// The cookie arrived in an option of the experimental kind.
    experimental: bool,
    mss: Option<u16>,
    /// Requests that the server left unanswered: 0; 1 of the assigned kind; 2, of the experimental kind, too.
    refusals: u8,
    /// Until then, SYNs carry no Fast Open option: the server issues no cookies, or the path drops SYNs with data.
    refused_until: Instant,
    plain_until: Instant,
    losses: u32,
    used: Instant,
}

/// The Fast Open option of a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynOption {
    /// The option.
    pub option: Option<FastOpen>,
    /// Whether it has the experimental kind (RFC 7413, appendix A).
    pub experimental: bool,
    /// MSS that the server announced earlier.
    pub mss: Option<u16>,
}

/// What a SYN-ACK reveals about a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SynAckFinding {
    /// The issued cookie.
    pub cookie: Option<Cookie>,
    /// Whether its option, or the option of the unanswered request, has the experimental kind.
    pub experimental: bool,
    /// The SYN requested a cookie and was not repeated.
    pub requested: bool,
    /// The announced MSS.
    pub mss: Option<u16>,
}

/// A client's cookies, by server.
#[derive(Clone, Debug, Default)]
pub struct CookieCache {
    servers: BTreeMap<IpAddr, Server>,
}

impl CookieCache {
    /// Returns the option of a SYN to `server` and the server's cached MSS. No option if the path drops SYNs with data, or if
    /// the server issues no cookies. In that case, Linux (`linux`) repeats the request in each SYN instead, once with the
    /// experimental kind (`tcp_rcv_fastopen_synack`).
    pub fn option(&mut self, now: Instant, server: IpAddr, linux: bool) -> SynOption {
        let Some(known) = self.servers.get_mut(&server) else {
            return SynOption {
                option: Some(FastOpen::Request),
                experimental: false,
                mss: None,
            };
        };
        known.used = now;
        let is_plain = now < known.plain_until || (!linux && now < known.refused_until);
        let option = known.cookie.map_or(FastOpen::Request, FastOpen::Cookie);
        SynOption {
            option: Some(option).filter(|_| !is_plain),
            experimental: match known.cookie {
                Some(_) => known.experimental,
                None => linux && known.refusals == 1,
            },
            mss: known.mss,
        }
    }

    /// Records a server's SYN-ACK.
    pub fn on_answer(&mut self, now: Instant, server: IpAddr, finding: SynAckFinding) {
        let known = self.entry(now, server);
        known.mss = finding.mss.or(known.mss);
        known.losses = 0;
        if finding.cookie.is_some() {
            (known.cookie, known.experimental) = (finding.cookie, finding.experimental);
        } else if finding.requested {
            known.refused_until = now + REFUSAL_LIFE;
            known.refusals = known.refusals.max(if finding.experimental { 2 } else { 1 });
        }
    }

    /// Records that a SYN with data was answered only after its retransmission without data.
    pub fn on_loss(&mut self, now: Instant, server: IpAddr) {
        let known = self.entry(now, server);
        known.losses = (known.losses + 1).min(MAX_LOSSES + MAX_DOUBLINGS);
        if known.losses >= MAX_LOSSES {
            known.plain_until = now + LOSS_LIFE.doubled(known.losses - MAX_LOSSES);
        }
    }

    fn entry(&mut self, now: Instant, server: IpAddr) -> &mut Server {
        if self.servers.len() >= CAPACITY && !self.servers.contains_key(&server) {
            let oldest = self.servers.iter().min_by_key(|(_, known)| known.used);
            if let Some(oldest) = oldest.map(|(&address, _)| address) {
                self.servers.remove(&oldest);
            }
        }
        let known = self.servers.entry(server).or_insert(Server {
            cookie: None,
            experimental: false,
            mss: None,
            refusals: 0,
            refused_until: Instant::ZERO,
            plain_until: Instant::ZERO,
            losses: 0,
            used: now,
        });
        known.used = now;
        known
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(number: u32) -> IpAddr {
        Ipv4Addr::from(number).into()
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn asked(cache: &mut CookieCache, seconds: u64, server: IpAddr) -> (Option<FastOpen>, Option<u16>) {
        let found = cache.option(at(seconds), server, false);
        (found.option, found.mss)
    }

    fn answer(cookie: Option<Cookie>, requested: bool, mss: Option<u16>) -> SynAckFinding {
        SynAckFinding {
            cookie,
            experimental: false,
            requested,
            mss,
        }
    }

    #[test]
    fn caches_cookies_and_refusals() {
        let mut cache = CookieCache::default();
        let (good, bad) = (address(1), address(2));
        assert_eq!(asked(&mut cache, 0, good), (Some(FastOpen::Request), None));
        let cookie = Cookie::new(&[1; 8]).unwrap();
        cache.on_answer(at(0), good, answer(Some(cookie), true, Some(1400)));
        cache.on_answer(at(0), bad, answer(None, true, Some(1460)));
        assert_eq!(
            asked(&mut cache, 9, good),
            (Some(FastOpen::Cookie(cookie)), Some(1400))
        );
        assert_eq!(asked(&mut cache, 3599, bad), (None, Some(1460)));
        assert_eq!(asked(&mut cache, 3600, bad).0, Some(FastOpen::Request));
        // An answer to a cookie needs none.
        cache.on_answer(at(10), good, answer(None, false, None));
        assert_eq!(
            asked(&mut cache, 10, good),
            (Some(FastOpen::Cookie(cookie)), Some(1400))
        );
    }

    #[test]
    fn linux_tries_the_experimental_kind_once() {
        let mut cache = CookieCache::default();
        let server = address(1);
        for (experimental, next) in [(false, true), (true, false), (false, false)] {
            assert_eq!(cache.option(at(0), server, true).experimental, experimental);
            let refusal = SynAckFinding {
                experimental,
                requested: true,
                ..SynAckFinding::default()
            };
            cache.on_answer(at(0), server, refusal);
            let following = cache.option(at(0), server, true);
            assert_eq!(
                (following.option, following.experimental),
                (Some(FastOpen::Request), next)
            );
        }
        let cookie = Cookie::new(&[1; 8]);
        let issued = SynAckFinding {
            cookie,
            experimental: true,
            ..SynAckFinding::default()
        };
        cache.on_answer(at(0), server, issued);
        assert!(cache.option(at(0), server, true).experimental, "as it was issued");
    }

    #[test]
    fn sends_plain_syns_on_a_path_that_drops_syn_data() {
        let mut cache = CookieCache::default();
        let server = address(1);
        let cookie = Cookie::new(&[1; 8]).unwrap();
        let shows = Some(FastOpen::Cookie(cookie));
        cache.on_answer(at(0), server, answer(Some(cookie), true, None));
        cache.on_loss(at(1), server);
        assert_eq!(asked(&mut cache, 1, server).0, shows, "one loss is chance");
        cache.on_loss(at(2), server);
        assert_eq!(asked(&mut cache, 61, server).0, None);
        assert_eq!(asked(&mut cache, 62, server).0, shows);
        cache.on_loss(at(62), server);
        assert_eq!(asked(&mut cache, 181, server).0, None, "twice as long");
        cache.on_answer(at(182), server, answer(None, false, None));
        cache.on_loss(at(183), server);
        assert_eq!(
            asked(&mut cache, 183, server).0,
            shows,
            "an answer resets the count of losses"
        );
    }

    #[test]
    fn capacity_is_bounded() {
        let mut cache = CookieCache::default();
        for number in 0..=CAPACITY as u32 {
            cache.on_answer(
                at(u64::from(number)),
                address(number),
                answer(Cookie::new(&[1; 4]), true, None),
            );
        }
        assert_eq!(cache.servers.len(), CAPACITY);
        let evicted = asked(&mut cache, 9999, address(0)).0;
        assert_eq!(evicted, Some(FastOpen::Request), "the oldest");
    }
}
