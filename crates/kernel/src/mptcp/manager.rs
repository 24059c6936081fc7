//! Orders to the kernel: subflows of one connection, or addresses and limits for its own path manager. Numbers are those
//! of `linux/mptcp_pm.h`.

use std::net::{IpAddr, SocketAddr};

use netlink_packet_core::{DefaultNla, Emitable, NLA_F_NESTED};

use super::paths::Path;
use crate::error::Error;
use crate::netlink::{Conversation, FAMILY, Message};

/// The most subflows of a connection besides the first, and the most addresses, that the kernel's path manager is to be
/// given (`MPTCP_PM_ADDR_MAX`).
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

/// An address with its port, in the byte order of the host.
fn endpoint(at: SocketAddr) -> Vec<DefaultNla> {
    let mut attributes = address(at.ip());
    attributes.push(DefaultNla::new(ADDR_PORT, at.port().to_ne_bytes().to_vec()));
    attributes
}

/// A local address under a number, and its device.
fn local(path: &Path, id: u8, flags: Option<u32>) -> Vec<DefaultNla> {
    let mut attributes = address(path.address);
    attributes.push(DefaultNla::new(ADDR_ID, vec![id]));
    attributes.push(number(ADDR_IF_IDX, path.device));
    attributes.extend(flags.map(|flags| number(ADDR_FLAGS, flags)));
    attributes
}

/// Gives orders in the network namespace of the thread that has made it.
#[derive(Debug)]
pub struct Manager(Conversation);

impl Manager {
    /// Begins to.
    ///
    /// # Errors
    /// [`Error::Missing`] where the kernel has no MPTCP, and the system's.
    pub fn open() -> Result<Self, Error> {
        let opened =
            Conversation::open().map_err(|error| Error::of("ask for MPTCP's path manager", error))?;
        opened.map(Self).ok_or_else(missing)
    }

    fn order(
        &self,
        command: u8,
        attributes: Vec<DefaultNla>,
        what: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        let message = Message { command, attributes };
        self.0.ask(message).map_err(|error| Error::of(what(), error))
    }

    /// Opens a subflow of the connection `token` from a path of this host, under the number `id` (from 1, one for each
    /// address), to an address of the peer. That the order is taken does not say that the peer joins: see
    /// [`super::Event::SubflowEstablished`].
    ///
    /// # Errors
    /// `ENOTCONN` until the peer has acknowledged first data (RFC 8684, section 3.2), `ESRCH` for an unknown token,
    /// `EINVAL` where the path manager is the kernel's.
    pub fn create_subflow(&self, token: u32, from: &Path, id: u8, to: SocketAddr) -> Result<(), Error> {
        let attributes = vec![
            number(ATTR_TOKEN, token),
            nested(ATTR_ADDR, &local(from, id, None)),
            nested(ATTR_ADDR_REMOTE, &endpoint(to)),
        ];
        self.order(SUBFLOW_CREATE, attributes, || {
            format!("open a subflow from {} to {to}", from.address)
        })
    }

    /// Closes the subflow of the connection `token` between these ends.
    ///
    /// # Errors
    /// `ESRCH` where there is none.
    pub fn destroy_subflow(&self, token: u32, from: SocketAddr, to: SocketAddr) -> Result<(), Error> {
        let attributes = vec![
            number(ATTR_TOKEN, token),
            nested(ATTR_ADDR, &endpoint(from)),
            nested(ATTR_ADDR_REMOTE, &endpoint(to)),
        ];
        self.order(SUBFLOW_DESTROY, attributes, || {
            format!("close the subflow from {from} to {to}")
        })
    }

    /// Tells the peer of the connection `token` of a further address (ADD_ADDR, RFC 8684, section 3.4.1).
    ///
    /// # Errors
    /// As [`Self::create_subflow`].
    pub fn announce(&self, token: u32, path: &Path, id: u8) -> Result<(), Error> {
        let attributes = vec![
            number(ATTR_TOKEN, token),
            nested(ATTR_ADDR, &local(path, id, Some(FLAG_SIGNAL))),
        ];
        self.order(ANNOUNCE, attributes, || format!("announce {}", path.address))
    }

    /// Tells the peer that an address is gone (REMOVE_ADDR, RFC 8684, section 3.4.2): one that was announced, or that a subflow
    /// was opened from; 0 is that of the first subflow.
    ///
    /// # Errors
    /// `ENOENT` for a number that was not given.
    pub fn remove(&self, token: u32, id: u8) -> Result<(), Error> {
        let attributes = vec![number(ATTR_TOKEN, token), DefaultNla::new(ATTR_LOC_ID, vec![id])];
        self.order(REMOVE, attributes, || format!("take address {id} back"))
    }

    /// Lets the kernel's path manager open a subflow from this path for every connection.
    ///
    /// # Errors
    /// `EEXIST`-like answers for an address that it has, and the system's.
    pub fn add_endpoint(&self, path: &Path) -> Result<(), Error> {
        let mut attributes = address(path.address);
        attributes.push(number(ADDR_FLAGS, FLAG_SUBFLOW));
        attributes.push(number(ADDR_IF_IDX, path.device));
        self.order(ADD_ADDR, vec![nested(ATTR_ADDR, &attributes)], || {
            format!("add the endpoint {}", path.address)
        })
    }

    /// How many subflows besides the first the kernel's path manager allows a connection, and how many announced addresses it
    /// takes: at most [`MOST_SUBFLOWS`] each.
    ///
    /// # Errors
    /// `EINVAL` beyond the most.
    pub fn set_limits(&self, subflows: u32, announced: u32) -> Result<(), Error> {
        let attributes = vec![
            number(ATTR_RCV_ADD_ADDRS, announced),
            number(ATTR_SUBFLOWS, subflows),
        ];
        self.order(SET_LIMITS, attributes, || {
            format!("allow {subflows} subflows a connection")
        })
    }
}

pub(super) fn missing() -> Error {
    Error::Missing {
        what: format!("the kernel's MPTCP (generic netlink family {FAMILY})"),
        remedy: "it takes Linux 5.19 or newer, built with CONFIG_MPTCP".into(),
    }
}
