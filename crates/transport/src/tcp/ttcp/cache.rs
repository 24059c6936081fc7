//! Per-host cache for the test of TCP accelerated open (TAO; RFC 1644, section 3.2).

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::count::Count;

/// Maximum number of cached hosts. An evicted host needs one more handshake.
const CAPACITY: usize = 4096;

/// Cached state of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CachedPeer {
    /// Its last count that was proved new (`cache.CC`).
    cc: Option<Count>,
    /// The last count sent to it, if it accepted that count (`cache.CCsent`).
    cc_sent: Option<Count>,
    /// Its last announced MSS.
    mss: Option<u16>,
}

/// Result of the TAO test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaoTest {
    /// The count is higher than all earlier ones: the SYN is new and needs no handshake.
    Passed,
    /// The SYN may be an old duplicate: the handshake decides.
    Failed,
}

/// Connection counts by peer.
#[derive(Clone, Debug, Default)]
pub struct CountCache {
    hosts: BTreeMap<IpAddr, CachedPeer>,
}

impl CountCache {
    /// Registers a connection to `peer` with number `count`. Returns whether its SYN may carry CC, and the peer's cached MSS.
    /// Otherwise the SYN carries CC.NEW, which clears the peer's cache: the peer has no cached count, or the counter has
    /// wrapped (RFC 1644, section 3.3).
    pub fn on_open(&mut self, peer: IpAddr, count: Count) -> (bool, Option<u16>) {
        let Some(known) = self.hosts.get_mut(&peer) else {
            return (false, None);
        };
        let is_higher = known.cc_sent.is_some_and(|sent| count.is_after(sent));
        known.cc_sent = is_higher.then_some(count);
        (is_higher, known.mss)
    }

    /// Performs the TAO test for a SYN of `peer` with CC, or with CC.NEW (`is_new`).
    pub fn on_syn(&mut self, peer: IpAddr, count: Count, is_new: bool) -> TaoTest {
        let Some(known) = self.hosts.get_mut(&peer) else {
            return TaoTest::Failed;
        };
        if is_new {
            known.cc = None;
            return TaoTest::Failed;
        }
        match known.cc {
            Some(last) if count.is_after(last) => {
                known.cc = Some(count);
                TaoTest::Passed
            }
            _ => TaoTest::Failed,
        }
    }

    /// Caches a count of `peer` that a handshake proved new.
    pub fn on_proven(&mut self, peer: IpAddr, count: Count, mss: Option<u16>) {
        let known = self.entry(peer);
        if known.cc.is_none_or(|last| count.is_after(last)) {
            known.cc = Some(count);
        }
        known.mss = mss.or(known.mss);
    }

    /// Caches a count that `peer` has echoed.
    pub fn on_echo(&mut self, peer: IpAddr, sent: Count) {
        let known = self.entry(peer);
        if known.cc_sent.is_none_or(|last| sent.is_after(last)) {
            known.cc_sent = Some(sent);
        }
    }

    /// Removes a peer that does not use T/TCP.
    pub fn on_missing_echo(&mut self, peer: IpAddr) {
        self.hosts.remove(&peer);
    }

    fn entry(&mut self, peer: IpAddr) -> &mut CachedPeer {
        if self.hosts.len() >= CAPACITY && !self.hosts.contains_key(&peer) {
            self.hosts.pop_first();
        }
        self.hosts.entry(peer).or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

    fn count(value: u32) -> Count {
        Count::new(value).unwrap()
    }

    #[test]
    fn only_a_higher_count_passes_the_tao_test() {
        let mut cache = CountCache::default();
        assert_eq!(
            cache.on_syn(PEER, count(5), false),
            TaoTest::Failed,
            "nothing is cached"
        );
        cache.on_proven(PEER, count(5), Some(1460));
        assert_eq!(
            cache.on_syn(PEER, count(5), false),
            TaoTest::Failed,
            "an old duplicate"
        );
        assert_eq!(cache.on_syn(PEER, count(4), false), TaoTest::Failed);
        assert_eq!(cache.on_syn(PEER, count(6), false), TaoTest::Passed);
        assert_eq!(
            cache.on_syn(PEER, count(6), false),
            TaoTest::Failed,
            "the same again"
        );
        // RFC 1644, section 3.3: CC.NEW makes it undefined until a handshake is done.
        assert_eq!(cache.on_syn(PEER, count(9), true), TaoTest::Failed);
        assert_eq!(cache.on_syn(PEER, count(10), false), TaoTest::Failed);
        cache.on_proven(PEER, count(9), None);
        assert_eq!(cache.on_syn(PEER, count(10), false), TaoTest::Passed);
    }

    #[test]
    fn client_sends_cc_new_until_an_echo_and_after_a_wrap() {
        let mut cache = CountCache::default();
        assert_eq!(cache.on_open(PEER, count(1)), (false, None));
        cache.on_proven(PEER, count(77), Some(1400));
        assert_eq!(cache.on_open(PEER, count(2)), (false, Some(1400)));
        cache.on_echo(PEER, count(2));
        assert_eq!(cache.on_open(PEER, count(3)), (true, Some(1400)));
        // More than 2^31 later the order is ambiguous.
        assert!(!cache.on_open(PEER, count(0x8000_0009)).0);
        assert!(!cache.on_open(PEER, count(0x8000_000a)).0, "until it is echoed");
        cache.on_missing_echo(PEER);
        assert_eq!(cache.on_open(PEER, count(9)), (false, None));
    }

    #[test]
    fn capacity_is_bounded() {
        let mut cache = CountCache::default();
        for number in 0..=CAPACITY as u32 {
            cache.on_echo(Ipv4Addr::from(number).into(), count(1));
        }
        assert_eq!(cache.hosts.len(), CAPACITY);
    }
}
