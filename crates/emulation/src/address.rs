//! The addresses of emulated hosts: all from one private block, which exists in their namespaces alone.

use std::net::Ipv4Addr;

use network::HostId;

/// The most hosts of one emulation: each costs a namespace, a device, and routes to all others.
pub const MOST_HOSTS: usize = 1000;

/// The address block of one emulation: 10.77.0.0/16, or one of the next where emulations are nested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    second: u8,
}

impl Block {
    const FIRST: u8 = 77;
    /// Emulations that may be nested.
    pub const DEPTH: u8 = 100;

    /// The block of an emulation inside `depth` others.
    #[must_use]
    pub const fn nested(depth: u8) -> Self {
        Self {
            second: Self::FIRST + depth % Self::DEPTH,
        }
    }

    /// How many emulations the one is inside whose block has this address.
    #[must_use]
    pub fn depth_of(address: Ipv4Addr) -> Option<u8> {
        let [first, second, ..] = address.octets();
        let depth = second.checked_sub(Self::FIRST)?;
        (first == 10 && depth < Self::DEPTH).then_some(depth)
    }

    /// The address of a host.
    #[must_use]
    pub const fn host(self, host: HostId) -> Ipv4Addr {
        let number = host.0 + 1;
        Ipv4Addr::new(10, self.second, (number >> 8) as u8, number as u8)
    }

    /// The host of an address, of `hosts`.
    #[must_use]
    pub fn find(self, address: Ipv4Addr, hosts: usize) -> Option<HostId> {
        let [first, second, high, low] = address.octets();
        let number = u32::from(high) << 8 | u32::from(low);
        let is_ours = (first, second) == (10, self.second) && number >= 1 && number as usize <= hosts;
        is_ours.then(|| HostId(number - 1))
    }

    /// The address by which routers speak.
    #[must_use]
    pub const fn router(self) -> Ipv4Addr {
        Ipv4Addr::new(10, self.second, 255, 254)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_an_address_and_each_address_its_host() {
        let block = Block::nested(0);
        assert_eq!(block.host(HostId(0)), Ipv4Addr::new(10, 77, 0, 1));
        assert_eq!(block.host(HostId(255)), Ipv4Addr::new(10, 77, 1, 0));
        for host in (0..MOST_HOSTS as u32).map(HostId) {
            assert_eq!(block.find(block.host(host), MOST_HOSTS), Some(host));
        }
        assert_eq!(block.find(block.host(HostId(5)), 5), None);
        assert_eq!(block.find(block.router(), MOST_HOSTS), None);
        assert_eq!(block.find(Ipv4Addr::new(10, 77, 0, 0), MOST_HOSTS), None);
        assert_eq!(block.find(Block::nested(1).host(HostId(0)), MOST_HOSTS), None);
    }
}
