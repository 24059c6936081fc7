//! Addresses, routes and settings of devices, asked of the kernel over rtnetlink (RFC 3549; `rtnetlink(7)`).

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleHeader, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// What a device is to be like.
#[derive(Clone, Copy, Debug)]
pub struct DeviceConfig {
    /// The largest packet that it takes, in bytes.
    pub mtu: u32,
    /// Packets that wait at it for a reader.
    pub queue: u32,
    /// Segments that TCP may hand over as one, to be cut apart later.
    pub segments: u32,
}

/// Where packets are led.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Into this device.
    pub device: u32,
    /// Those to addresses that have so many first bits in common with this one; `None` for all others.
    pub destination: Option<(Ipv4Addr, u8)>,
    /// They leave as from this address, where they have none yet.
    pub source: Ipv4Addr,
    /// In this table; `None` for the main one.
    pub table: Option<u8>,
}

/// The number of the first rule of [`Netlink::add_rule`]: before that of the main table, 32766.
const RULES: u32 = 1000;

/// A conversation with the kernel about the namespace that the calling thread is in.
#[derive(Debug)]
pub struct Netlink(Socket);

impl Netlink {
    /// Begins one.
    ///
    /// # Errors
    /// The system's.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self(socket))
    }

    /// Sets a device up, with these settings where they are given.
    ///
    /// # Errors
    /// The system's, as a setting out of range.
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
        self.ask(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Gives a device an address of its own, without neighbours.
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
        self.ask(
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
        self.ask(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Lets packets from `source` be routed by `table` before the main one (`ip rule add from SOURCE lookup TABLE`).
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
        self.ask(RouteNetlinkMessage::NewRule(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    fn ask(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.0.send(&bytes, 0)?;
        let (answer, _) = self.0.recv_from_full()?;
        let answer = <NetlinkMessage<RouteNetlinkMessage>>::deserialize(&answer).map_err(|error| {
            io::Error::other(format!("the kernel's answer over netlink is not one: {error}"))
        })?;
        match answer.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
            NetlinkPayload::Error(_) => Ok(()),
            other => Err(io::Error::other(format!(
                "the kernel answered over netlink with {other:?}"
            ))),
        }
    }
}

/// The number of a device in the namespace of the calling thread.
///
/// # Errors
/// The system's, where there is none of this name.
pub fn device(name: &str) -> io::Result<u32> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    Ok(netdevice::name_to_index(&socket, name)?)
}
