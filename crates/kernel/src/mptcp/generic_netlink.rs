//! Generic netlink for one family, that of MPTCP's path manager.

use std::collections::BTreeMap;
use std::io;

use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable, NetlinkPayload, NlasIterator, Parseable, ParseableParametrized,
};
use netlink_packet_generic::ctrl::nlas::{GenlCtrlAttrs, McastGrpAttrs};
use netlink_packet_generic::ctrl::{GenlCtrl, GenlCtrlCmd};
use netlink_packet_generic::{GenlFamily, GenlHeader, GenlMessage};
use netlink_sys::{Socket, protocols::NETLINK_GENERIC};

use crate::netlink;

/// A command or an event of the family, with its attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub command: u8,
    pub attributes: Vec<DefaultNla>,
}

/// The family.
pub const FAMILY: &str = "mptcp_pm";
const VERSION: u8 = 1;

impl GenlFamily for Message {
    fn family_name() -> &'static str {
        FAMILY
    }

    fn command(&self) -> u8 {
        self.command
    }

    fn version(&self) -> u8 {
        VERSION
    }
}

impl Emitable for Message {
    fn buffer_len(&self) -> usize {
        self.attributes.as_slice().buffer_len()
    }

    fn emit(&self, buffer: &mut [u8]) {
        self.attributes.as_slice().emit(buffer);
    }
}

impl ParseableParametrized<[u8], GenlHeader> for Message {
    fn parse_with_param(bytes: &[u8], header: GenlHeader) -> Result<Self, DecodeError> {
        let attributes = NlasIterator::new(bytes).map(|nla| DefaultNla::parse(&nla?));
        Ok(Self {
            command: header.cmd,
            attributes: attributes.collect::<Result<_, _>>()?,
        })
    }
}

/// A generic netlink socket in the namespace of the thread that opened it.
#[derive(Debug)]
pub struct GenericSocket {
    socket: Socket,
    /// The family's number on this kernel.
    family: u16,
    groups: BTreeMap<String, u32>,
}

impl GenericSocket {
    /// Opens a socket; `None` if the kernel has no such family.
    ///
    /// # Errors
    /// The system's.
    pub fn open() -> io::Result<Option<Self>> {
        let socket = netlink::open(NETLINK_GENERIC)?;
        let request = GenlMessage::from_payload(GenlCtrl {
            cmd: GenlCtrlCmd::GetFamily,
            nlas: vec![GenlCtrlAttrs::FamilyName(FAMILY.into())],
        });
        netlink::send(&socket, request, 0)?;
        let attributes = match netlink::receive::<GenlMessage<GenlCtrl>>(&socket)?.pop() {
            Some(NetlinkPayload::InnerMessage(message)) => message.payload.nlas,
            Some(NetlinkPayload::Error(error)) => {
                let error = error.to_io();
                return match error.kind() {
                    io::ErrorKind::NotFound => Ok(None),
                    _ => Err(error),
                };
            }
            other => return Err(io::Error::other(format!("unexpected netlink message: {other:?}"))),
        };
        let (mut family, mut groups) = (0, BTreeMap::new());
        for attribute in attributes {
            match attribute {
                GenlCtrlAttrs::FamilyId(number) => family = number,
                GenlCtrlAttrs::McastGroups(found) => groups.extend(found.iter().filter_map(group)),
                _ => {}
            }
        }
        Ok(Some(Self {
            socket,
            family,
            groups,
        }))
    }

    /// Sends a command and waits for its acknowledgement.
    ///
    /// # Errors
    /// The kernel's answer, if it is an error.
    pub fn request(&self, message: Message) -> io::Result<()> {
        let mut message = GenlMessage::from_payload(message);
        message.set_resolved_family_id(self.family);
        netlink::request(&self.socket, message, 0)
    }

    /// Subscribes to a multicast group; false if there is none of this name.
    ///
    /// # Errors
    /// The system's; `EPERM` without the permission to subscribe.
    pub fn subscribe(&self, group: &str) -> io::Result<bool> {
        let Some(&number) = self.groups.get(group) else {
            return Ok(false);
        };
        self.socket.add_membership(number)?;
        Ok(true)
    }

    /// Returns the messages of the next datagram; waits for one unless the socket is non-blocking.
    ///
    /// # Errors
    /// The system's; `ENOBUFS` after an overflow.
    pub fn receive(&self) -> io::Result<Vec<Message>> {
        let payloads = netlink::receive::<GenlMessage<Message>>(&self.socket)?.into_iter();
        let messages = payloads.filter_map(|payload| match payload {
            NetlinkPayload::InnerMessage(message) => Some(message.payload),
            _ => None,
        });
        Ok(messages.collect())
    }

    /// The socket, to poll it.
    pub const fn socket(&self) -> &Socket {
        &self.socket
    }
}

fn group(attributes: &Vec<McastGrpAttrs>) -> Option<(String, u32)> {
    let (mut name, mut number) = (None, None);
    for attribute in attributes {
        match attribute {
            McastGrpAttrs::Name(value) => name = Some(value.clone()),
            McastGrpAttrs::Id(value) => number = Some(*value),
        }
    }
    Some((name?, number?))
}
