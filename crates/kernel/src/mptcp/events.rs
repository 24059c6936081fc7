//! MPTCP events of the kernel (`enum mptcp_event_type` of `linux/mptcp_pm.h`).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use netlink_packet_core::{DefaultNla, Emitable, NLA_TYPE_MASK, Nla};

use super::generic_netlink::{GenericSocket, Message};
use super::manager::missing;
use crate::error::{self, Error};

/// The multicast group.
const GROUP: &str = "mptcp_pm_events";

/// The two ends of a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketPair {
    /// This host's end.
    pub local: SocketAddr,
    /// The peer's end.
    pub remote: SocketAddr,
}

/// An event of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The token of the connection.
    pub token: u32,
    /// What happened.
    pub kind: EventKind,
}

/// What happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// It opened; no subflow can join yet.
    Created {
        /// Its first subflow.
        pair: SocketPair,
        /// Whether the peer opened it.
        server: bool,
    },
    /// The first data was acknowledged; subflows can join.
    Established {
        /// Its first subflow.
        pair: SocketPair,
        /// Whether the peer opened it.
        server: bool,
    },
    /// It closed.
    Closed,
    /// The peer announced an address.
    Announced {
        /// The peer's ID of the address.
        id: u8,
        /// The address; port 0 means the connection's.
        remote: SocketAddr,
    },
    /// The peer withdrew the address with this ID.
    Removed(u8),
    /// A subflow joined.
    SubflowEstablished(SocketPair),
    /// A subflow closed.
    SubflowClosed(SocketPair),
}

impl Event {
    fn read(message: &Message) -> Option<Self> {
        let attributes = Attributes(&message.attributes);
        let kind = match message.command {
            1 => EventKind::Created {
                pair: attributes.pair()?,
                server: attributes.is_server(),
            },
            2 => EventKind::Established {
                pair: attributes.pair()?,
                server: attributes.is_server(),
            },
            3 => EventKind::Closed,
            6 => EventKind::Announced {
                id: attributes.byte(4)?,
                remote: SocketAddr::new(attributes.address(7, 8)?, attributes.port(10).unwrap_or(0)),
            },
            7 => EventKind::Removed(attributes.byte(4)?),
            10 => EventKind::SubflowEstablished(attributes.pair()?),
            11 => EventKind::SubflowClosed(attributes.pair()?),
            // Priorities and listeners are not used.
            _ => return None,
        };
        let token = attributes.number(1)?;
        Some(Self { token, kind })
    }
}

/// `enum mptcp_event_attr`: token 1, family 2, loc_id 3, rem_id 4, saddr4 5, saddr6 6, daddr4 7, daddr6 8, sport 9, dport 10,
/// backup 11, error 12, flags 13, if_idx 15, server_side 18.
struct Attributes<'a>(&'a [DefaultNla]);

impl Attributes<'_> {
    fn bytes<const N: usize>(&self, kind: u16) -> Option<[u8; N]> {
        let nla = self.0.iter().find(|nla| nla.kind() & NLA_TYPE_MASK == kind)?;
        let mut bytes = vec![0; nla.buffer_len()];
        nla.emit(&mut bytes);
        bytes.get(4..4 + N)?.try_into().ok()
    }

    fn byte(&self, kind: u16) -> Option<u8> {
        self.bytes::<1>(kind).map(|[byte]| byte)
    }

    fn number(&self, kind: u16) -> Option<u32> {
        self.bytes(kind).map(u32::from_ne_bytes)
    }

    /// In network byte order.
    fn port(&self, kind: u16) -> Option<u16> {
        self.bytes(kind).map(u16::from_be_bytes)
    }

    fn address(&self, v4: u16, v6: u16) -> Option<IpAddr> {
        let short = || Some(IpAddr::V4(Ipv4Addr::from(self.bytes::<4>(v4)?)));
        let long = || Some(IpAddr::V6(Ipv6Addr::from(self.bytes::<16>(v6)?)));
        short().or_else(long)
    }

    fn pair(&self) -> Option<SocketPair> {
        Some(SocketPair {
            local: SocketAddr::new(self.address(5, 6)?, self.port(9)?),
            remote: SocketAddr::new(self.address(7, 8)?, self.port(10)?),
        })
    }

    /// Newer kernels set a flag (bit 0, `MPTCP_PM_EV_FLAG_SERVER_SIDE`), older ones an attribute.
    fn is_server(&self) -> bool {
        let flags = self.bytes(13).map_or(0, u16::from_ne_bytes);
        self.byte(18) == Some(1) || flags & 1 == 1
    }
}

/// A subscription to the MPTCP events of the network namespace in which it was opened.
#[derive(Debug)]
pub struct Events(GenericSocket);

impl Events {
    /// Subscribes.
    ///
    /// # Errors
    /// [`Error::Missing`] if the kernel has no such events, [`Error::Permission`] without `CAP_NET_ADMIN`.
    pub fn listen() -> Result<Self, Error> {
        let failed = |error: io::Error| error::mptcp("subscribe to MPTCP events", error);
        let socket = GenericSocket::open().map_err(failed)?.ok_or_else(missing)?;
        if !socket.subscribe(GROUP).map_err(failed)? {
            return Err(missing());
        }
        socket.socket().set_non_blocking(true).map_err(failed)?;
        Ok(Self(socket))
    }

    /// Returns the events since the last call, without waiting.
    ///
    /// # Errors
    /// The system's; `ENOBUFS` after lost events.
    pub fn next(&self) -> io::Result<Vec<Event>> {
        let mut events = Vec::new();
        loop {
            match self.0.receive() {
                Ok(messages) => events.extend(messages.iter().filter_map(Event::read)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(events),
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for Events {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is the socket's, which lives as long as `self`.
        unsafe { BorrowedFd::borrow_raw(self.0.socket().as_raw_fd()) }
    }
}
