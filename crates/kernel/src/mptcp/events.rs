//! What the kernel tells of MPTCP connections as it happens (`enum mptcp_event_type` of `linux/mptcp_pm.h`).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use netlink_packet_core::{DefaultNla, Emitable, NLA_TYPE_MASK, Nla};

use super::manager::missing;
use crate::error::Error;
use crate::netlink::{Conversation, Message};

/// The group of listeners.
const GROUP: &str = "mptcp_pm_events";

/// The two ends of a subflow, this host's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peers {
    /// This host's end.
    pub local: SocketAddr,
    /// The other one.
    pub remote: SocketAddr,
}

/// Something that has happened to a connection, which its token names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The connection has begun; it can carry no further subflow yet.
    Created {
        /// Its token.
        token: u32,
        /// Its first subflow.
        peers: Peers,
        /// Whether the peer has opened it.
        server: bool,
    },
    /// The peer has acknowledged: further subflows can join.
    Established {
        /// Its token.
        token: u32,
        /// Its first subflow.
        peers: Peers,
        /// Whether the peer has opened it.
        server: bool,
    },
    /// The connection is over.
    Closed {
        /// Its token.
        token: u32,
    },
    /// The peer has a further address.
    Announced {
        /// The token of the connection.
        token: u32,
        /// The number that the peer gave it.
        id: u8,
        /// The address; port 0 stands for that of the connection.
        remote: SocketAddr,
    },
    /// The peer has lost an address.
    Removed {
        /// The token of the connection.
        token: u32,
        /// The number of the address.
        id: u8,
    },
    /// A further subflow has joined.
    SubflowEstablished {
        /// The token of the connection.
        token: u32,
        /// The subflow.
        peers: Peers,
    },
    /// A subflow has closed.
    SubflowClosed {
        /// The token of the connection.
        token: u32,
        /// The subflow.
        peers: Peers,
        /// The system's error, if that is why.
        error: Option<i32>,
    },
}

impl Event {
    fn read(message: &Message) -> Option<Self> {
        let given = Attributes(&message.attributes);
        let token = given.word(1)?;
        Some(match message.command {
            1 | 2 => {
                let (peers, server) = (given.peers()?, given.is_server());
                if message.command == 1 {
                    Self::Created { token, peers, server }
                } else {
                    Self::Established { token, peers, server }
                }
            }
            3 => Self::Closed { token },
            6 => Self::Announced {
                token,
                id: given.byte(4)?,
                remote: SocketAddr::new(given.address(7, 8)?, given.port(10).unwrap_or(0)),
            },
            7 => Self::Removed {
                token,
                id: given.byte(4)?,
            },
            10 => Self::SubflowEstablished {
                token,
                peers: given.peers()?,
            },
            11 => Self::SubflowClosed {
                token,
                peers: given.peers()?,
                error: given.byte(12).map(i32::from),
            },
            // Priorities and listeners are nobody's concern here.
            _ => return None,
        })
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

    fn word(&self, kind: u16) -> Option<u32> {
        self.bytes(kind).map(u32::from_ne_bytes)
    }

    /// Ports come in the byte order of the network.
    fn port(&self, kind: u16) -> Option<u16> {
        self.bytes(kind).map(u16::from_be_bytes)
    }

    fn address(&self, v4: u16, v6: u16) -> Option<IpAddr> {
        let short = || Some(IpAddr::V4(Ipv4Addr::from(self.bytes::<4>(v4)?)));
        let long = || Some(IpAddr::V6(Ipv6Addr::from(self.bytes::<16>(v6)?)));
        short().or_else(long)
    }

    fn peers(&self) -> Option<Peers> {
        Some(Peers {
            local: SocketAddr::new(self.address(5, 6)?, self.port(9)?),
            remote: SocketAddr::new(self.address(7, 8)?, self.port(10)?),
        })
    }

    /// Newer kernels say it by a flag (bit 0, `MPTCP_PM_EV_FLAG_SERVER_SIDE`), older ones by an attribute.
    fn is_server(&self) -> bool {
        let flags = self.bytes(13).map_or(0, u16::from_ne_bytes);
        self.byte(18) == Some(1) || flags & 1 == 1
    }
}

/// Hears of the connections of the network namespace that the thread was in which has made it.
#[derive(Debug)]
pub struct Events(Conversation);

impl Events {
    /// Begins to listen.
    ///
    /// # Errors
    /// [`Error::Missing`] where the kernel has no such events, [`Error::Permission`] without `CAP_NET_ADMIN`.
    pub fn listen() -> Result<Self, Error> {
        let wrong = |error: io::Error| Error::of("listen to MPTCP's events", error);
        let conversation = Conversation::open().map_err(wrong)?.ok_or_else(missing)?;
        if !conversation.listen(GROUP).map_err(wrong)? {
            return Err(missing());
        }
        conversation.socket().set_non_blocking(true).map_err(wrong)?;
        Ok(Self(conversation))
    }

    /// What has happened since it was asked last; it does not wait.
    ///
    /// # Errors
    /// The system's; `ENOBUFS` says that events were lost.
    pub fn next(&self) -> io::Result<Vec<Event>> {
        let mut events = Vec::new();
        loop {
            match self.0.hear() {
                Ok(messages) => events.extend(messages.iter().filter_map(Event::read)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(events),
                Err(error) => return Err(error),
            }
        }
    }
}

/// To wait for it among others.
impl AsFd for Events {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is the socket's, which lives as long as `self`.
        unsafe { BorrowedFd::borrow_raw(self.0.socket().as_raw_fd()) }
    }
}
