//! All TCP sockets of a network namespace, including subflows and sockets of other processes (`sock_diag(7)`).

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags, nlas};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;

use super::events::SocketPair;
use crate::netlink;
use crate::tcp_info::TcpInfo;

/// Returns every TCP connection that is established or closing, by its ends.
///
/// # Errors
/// The system's.
pub fn tcp_sockets() -> io::Result<BTreeMap<SocketPair, TcpInfo>> {
    let socket = netlink::open(NETLINK_SOCK_DIAG)?;
    let mut found = BTreeMap::new();
    for (family, any) in [
        (libc::AF_INET, SocketId::new_v4()),
        (libc::AF_INET6, SocketId::new_v6()),
    ] {
        let request = InetRequest {
            family: family as u8,
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
        netlink::dump(&socket, SockDiagMessage::InetRequest(request), |message| {
            if let SockDiagMessage::InetResponse(response) = message {
                found.extend(read(&response));
            }
        })?;
    }
    Ok(found)
}

fn read(response: &InetResponse) -> Option<(SocketPair, TcpInfo)> {
    let id = &response.header.socket_id;
    // An IPv6 socket can carry IPv4.
    let pair = SocketPair {
        local: SocketAddr::new(id.source_address.to_canonical(), id.source_port),
        remote: SocketAddr::new(id.destination_address.to_canonical(), id.destination_port),
    };
    let info = response.nlas.iter().find_map(|nla| match nla {
        nlas::Nla::TcpInfo(bytes) => Some(TcpInfo::from_bytes(bytes)),
        _ => None,
    })?;
    Some((pair, info))
}
