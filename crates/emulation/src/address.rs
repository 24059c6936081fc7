//! The addresses of emulated hosts and routers, from one private block that exists in their namespaces only. Each IPv4
//! address has an IPv6 address that contains it.

use std::net::{Ipv4Addr, Ipv6Addr};

use network::HostId;

/// The most hosts of an emulation. Each costs a namespace, a device, and routes to all others.
pub const MOST_HOSTS: usize = 1000;

/// The most ways of a host. Each has a device and an address.
pub const MOST_WAYS: usize = 63;

/// The most routers with an address.
pub const MOST_ROUTERS: usize = 1021;

/// Low bits of an address: the host's number. The bits above are the way; its last value marks routers.
const HOST_BITS: u32 = 10;

/// The address block of one emulation: 10.77.0.0/16, or a following one for nested emulations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    second: u8,
}

impl Block {
    const FIRST: u8 = 77;
    /// The most levels of nesting.
    pub const DEPTH: u8 = 100;

    /// The block of an emulation inside `depth` others.
    #[must_use]
    pub const fn nested(depth: u8) -> Self {
        Self {
            second: Self::FIRST + depth % Self::DEPTH,
        }
    }

    /// The nesting depth of the emulation that owns this address.
    #[must_use]
    pub fn depth_of(address: Ipv4Addr) -> Option<u8> {
        let [first, second, ..] = address.octets();
        let depth = second.checked_sub(Self::FIRST)?;
        (first == 10 && depth < Self::DEPTH).then_some(depth)
    }

    /// A host's address on its first way.
    #[must_use]
    pub const fn host(self, host: HostId) -> Ipv4Addr {
        self.on_way(host, 0)
    }

    /// A host's address on one of its ways, from 0.
    #[must_use]
    pub const fn on_way(self, host: HostId, way: u8) -> Ipv4Addr {
        let number = (way as u32) << HOST_BITS | (host.0 + 1);
        Ipv4Addr::new(10, self.second, (number >> 8) as u8, number as u8)
    }

    /// The first address and the prefix length of one way of all hosts.
    #[must_use]
    pub const fn way(self, way: u8) -> (Ipv4Addr, u8) {
        let number = (way as u32) << HOST_BITS;
        let first = Ipv4Addr::new(10, self.second, (number >> 8) as u8, 0);
        (first, (u32::BITS - HOST_BITS) as u8)
    }

    /// The host and way of an address, of `hosts` hosts.
    #[must_use]
    pub fn find(self, address: Ipv4Addr, hosts: usize) -> Option<(HostId, u8)> {
        let [.., high, low] = address.octets();
        let number = u32::from(high) << 8 | u32::from(low);
        let (way, host) = (number >> HOST_BITS, number & ((1 << HOST_BITS) - 1));
        let is_ours = self.has(address) && (way as usize) < MOST_WAYS && host >= 1 && host as usize <= hosts;
        is_ours.then(|| (HostId(host - 1), way as u8))
    }

    /// Whether the block contains an address.
    #[must_use]
    pub const fn has(self, address: Ipv4Addr) -> bool {
        let [first, second, ..] = address.octets();
        first == 10 && second == self.second
    }

    /// The first address and the prefix length of the block.
    #[must_use]
    pub const fn whole(self) -> (Ipv4Addr, u8) {
        (Ipv4Addr::new(10, self.second, 0, 0), 16)
    }

    /// A router's address by its number, from 0; [`Self::anonymous`] from [`MOST_ROUTERS`] on.
    #[must_use]
    pub const fn router(self, number: usize) -> Ipv4Addr {
        if number >= MOST_ROUTERS {
            return self.anonymous();
        }
        let number = (MOST_WAYS as u32) << HOST_BITS | (number as u32 + 1);
        Ipv4Addr::new(10, self.second, (number >> 8) as u8, number as u8)
    }

    /// The router of an address, of `routers` routers.
    #[must_use]
    pub fn find_router(self, address: Ipv4Addr, routers: usize) -> Option<usize> {
        let [.., high, low] = address.octets();
        let number = u32::from(high) << 8 | u32::from(low);
        let of_routers = self.has(address) && number >> HOST_BITS == MOST_WAYS as u32;
        let number = (number & ((1 << HOST_BITS) - 1)).checked_sub(1)? as usize;
        (of_routers && number < routers.min(MOST_ROUTERS)).then_some(number)
    }

    /// The address of all routers without one of their own.
    #[must_use]
    pub const fn anonymous(self) -> Ipv4Addr {
        Ipv4Addr::new(10, self.second, 255, 254)
    }
}

/// The 96 bits before an IPv4 address in the IPv6 address of the same host or router: fd77::/96, a unique local prefix
/// (RFC 4193).
const PREFIX: [u16; 6] = [0xfd77, 0, 0, 0, 0, 0];
/// Length of the prefix in bits.
pub const PREFIX_BITS: u8 = 96;

/// The IPv6 address of the host or router with an IPv4 address: fd77::a4d:2 for 10.77.0.2.
#[must_use]
pub const fn to_ipv6(address: Ipv4Addr) -> Ipv6Addr {
    let [a, b, c, d, e, f] = PREFIX;
    let [first, second, third, fourth] = address.octets();
    let (high, low) = (
        u16::from_be_bytes([first, second]),
        u16::from_be_bytes([third, fourth]),
    );
    Ipv6Addr::new(a, b, c, d, e, f, high, low)
}

/// The IPv4 address that an IPv6 address contains; `None` outside of emulated networks.
#[must_use]
pub fn from_ipv6(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [.., high, low] = address.segments();
    let embedded = Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    (to_ipv6(embedded) == address).then_some(embedded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_addresses_contain_those_of_ipv4() {
        let address = Ipv4Addr::new(10, 77, 0, 2);
        assert_eq!(to_ipv6(address).to_string(), "fd77::a4d:2");
        assert_eq!(from_ipv6(to_ipv6(address)), Some(address));
        assert_eq!(from_ipv6("fd78::a4d:2".parse().unwrap()), None);
        assert_eq!(from_ipv6(Ipv6Addr::LOCALHOST), None);
    }

    #[test]
    fn host_addresses_are_unique() {
        let block = Block::nested(0);
        assert_eq!(block.host(HostId(0)), Ipv4Addr::new(10, 77, 0, 1));
        assert_eq!(block.host(HostId(255)), Ipv4Addr::new(10, 77, 1, 0));
        assert_eq!(block.on_way(HostId(1), 2), Ipv4Addr::new(10, 77, 8, 2));
        for way in [0, 1, 62] {
            for host in (0..MOST_HOSTS as u32).map(HostId) {
                let address = block.on_way(host, way);
                assert_eq!(block.find(address, MOST_HOSTS), Some((host, way)));
                let (first, length) = block.way(way);
                assert_eq!((u32::from(address) ^ u32::from(first)) >> (32 - length), 0);
            }
        }
        assert_eq!(block.find(block.host(HostId(5)), 5), None);
        assert_eq!(block.find(block.anonymous(), MOST_HOSTS), None);
        assert_eq!(block.find(Ipv4Addr::new(10, 77, 0, 0), MOST_HOSTS), None);
        assert_eq!(block.find(Block::nested(1).host(HostId(0)), MOST_HOSTS), None);
    }

    #[test]
    fn router_addresses_are_unique_and_not_a_hosts() {
        let block = Block::nested(0);
        assert_eq!(block.router(0), Ipv4Addr::new(10, 77, 252, 1));
        assert_eq!(block.router(255), Ipv4Addr::new(10, 77, 253, 0));
        for router in 0..MOST_ROUTERS {
            let address = block.router(router);
            assert_ne!(address, block.anonymous());
            assert_eq!(block.find_router(address, MOST_ROUTERS), Some(router));
            assert_eq!(block.find_router(address, router), None);
            assert_eq!(block.find(address, MOST_HOSTS), None);
        }
        assert_eq!(block.router(MOST_ROUTERS), block.anonymous());
        assert_eq!(block.find_router(block.anonymous(), 5000), None);
        assert_eq!(block.find_router(block.host(HostId(0)), 5000), None);
        assert_eq!(block.find_router(Block::nested(1).router(0), 5000), None);
    }
}
