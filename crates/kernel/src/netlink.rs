//! Requests over netlink (`Documentation/userspace-api/netlink/intro.rst` of Linux).

use std::io;

use netlink_packet_core::{
    DecodeError, NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader, NetlinkMessage,
    NetlinkPayload, NetlinkSerializable,
};
use netlink_sys::{Socket, SocketAddr};

/// Bytes of `struct nlmsghdr`, and the alignment of messages in one datagram.
const HEADER: usize = 16;
const ALIGNMENT: usize = 4;

/// Opens a socket to the kernel in the namespace of the calling thread.
///
/// # Errors
/// The system's.
pub fn open(protocol: isize) -> io::Result<Socket> {
    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

/// Sends a request and waits for its acknowledgement; `flags` adds to `NLM_F_REQUEST | NLM_F_ACK`.
///
/// # Errors
/// The kernel's answer, if it is an error.
pub fn request<T>(socket: &Socket, payload: impl Into<NetlinkPayload<T>>, flags: u16) -> io::Result<()>
where
    T: NetlinkSerializable + NetlinkDeserializable,
{
    send(socket, payload, NLM_F_ACK | flags)?;
    loop {
        let (bytes, _) = socket.recv_from_full()?;
        match <NetlinkMessage<T>>::deserialize(&bytes)
            .map_err(malformed)?
            .payload
        {
            NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
            NetlinkPayload::Error(_) => return Ok(()),
            // An event that arrived in between.
            _ => {}
        }
    }
}

/// Requests a dump and calls `each` for every object.
///
/// # Errors
/// The kernel's answer, if it is an error.
pub fn dump<T>(
    socket: &Socket,
    payload: impl Into<NetlinkPayload<T>>,
    mut each: impl FnMut(T),
) -> io::Result<()>
where
    T: NetlinkSerializable + NetlinkDeserializable,
{
    send(socket, payload, NLM_F_DUMP)?;
    loop {
        for payload in receive::<T>(socket)? {
            match payload {
                NetlinkPayload::Done(_) => return Ok(()),
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                NetlinkPayload::InnerMessage(message) => each(message),
                _ => {}
            }
        }
    }
}

/// Sends a request; `flags` adds to `NLM_F_REQUEST`.
pub(crate) fn send<T>(socket: &Socket, payload: impl Into<NetlinkPayload<T>>, flags: u16) -> io::Result<()>
where
    T: NetlinkSerializable,
{
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | flags;
    let mut message = NetlinkMessage::new(header, payload.into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    Ok(())
}

/// Returns the messages of the next datagram; waits for one unless the socket is non-blocking.
pub(crate) fn receive<T: NetlinkDeserializable>(socket: &Socket) -> io::Result<Vec<NetlinkPayload<T>>> {
    let (bytes, _) = socket.recv_from_full()?;
    let (mut payloads, mut rest) = (Vec::new(), &bytes[..]);
    while rest.len() >= HEADER {
        let message = <NetlinkMessage<T>>::deserialize(rest).map_err(malformed)?;
        let length = (message.header.length as usize).next_multiple_of(ALIGNMENT);
        payloads.push(message.payload);
        rest = rest.get(length.max(HEADER)..).unwrap_or_default();
    }
    Ok(payloads)
}

fn malformed(error: DecodeError) -> io::Error {
    io::Error::other(format!("malformed netlink message: {error}"))
}
