//! Addresses and ports of simulated hosts and flows, for captures.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use transport::tcp::wire::Endpoints;

/// Addresses for documentation (RFC 5737), which no real path has.
const DOCUMENTATION: [[u8; 3]; 3] = [[192, 0, 2], [198, 51, 100], [203, 0, 113]];
/// Hosts per network of 256 addresses.
const HOSTS_PER_NETWORK: usize = 254;
/// The first dynamic port (RFC 6335, section 6) and the number of dynamic ports.
const DYNAMIC_PORTS: (u16, u32) = (49_152, 16_384);
/// Distance between the ports of two subflows of a connection on one path, so that the few flows of such a trial do not
/// collide.
const PORT_DISTANCE: u32 = 331;
/// The port of the first service.
const SERVICE_PORT: u16 = 5_001;

/// Assigns an address to each host and a pair of ports to each flow.
///
/// Addresses are IPv4 if the documentation ranges suffice for all hosts, else IPv6 (RFC 3849); packets
/// are then 20 bytes longer in the capture than in the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPlan {
    hosts: usize,
}

impl AddressPlan {
    /// Returns a plan for `hosts` hosts.
    #[must_use]
    pub const fn new(hosts: usize) -> Self {
        Self { hosts }
    }

    /// Returns the address of a host, numbered from 0.
    #[must_use]
    pub fn host(&self, number: usize) -> IpAddr {
        if self.hosts <= DOCUMENTATION.len() * HOSTS_PER_NETWORK {
            let [a, b, c] = DOCUMENTATION[number / HOSTS_PER_NETWORK];
            return Ipv4Addr::new(a, b, c, (number % HOSTS_PER_NETWORK) as u8 + 1).into();
        }
        let [a, b, c, d] = (number as u32 + 1).to_be_bytes();
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, high, low).into()
    }

    /// Returns the endpoints of packets on a path between two hosts. Paths after the first have separate addresses (RFC 2544,
    /// appendix C.2.2) if the hosts have IPv4 addresses.
    #[must_use]
    pub fn on_way(&self, endpoints: Endpoints, way: u8) -> Endpoints {
        let moved = |address: SocketAddr| match address.ip() {
            IpAddr::V4(ip) if way > 0 => {
                let [_, _, c, d] = ip.octets();
                // 198.18.0.0/15: seven bits for the path, the rest for network and host.
                let high = 18 + u8::from(way >= 64);
                let third = (way % 64) * 4 + c % 4;
                SocketAddr::new(Ipv4Addr::new(198, high, third, d).into(), address.port())
            }
            _ => address,
        };
        Endpoints {
            source: moved(endpoints.source),
            destination: moved(endpoints.destination),
        }
    }

    /// Returns the endpoints of a further subflow on a path, number `number` from 1; `endpoints` belong to the first one. The
    /// opener uses a port below the dynamic range. `opened` is true if `endpoints` are in the opener's direction.
    #[must_use]
    pub fn further(&self, endpoints: Endpoints, opened: bool, number: usize) -> Endpoints {
        let (first, count) = DYNAMIC_PORTS;
        let mut moved = endpoints;
        let opener = if opened {
            &mut moved.source
        } else {
            &mut moved.destination
        };
        let place = u32::from(opener.port().wrapping_sub(first)) + number as u32 * PORT_DISTANCE;
        opener.set_port(first - 1 - (place % count) as u16);
        moved
    }

    /// Returns addresses and ports of a flow that `from` opens to `to`, in that direction.
    ///
    /// They are unique among 2^30 flows.
    #[must_use]
    pub fn flow(&self, flow: u32, from: usize, to: usize) -> Endpoints {
        let (first, count) = DYNAMIC_PORTS;
        let service = SERVICE_PORT.wrapping_add((flow / count) as u16);
        Endpoints {
            source: SocketAddr::new(self.host(from), first + (flow % count) as u16),
            destination: SocketAddr::new(self.host(to), service),
        }
    }
}
