//! Rate limits for each source and in total, in bounded memory. No clock.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;

use foundation::{Duration, Instant};

/// Slots for sources; more sources share slots.
const SLOTS: usize = 4096;

/// A token bucket with a rate and a burst.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// When it was, virtually, last empty: the time since then is the available budget.
    empty_at: Instant,
}

/// Burst size, as a time at the full rate.
const BURST: Duration = Duration::from_millis(100);

impl Bucket {
    /// Takes a token of `cost` if available.
    fn take(&mut self, now: Instant, cost: Duration) -> bool {
        let saved = (now - self.empty_at).min(BURST.max(cost));
        let enough = saved >= cost;
        if enough {
            self.empty_at = now - (saved - cost).min(now - Instant::ZERO);
        }
        enough
    }
}

/// Limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Datagrams and connections per second from one source: an IPv4 address, or the /64 of an IPv6 address.
    pub per_source: u32,
    /// Datagrams and connections per second from all sources.
    pub in_all: u32,
    /// Simultaneous connections.
    pub connections: usize,
    /// Largest request on a connection, in bytes.
    pub request: usize,
    /// Idle time after which a connection is closed.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            per_source: 20_000,
            in_all: 100_000,
            connections: 256,
            request: 65_536,
            idle: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// Returns the maximum memory of all open requests, in bytes.
    #[must_use]
    pub const fn memory(&self) -> usize {
        self.connections * self.request + SLOTS * size_of::<Bucket>()
    }
}

/// Enforces the limits.
#[derive(Debug)]
pub struct Limiter {
    sources: Box<[Bucket]>,
    all: Bucket,
    /// Randomly keyed, so that nobody can choose a shared slot.
    hasher: RandomState,
    of_source: Duration,
    of_all: Duration,
}

impl Limiter {
    /// Starts with full buckets.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        let cost = |rate: u32| Duration::from_secs(1) / u64::from(rate.max(1));
        let full = Bucket {
            empty_at: Instant::ZERO,
        };
        Self {
            sources: vec![full; SLOTS].into(),
            all: full,
            hasher: RandomState::new(),
            of_source: cost(limits.per_source),
            of_all: cost(limits.in_all),
        }
    }

    /// Whether a source may be answered now; each call counts. `now` must be at least a second after zero.
    pub fn allows(&mut self, now: Instant, source: IpAddr) -> bool {
        // The holder of an IPv6 network chooses the last 64 bits (RFC 4291, section 2.5.1).
        let prefix = match source {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
        };
        let slot = self.hasher.hash_one((source.is_ipv4(), prefix)) as usize % SLOTS;
        self.sources[slot].take(now, self.of_source) && self.all.take(now, self.of_all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limiter(per_source: u32, in_all: u32) -> Limiter {
        Limiter::new(&Limits {
            per_source,
            in_all,
            ..Limits::default()
        })
    }

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(1) + Duration::from_micros(micros)
    }

    #[test]
    fn a_source_gets_a_burst_and_then_its_rate() {
        let mut limiter = limiter(100, 100_000);
        let source = [192, 0, 2, 1].into();
        let answered = |limiter: &mut Limiter, from: u64, to: u64| {
            (from..to)
                .step_by(500)
                .filter(|&micros| limiter.allows(at(micros), source))
                .count()
        };
        // 100 per second: a burst of 10, and 100 more within the second.
        assert_eq!((0..50).filter(|_| limiter.allows(at(0), source)).count(), 10);
        assert_eq!(answered(&mut limiter, 0, 1_000_000), 99);
        let other = [192, 0, 2, 77].into();
        assert!(limiter.allows(at(1_000_000), other));
    }

    #[test]
    fn addresses_of_one_ipv6_network_share() {
        let mut limiter = limiter(10, 100_000);
        let answered = (0..100_u16).filter(|&n| {
            let address = [0x2001, 0xdb8, 0, 7, 0, 0, 0, n].into();
            limiter.allows(at(0), IpAddr::V6(address))
        });
        assert_eq!(answered.count(), 1);
    }

    proptest! {
        /// The total limit applies to any number of real or forged sources at any times.
        #[test]
        fn the_total_limit_applies_to_all_sources(requests in prop::collection::vec((any::<u32>(), 0..200_u64), 1..2000)) {
            let mut limiter = limiter(1000, 1000);
            let (mut now, mut answered) = (0, 0_u64);
                    for (source, pause) in requests {
                now += pause;
                answered += u64::from(limiter.allows(at(now), IpAddr::V4(source.into())));
            }
            prop_assert!(answered <= 100 + now / 1000 + 1);
        }
    }
}
