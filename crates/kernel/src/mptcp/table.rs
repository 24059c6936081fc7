//! All TCP sockets of the network namespace, those of other processes and subflows among them (`sock_diag(7)`).

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags, nlas};
use netlink_sys::{Socket, SocketAddr as NetlinkAddress, protocols::NETLINK_SOCK_DIAG};

use super::events::Peers;
use crate::tcp_info::TcpInfo;

/// Every connection of TCP that stands or is closing, by its ends.
///
/// # Errors
/// The system's.
pub fn sockets() -> io::Result<BTreeMap<Peers, TcpInfo>> {
    let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.bind_auto()?;
    socket.connect(&NetlinkAddress::new(0, 0))?;
    let mut found = BTreeMap::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        dump(&socket, family as u8, &mut found)?;
    }
    Ok(found)
}

fn dump(socket: &Socket, family: u8, found: &mut BTreeMap<Peers, TcpInfo>) -> io::Result<()> {
    let any = if i32::from(family) == libc::AF_INET {
        SocketId::new_v4()
    } else {
        SocketId::new_v6()
    };
    let request = InetRequest {
        family,
        protocol: libc::IPPROTO_TCP as u8,
        extensions: ExtensionFlags::INFO,
        states: StateFlags::ESTABLISHED
            | StateFlags::FIN_WAIT1
            | StateFlags::FIN_WAIT2
            | StateFlags::CLOSE_WAIT
            | StateFlags::LAST_ACK
            | StateFlags::CLOSING,
        socket_id: any,
    };
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    loop {
        let (bytes, _) = socket.recv_from_full()?;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let message = <NetlinkMessage<SockDiagMessage>>::deserialize(rest).map_err(|error| {
                io::Error::other(format!("the kernel's answer over netlink is not one: {error}"))
            })?;
            let length = (message.header.length as usize).next_multiple_of(4);
            match message.payload {
                NetlinkPayload::Done(_) => return Ok(()),
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => {
                    found.extend(read(&response));
                }
                _ => {}
            }
            rest = rest.get(length.max(1)..).unwrap_or_default();
        }
    }
}

fn read(response: &InetResponse) -> Option<(Peers, TcpInfo)> {
    let id = &response.header.socket_id;
    let peers = Peers {
        local: SocketAddr::new(plain(id.source_address), id.source_port),
        remote: SocketAddr::new(plain(id.destination_address), id.destination_port),
    };
    let info = response.nlas.iter().find_map(|nla| match nla {
        nlas::Nla::TcpInfo(bytes) => Some(TcpInfo::from_bytes(bytes)),
        _ => None,
    })?;
    Some((peers, info))
}

/// IPv4 over a socket of IPv6 is IPv4.
fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}
