//! What a host remembers of others for the TAO test (RFC 1644, section 3.2): TCP accelerated open.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::count::Count;

/// Hosts remembered; beyond it one is forgotten, which costs it one handshake.
const MOST: usize = 4096;

/// What is remembered of a host, with the names of RFC 1644.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CachedPeer {
    /// `cache.CC`: the last count of it that was proven new.
    cc: Option<Count>,
    /// `cache.CCsent`: the last count that was sent to it, if it took it.
    cc_sent: Option<Count>,
    /// The segment size that it announced last.
    mss: Option<u16>,
}

/// What came of the TAO test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaoTest {
    /// The count is higher than any before: the SYN is new, and no handshake is needed.
    Passed,
    /// It may be an old duplicate: the handshake decides.
    Failed,
}

/// A host's memory of others.
#[derive(Clone, Debug, Default)]
pub struct CountCache {
    hosts: BTreeMap<IpAddr, CachedPeer>,
}

impl CountCache {
    /// A connection to `peer` gets the number `count`: gives whether its SYN may say so with CC, and the segment size that
    /// the peer announced before. Else it must use CC.NEW, which makes the peer forget what it knows: the peer is not known
    /// to remember, or the counter has gone round (RFC 1644, section 3.3).
    pub fn on_open(&mut self, peer: IpAddr, count: Count) -> (bool, Option<u16>) {
        let Some(known) = self.hosts.get_mut(&peer) else {
            return (false, None);
        };
        let goes_on = known.cc_sent.is_some_and(|sent| count.is_after(sent));
        known.cc_sent = goes_on.then_some(count);
        (goes_on, known.mss)
    }

    /// A SYN of `peer` came with CC (or CC.NEW, `is_new`): the TAO test.
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

    /// A handshake has proven a count of `peer`.
    pub fn on_proven(&mut self, peer: IpAddr, count: Count, mss: Option<u16>) {
        let known = self.entry(peer);
        if known.cc.is_none_or(|last| count.is_after(last)) {
            known.cc = Some(count);
        }
        known.mss = mss.or(known.mss);
    }

    /// `peer` has echoed the number that was sent to it: it remembers it.
    pub fn on_echo(&mut self, peer: IpAddr, sent: Count) {
        let known = self.entry(peer);
        if known.cc_sent.is_none_or(|last| sent.is_after(last)) {
            known.cc_sent = Some(sent);
        }
    }

    /// `peer` speaks no T/TCP (any more).
    pub fn on_missing_echo(&mut self, peer: IpAddr) {
        self.hosts.remove(&peer);
    }

    fn entry(&mut self, peer: IpAddr) -> &mut CachedPeer {
        if self.hosts.len() >= MOST && !self.hosts.contains_key(&peer) {
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
    fn only_a_higher_count_than_a_proven_one_passes() {
        let mut cache = CountCache::default();
        assert_eq!(
            cache.on_syn(PEER, count(5), false),
            TaoTest::Failed,
            "nothing is known"
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
    fn a_client_says_new_until_it_was_echoed_and_when_its_counter_goes_round() {
        let mut cache = CountCache::default();
        assert_eq!(cache.on_open(PEER, count(1)), (false, None));
        cache.on_proven(PEER, count(77), Some(1400));
        assert_eq!(cache.on_open(PEER, count(2)), (false, Some(1400)));
        cache.on_echo(PEER, count(2));
        assert_eq!(cache.on_open(PEER, count(3)), (true, Some(1400)));
        // Half the numbers later nobody can tell which is higher.
        assert!(!cache.on_open(PEER, count(0x8000_0009)).0);
        assert!(!cache.on_open(PEER, count(0x8000_000a)).0, "until it is echoed");
        cache.on_missing_echo(PEER);
        assert_eq!(cache.on_open(PEER, count(9)), (false, None));
    }

    #[test]
    fn memory_is_bounded() {
        let mut cache = CountCache::default();
        for number in 0..=MOST as u32 {
            cache.on_echo(Ipv4Addr::from(number).into(), count(1));
        }
        assert_eq!(cache.hosts.len(), MOST);
    }
}
