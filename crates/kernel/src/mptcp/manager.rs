//! Requests to the kernel's path manager: subflows of a connection, endpoints and limits. Numbers are those of
//! `linux/mptcp_pm.h`.

use std::net::{IpAddr, SocketAddr};

use netlink_packet_core::{DefaultNla, Emitable, NLA_F_NESTED};

use super::generic_netlink::{FAMILY, GenericSocket, Message};
use super::paths::Path;
use crate::error::{self, Error};

/// The kernel's limit on subflows besides the first, and on announced addresses (`MPTCP_PM_ADDR_MAX`).
pub const MOST_SUBFLOWS: u32 = 8;

const ADD_ADDR: u8 = 1;
const SET_LIMITS: u8 = 5;
const ANNOUNCE: u8 = 8;
const REMOVE: u8 = 9;
const SUBFLOW_CREATE: u8 = 10;
const SUBFLOW_DESTROY: u8 = 11;

const ATTR_ADDR: u16 = 1;
const ATTR_RCV_ADD_ADDRS: u16 = 2;
const ATTR_SUBFLOWS: u16 = 3;
const ATTR_TOKEN: u16 = 4;
const ATTR_LOC_ID: u16 = 5;
const ATTR_ADDR_REMOTE: u16 = 6;

const ADDR_FAMILY: u16 = 1;
const ADDR_ID: u16 = 2;
const ADDR_ADDR4: u16 = 3;
const ADDR_ADDR6: u16 = 4;
const ADDR_PORT: u16 = 5;
const ADDR_FLAGS: u16 = 6;
const ADDR_IF_IDX: u16 = 7;

/// `MPTCP_PM_ADDR_FLAG_SIGNAL` and `MPTCP_PM_ADDR_FLAG_SUBFLOW`.
const FLAG_SIGNAL: u32 = 1;
const FLAG_SUBFLOW: u32 = 2;

fn number(kind: u16, value: u32) -> DefaultNla {
    DefaultNla::new(kind, value.to_ne_bytes().to_vec())
}

fn nested(kind: u16, attributes: &[DefaultNla]) -> DefaultNla {
    let mut bytes = vec![0; attributes.buffer_len()];
    attributes.emit(&mut bytes);
    DefaultNla::new(kind | NLA_F_NESTED, bytes)
}

/// `family` and `addr4` or `addr6`.
fn address(address: IpAddr) -> Vec<DefaultNla> {
    let (family, kind, bytes) = match address {
        IpAddr::V4(address) => (libc::AF_INET, ADDR_ADDR4, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, ADDR_ADDR6, address.octets().to_vec()),
    };
    vec![
        DefaultNla::new(ADDR_FAMILY, (family as u16).to_ne_bytes().to_vec()),
        DefaultNla::new(kind, bytes),
    ]
}

/// Address and port, both in host byte order.
fn endpoint(at: SocketAddr) -> Vec<DefaultNla> {
    let mut attributes = address(at.ip());
    attributes.push(DefaultNla::new(ADDR_PORT, at.port().to_ne_bytes().to_vec()));
    attributes
}

/// A local address with its ID and device.
fn local(path: &Path, id: u8, flags: Option<u32>) -> Vec<DefaultNla> {
    let mut attributes = address(path.address);
    attributes.push(DefaultNla::new(ADDR_ID, vec![id]));
    attributes.push(number(ADDR_IF_IDX, path.device));
    attributes.extend(flags.map(|flags| number(ADDR_FLAGS, flags)));
    attributes
}

/// Sends requests in the network namespace in which it was opened.
#[derive(Debug)]
pub struct Manager(GenericSocket);

impl Manager {
    /// Opens a socket to the path manager.
    ///
    /// # Errors
    /// [`Error::Missing`] if the kernel has no MPTCP, and the system's.
    pub fn open() -> Result<Self, Error> {
        let socket =
            GenericSocket::open().map_err(|error| error::mptcp("open MPTCP's path manager", error))?;
        socket.map(Self).ok_or_else(missing)
    }

    fn request(
        &self,
        command: u8,
        attributes: Vec<DefaultNla>,
        what: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        let message = Message { command, attributes };
        self.0
            .request(message)
            .map_err(|error| error::mptcp(what(), error))
    }

    /// Opens a subflow of the connection `token` from a path of this host with the address ID `id` (from 1, one for
    /// each address) to an address of the peer. Success does not mean that the peer joins: see
    /// [`super::EventKind::SubflowEstablished`].
    ///
    /// # Errors
    /// `ENOTCONN` until the first data is acknowledged (RFC 8684, section 3.2), `ESRCH` for an unknown token, `EINVAL`
    /// if the path manager is the kernel's.
    pub fn create_subflow(&self, token: u32, from: &Path, id: u8, to: SocketAddr) -> Result<(), Error> {
        let attributes = vec![
            number(ATTR_TOKEN, token),
            nested(ATTR_ADDR, &local(from, id, None)),
            nested(ATTR_ADDR_REMOTE, &endpoint(to)),
        ];
        self.request(SUBFLOW_CREATE, attributes, || {
            format!("open a subflow from {} to {to}", from.address)
        })
    }

    /// Closes the subflow of the connection `token` between these ends.
    ///
    /// # Errors
    /// `ESRCH` if there is none.
    pub fn destroy_subflow(&self, token: u32, from: SocketAddr, to: SocketAddr) -> Result<(), Error> {
        let attributes = vec![
            number(ATTR_TOKEN, token),
            nested(ATTR_ADDR, &endpoint(from)),
            nested(ATTR_ADDR_REMOTE, &endpoint(to)),
        ];
        self.request(SUBFLOW_DESTROY, attributes, || {
            format!("close the subflow from {from} to {to}")
        })
    }

    /// Announces a further address to the peer of the connection `token` (ADD_ADDR, RFC 8684, section 3.4.1).
    ///
    /// # Errors
    /// As [`Self::create_subflow`].
    pub fn announce(&self, token: u32, path: &Path, id: u8) -> Result<(), Error> {
        let attributes = vec![
            number(ATTR_TOKEN, token),
            nested(ATTR_ADDR, &local(path, id, Some(FLAG_SIGNAL))),
        ];
        self.request(ANNOUNCE, attributes, || format!("announce {}", path.address))
    }

    /// Withdraws an address from the peer (REMOVE_ADDR, RFC 8684, section 3.4.2): an announced address or the source of
    /// a subflow; 0 is that of the first subflow.
    ///
    /// # Errors
    /// `ENOENT` for an unknown ID.
    pub fn remove(&self, token: u32, id: u8) -> Result<(), Error> {
        let attributes = vec![number(ATTR_TOKEN, token), DefaultNla::new(ATTR_LOC_ID, vec![id])];
        self.request(REMOVE, attributes, || format!("withdraw address {id}"))
    }

    /// Adds an endpoint: the kernel's path manager opens a subflow from this path for every connection.
    ///
    /// # Errors
    /// `EEXIST` for a known address, and the system's.
    pub fn add_endpoint(&self, path: &Path) -> Result<(), Error> {
        let mut attributes = address(path.address);
        attributes.push(number(ADDR_FLAGS, FLAG_SUBFLOW));
        attributes.push(number(ADDR_IF_IDX, path.device));
        self.request(ADD_ADDR, vec![nested(ATTR_ADDR, &attributes)], || {
            format!("add the endpoint {}", path.address)
        })
    }

    /// Sets the kernel's limits on subflows besides the first and on accepted announcements, at most [`MOST_SUBFLOWS`]
    /// each.
    ///
    /// # Errors
    /// `EINVAL` above the limit.
    pub fn set_limits(&self, subflows: u32, announced: u32) -> Result<(), Error> {
        let attributes = vec![
            number(ATTR_RCV_ADD_ADDRS, announced),
            number(ATTR_SUBFLOWS, subflows),
        ];
        self.request(SET_LIMITS, attributes, || {
            format!("allow {subflows} subflows a connection")
        })
    }
}

pub(super) fn missing() -> Error {
    Error::Missing {
        what: format!("the kernel's MPTCP (generic netlink family {FAMILY})"),
        remedy: "use Linux 5.19 or newer with CONFIG_MPTCP".into(),
    }
}
