//! The paths of a host: each of its addresses that leads to others.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage, AddressScope};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// A way out of the host: an address, and the device that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    /// The number of the device.
    pub device: u32,
    /// The address.
    pub address: IpAddr,
}

/// The paths of the host that the calling thread is at, by device: addresses of global scope on any device but the loopback.
///
/// # Errors
/// The system's.
pub fn paths() -> io::Result<Vec<Path>> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let asked = RouteNetlinkMessage::GetAddress(AddressMessage::default());
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(asked));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    let mut paths = Vec::new();
    loop {
        let (bytes, _) = socket.recv_from_full()?;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let message = <NetlinkMessage<RouteNetlinkMessage>>::deserialize(rest).map_err(|error| {
                io::Error::other(format!("the kernel's answer over netlink is not one: {error}"))
            })?;
            let length = (message.header.length as usize).next_multiple_of(4);
            match message.payload {
                NetlinkPayload::Done(_) => {
                    paths.sort_unstable();
                    return Ok(paths);
                }
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewAddress(message)) => {
                    paths.extend(read(&message));
                }
                _ => {}
            }
            rest = rest.get(length.max(1)..).unwrap_or_default();
        }
    }
}

fn read(message: &AddressMessage) -> Option<Path> {
    if message.header.scope != AddressScope::Universe {
        return None;
    }
    let find = |local: bool| {
        message.attributes.iter().find_map(|attribute| match attribute {
            AddressAttribute::Local(address) if local => Some(*address),
            AddressAttribute::Address(address) if !local => Some(*address),
            _ => None,
        })
    };
    // IPv6 has no local attribute; on a point-to-point device the other one is the peer's.
    let address = find(true).or_else(|| find(false))?;
    (!address.is_loopback()).then_some(Path {
        device: message.header.index,
        address,
    })
}
