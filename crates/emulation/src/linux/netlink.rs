//! Addresses, routes and settings of devices, over rtnetlink (RFC 3549; `rtnetlink(7)`).

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use kernel::netlink;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
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
pub struct Route {
    /// Index of the output device.
    pub device: u32,
    /// Prefix of the destinations; `None` for the default route.
    pub destination: Option<(Ipv4Addr, u8)>,
    /// Source address of packets that have none yet.
    pub source: Ipv4Addr,
    /// Routing table; `None` for the main table.
    pub table: Option<u8>,
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
    pub fn add_address(&self, device: u32, address: Ipv4Addr) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.prefix_len = 32;
        message.header.index = device;
        message.attributes = vec![
            AddressAttribute::Local(IpAddr::V4(address)),
            AddressAttribute::Address(IpAddr::V4(address)),
        ];
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
    pub fn add_route(&self, route: Route) -> io::Result<()> {
        let (destination, length) = route.destination.unwrap_or((Ipv4Addr::UNSPECIFIED, 0));
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: AddressFamily::Inet,
            destination_prefix_length: length,
            table: route.table.unwrap_or(RouteHeader::RT_TABLE_MAIN),
            protocol: RouteProtocol::Static,
            scope: RouteScope::Link,
            kind: RouteType::Unicast,
            ..RouteHeader::default()
        };
        message.attributes = vec![
            RouteAttribute::Oif(route.device),
            RouteAttribute::PrefSource(RouteAddress::Inet(route.source)),
        ];
        if length > 0 {
            message
                .attributes
                .push(RouteAttribute::Destination(RouteAddress::Inet(destination)));
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
    pub fn add_rule(&self, source: Ipv4Addr, table: u8) -> io::Result<()> {
        let mut message = RuleMessage::default();
        message.header = RuleHeader {
            family: AddressFamily::Inet,
            src_len: 32,
            table,
            action: RuleAction::ToTable,
            ..RuleHeader::default()
        };
        message.attributes = vec![
            RuleAttribute::Source(IpAddr::V4(source)),
            RuleAttribute::Priority(RULES + u32::from(table)),
        ];
        netlink::request(
            &self.0,
            RouteNetlinkMessage::NewRule(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
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
