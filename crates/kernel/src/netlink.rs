//! A conversation with one family of generic netlink (`Documentation/userspace-api/netlink/intro.rst` of Linux).

use std::collections::BTreeMap;
use std::io;

use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable, NLM_F_ACK, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader,
    NetlinkMessage, NetlinkPayload, NetlinkSerializable, NlasIterator, Parseable, ParseableParametrized,
};
use netlink_packet_generic::ctrl::nlas::{GenlCtrlAttrs, McastGrpAttrs};
use netlink_packet_generic::ctrl::{GenlCtrl, GenlCtrlCmd};
use netlink_packet_generic::{GenlFamily, GenlHeader, GenlMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_GENERIC};

/// A command of the family, or an event, with its attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub command: u8,
    pub attributes: Vec<DefaultNla>,
}

/// The one family that is spoken to.
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

/// A family as the kernel knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    number: u16,
    groups: BTreeMap<String, u32>,
}

/// A netlink socket in the namespace of the thread that has made it.
#[derive(Debug)]
pub struct Conversation {
    socket: Socket,
    family: Family,
}

impl Conversation {
    /// Begins one; `None` where the kernel has no such family.
    ///
    /// # Errors
    /// The system's.
    pub fn open() -> io::Result<Option<Self>> {
        let mut socket = Socket::new(NETLINK_GENERIC)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(find(&socket)?.map(|family| Self { socket, family }))
    }

    /// Sends a command, and gives the kernel's word on it.
    ///
    /// # Errors
    /// The kernel's answer, where it is an error.
    pub fn ask(&self, message: Message) -> io::Result<()> {
        let mut message = GenlMessage::from_payload(message);
        message.set_resolved_family_id(self.family.number);
        send(&self.socket, message, NLM_F_ACK)?;
        loop {
            match receive::<GenlMessage<Message>>(&self.socket)?.payload {
                NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
                NetlinkPayload::Error(_) => return Ok(()),
                // An event that has come in between is nobody's answer.
                _ => {}
            }
        }
    }

    /// Hears what the kernel tells a group of listeners; gives whether there is such a group.
    ///
    /// # Errors
    /// The system's, `EPERM` for who may not listen.
    pub fn listen(&self, group: &str) -> io::Result<bool> {
        let Some(&number) = self.family.groups.get(group) else {
            return Ok(false);
        };
        self.socket.add_membership(number)?;
        Ok(true)
    }

    /// The messages of the next datagram. It waits for one, unless the socket does not.
    ///
    /// # Errors
    /// The system's; `ENOBUFS` says that some were lost.
    pub fn hear(&self) -> io::Result<Vec<Message>> {
        let (bytes, _) = self.socket.recv_from_full()?;
        let (mut messages, mut rest) = (Vec::new(), &bytes[..]);
        while rest.len() >= HEADER {
            let message = <NetlinkMessage<GenlMessage<Message>>>::deserialize(rest).map_err(broken)?;
            let length = (message.header.length as usize).next_multiple_of(ALIGNMENT);
            if let NetlinkPayload::InnerMessage(message) = message.payload {
                messages.push(message.payload);
            }
            rest = rest.get(length.max(HEADER)..).unwrap_or_default();
        }
        Ok(messages)
    }

    /// The socket, to wait for it among others.
    pub const fn socket(&self) -> &Socket {
        &self.socket
    }
}

/// Bytes of `struct nlmsghdr`, and what messages in one datagram are aligned to.
const HEADER: usize = 16;
const ALIGNMENT: usize = 4;

fn find(socket: &Socket) -> io::Result<Option<Family>> {
    let asked = GenlCtrl {
        cmd: GenlCtrlCmd::GetFamily,
        nlas: vec![GenlCtrlAttrs::FamilyName(FAMILY.into())],
    };
    send(socket, GenlMessage::from_payload(asked), 0)?;
    let answer = receive::<GenlMessage<GenlCtrl>>(socket)?;
    let attributes = match answer.payload {
        NetlinkPayload::InnerMessage(message) => message.payload.nlas,
        NetlinkPayload::Error(error) => {
            let error = error.to_io();
            return match error.kind() {
                io::ErrorKind::NotFound => Ok(None),
                _ => Err(error),
            };
        }
        other => {
            return Err(io::Error::other(format!(
                "the kernel answered over netlink with {other:?}"
            )));
        }
    };
    let mut family = Family {
        number: 0,
        groups: BTreeMap::new(),
    };
    for attribute in attributes {
        match attribute {
            GenlCtrlAttrs::FamilyId(number) => family.number = number,
            GenlCtrlAttrs::McastGroups(groups) => family.groups.extend(groups.iter().filter_map(group)),
            _ => {}
        }
    }
    Ok(Some(family))
}

fn group(attributes: &Vec<McastGrpAttrs>) -> Option<(String, u32)> {
    let (mut name, mut number) = (None, None);
    for attribute in attributes {
        match attribute {
            McastGrpAttrs::Name(given) => name = Some(given.clone()),
            McastGrpAttrs::Id(given) => number = Some(*given),
        }
    }
    Some((name?, number?))
}

fn send<T>(socket: &Socket, message: GenlMessage<T>, flags: u16) -> io::Result<()>
where
    T: GenlFamily + Emitable + std::fmt::Debug,
    GenlMessage<T>: NetlinkSerializable + Into<NetlinkPayload<GenlMessage<T>>>,
{
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | flags;
    let mut message = NetlinkMessage::new(header, message.into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    Ok(())
}

fn receive<T: NetlinkDeserializable>(socket: &Socket) -> io::Result<NetlinkMessage<T>> {
    let (bytes, _) = socket.recv_from_full()?;
    <NetlinkMessage<T>>::deserialize(&bytes).map_err(broken)
}

fn broken(error: DecodeError) -> io::Error {
    io::Error::other(format!("the kernel's answer over netlink is not one: {error}"))
}
