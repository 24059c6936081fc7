//! Addresses and ports of simulated hosts and flows, for captures.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use transport::tcp::wire::Endpoints;

/// Addresses for documentation (RFC 5737), so that nobody takes them for a real path's.
const DOCUMENTATION: [[u8; 3]; 3] = [[192, 0, 2], [198, 51, 100], [203, 0, 113]];
/// Hosts that a network of 256 addresses has room for.
const HOSTS_A_NETWORK: usize = 254;
/// The first port that no service owns (RFC 6335, section 6), and how many there are.
const DYNAMIC_PORTS: (u16, u32) = (49_152, 16_384);
/// Between the ports of two subflows of a connection on one way: none of the few flows that such a trial has meets another's.
const PORTS_APART: u32 = 331;
/// The port of the first service.
const SERVICE_PORT: u16 = 5_001;

/// Gives each host an address and each flow a pair of ports.
///
/// Addresses are IPv4 where the documentation ranges have room for all hosts, else IPv6 (RFC 3849); packets
/// are then 20 bytes longer in the capture than they were in the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPlan {
    hosts: usize,
}

impl AddressPlan {
    /// A plan for so many hosts.
    #[must_use]
    pub const fn new(hosts: usize) -> Self {
        Self { hosts }
    }

    /// The address of the host with this number, counted from 0.
    #[must_use]
    pub fn host(&self, number: usize) -> IpAddr {
        if self.hosts <= DOCUMENTATION.len() * HOSTS_A_NETWORK {
            let [a, b, c] = DOCUMENTATION[number / HOSTS_A_NETWORK];
            return Ipv4Addr::new(a, b, c, (number % HOSTS_A_NETWORK) as u8 + 1).into();
        }
        let [a, b, c, d] = (number as u32 + 1).to_be_bytes();
        let words = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, words[0], words[1]).into()
    }

    /// The endpoints of packets on another way than the first between two hosts: addresses of their own (RFC 2544,
    /// appendix C.2.2), one for each way, where there are IPv4 addresses for all.
    #[must_use]
    pub fn on_way(&self, endpoints: Endpoints, way: u8) -> Endpoints {
        let moved = |address: SocketAddr| match address.ip() {
            IpAddr::V4(ip) if way > 0 => {
                let [_, _, c, d] = ip.octets();
                // 198.18.0.0/15: seven bits for the way, the rest for the network and the host in it.
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

    /// The endpoints of a further subflow on a way, the `number`-th from 1, of a connection whose first one there has these:
    /// its opener takes a port below the dynamic ones. `opened`: they are in the opener's direction.
    #[must_use]
    pub fn further(&self, endpoints: Endpoints, opened: bool, number: usize) -> Endpoints {
        let (first, count) = DYNAMIC_PORTS;
        let mut moved = endpoints;
        let opener = if opened {
            &mut moved.source
        } else {
            &mut moved.destination
        };
        let place = u32::from(opener.port().wrapping_sub(first)) + number as u32 * PORTS_APART;
        opener.set_port(first - 1 - (place % count) as u16);
        moved
    }

    /// Addresses and ports of the packets of a flow that `from` opened to `to`, in that direction.
    ///
    /// No two flows have the same, until 2^30 flows have begun.
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
