//! The paths of a host: its addresses that other hosts can reach.

use std::io;
use std::net::IpAddr;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage, AddressScope};
use netlink_sys::protocols::NETLINK_ROUTE;

use crate::netlink;

/// An address of the host and its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    /// The index of the device.
    pub device: u32,
    /// The address.
    pub address: IpAddr,
}

/// Returns the addresses of global scope in the calling thread's network namespace, by device, without those of the loopback.
///
/// # Errors
/// The system's.
pub fn paths() -> io::Result<Vec<Path>> {
    let socket = netlink::open(NETLINK_ROUTE)?;
    let mut paths = Vec::new();
    let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
    netlink::dump(&socket, request, |message| {
        if let RouteNetlinkMessage::NewAddress(message) = message {
            paths.extend(read(&message));
        }
    })?;
    paths.sort_unstable();
    Ok(paths)
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
    // IPv6 has no local attribute; on a point-to-point device the other attribute is the peer's address.
    let address = find(true).or_else(|| find(false))?;
    (!address.is_loopback()).then_some(Path {
        device: message.header.index,
        address,
    })
}
