//! Addresses, routes and settings of devices, over rtnetlink (RFC 3549; `rtnetlink(7)`).

use std::io;
use std::net::IpAddr;

use kernel::netlink;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleHeader, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, protocols::NETLINK_ROUTE};

/// Settings of a device.
#[derive(Clone, Copy, Debug)]
pub struct DeviceConfig {
    /// The MTU in bytes.
    pub mtu: u32,
    /// Length of the transmit queue in packets.
    pub queue: u32,
    /// Segments that TCP may hand over as one (GSO).
    pub segments: u32,
}

/// A route.
#[derive(Clone, Copy, Debug)]
pub struct Route<'a> {
    /// Index of the output device.
    pub device: u32,
    /// Prefix of the destinations; `None` for the default route.
    pub destination: Option<(IpAddr, u8)>,
    /// Source address of packets that have none yet.
    pub source: IpAddr,
    /// Routing table; `None` for the main table.
    pub table: Option<u8>,
    /// Congestion controller of its connections; `None` for the one of the program or the namespace.
    pub congestion: Option<&'a str>,
}

/// Priority of the first rule of [`Netlink::add_rule`]: before the main table's, 32766.
const RULES: u32 = 1000;

/// A netlink socket for the namespace of the calling thread.
#[derive(Debug)]
pub struct Netlink(Socket);

impl Netlink {
    /// Opens a socket.
    ///
    /// # Errors
    /// The system's.
    pub fn open() -> io::Result<Self> {
        netlink::open(NETLINK_ROUTE).map(Self)
    }

    /// Sets a device up, with these settings if given.
    ///
    /// # Errors
    /// The system's, for example for a setting out of range.
    pub fn set_up(&self, device: u32, config: Option<DeviceConfig>) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = device;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        if let Some(config) = config {
            message.attributes = vec![
                LinkAttribute::Mtu(config.mtu),
                LinkAttribute::TxQueueLen(config.queue),
                LinkAttribute::GsoMaxSegs(config.segments),
            ];
        }
        netlink::request(&self.0, RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Adds an address to a device, without a subnet.
    ///
    /// # Errors
    /// The system's.
    pub fn add_address(&self, device: u32, address: IpAddr) -> io::Result<()> {
        let mut message = AddressMessage::default();
        let (family, length) = family(address);
        message.header.family = family;
        message.header.prefix_len = length;
        message.header.index = device;
        message.attributes = vec![
            AddressAttribute::Local(address),
            AddressAttribute::Address(address),
        ];
        if address.is_ipv6() {
            // Usable at once: nobody else has the address.
            message.header.flags = AddressHeaderFlags::Nodad;
        }
        netlink::request(
            &self.0,
            RouteNetlinkMessage::NewAddress(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }

    /// Adds a route.
    ///
    /// # Errors
    /// The system's.
    pub fn add_route(&self, route: Route<'_>) -> io::Result<()> {
        let length = route.destination.map_or(0, |(_, length)| length);
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: family(route.source).0,
            destination_prefix_length: length,
            table: route.table.unwrap_or(RouteHeader::RT_TABLE_MAIN),
            protocol: RouteProtocol::Static,
            scope: RouteScope::Link,
            kind: RouteType::Unicast,
            ..RouteHeader::default()
        };
        message.attributes = vec![
            RouteAttribute::Oif(route.device),
            RouteAttribute::PrefSource(route.source.into()),
        ];
        if let Some(name) = route.congestion {
            let metric = RouteMetric::CcAlgo(name.into());
            message.attributes.push(RouteAttribute::Metrics(vec![metric]));
        }
        if let Some((destination, _)) = route.destination {
            message
                .attributes
                .push(RouteAttribute::Destination(destination.into()));
        }
        netlink::request(
            &self.0,
            RouteNetlinkMessage::NewRoute(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }

    /// Routes packets from `source` by `table` before the main table (`ip rule add from SOURCE lookup TABLE`).
    ///
    /// # Errors
    /// The system's.
    pub fn add_rule(&self, source: IpAddr, table: u8) -> io::Result<()> {
        let mut message = RuleMessage::default();
        let (family, length) = family(source);
        message.header = RuleHeader {
            family,
            src_len: length,
            table,
            action: RuleAction::ToTable,
            ..RuleHeader::default()
        };
        message.attributes = vec![
            RuleAttribute::Source(source),
            RuleAttribute::Priority(RULES + u32::from(table)),
        ];
        netlink::request(
            &self.0,
            RouteNetlinkMessage::NewRule(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }
}

/// The family of an address, and its length in bits.
const fn family(address: IpAddr) -> (AddressFamily, u8) {
    match address {
        IpAddr::V4(_) => (AddressFamily::Inet, 32),
        IpAddr::V6(_) => (AddressFamily::Inet6, 128),
    }
}

/// The index of a device in the calling thread's namespace.
///
/// # Errors
/// The system's, if there is no such device.
pub fn device(name: &str) -> io::Result<u32> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    Ok(netdevice::name_to_index(&socket, name)?)
}
