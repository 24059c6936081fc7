//! System calls without a safe wrapper: messages with control data, and addresses of devices.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::Stamp;

/// Room for all requested control messages.
const CONTROL: usize = 512;

/// A buffer for control messages with the kernel's alignment.
#[repr(C, align(8))]
pub struct Control([u8; CONTROL]);

impl Default for Control {
    fn default() -> Self {
        Self([0; CONTROL])
    }
}

/// One control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its level, such as `SOL_SOCKET`.
    pub level: i32,
    /// Its type at that level.
    pub kind: i32,
    /// Its contents.
    pub data: &'a [u8],
}

/// Metadata of a packet read by `recvmsg(2)`.
pub struct Received {
    /// Length of the packet, with `MSG_TRUNC` including bytes that did not fit in the buffer.
    pub length: usize,
    /// Length of the control messages.
    control: usize,
    /// The sender's address in the kernel's representation.
    name: [u8; size_of::<libc::sockaddr_storage>()],
    /// Length of `name`.
    name_length: usize,
}

impl Received {
    /// Iterates over the control messages in `control`, the buffer of the same call.
    pub fn messages<'a>(&self, control: &'a Control) -> Messages<'a> {
        Messages(&control.0[..self.control.min(CONTROL)])
    }

    /// Returns the sender if it has an IP address.
    pub fn from(&self) -> Option<SocketAddr> {
        socket_address(&self.name[..self.name_length])
    }

    /// Returns the sender's address as bytes.
    pub fn name(&self) -> &[u8] {
        &self.name[..self.name_length]
    }
}

/// Parses an IP address out of a `sockaddr` (`ip(7)`, `ipv6(7)`).
pub fn socket_address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    match family {
        libc::AF_INET => {
            let address: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
            Some((Ipv4Addr::from(address), port).into())
        }
        libc::AF_INET6 => {
            let address: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
            Some((Ipv6Addr::from(address), port).into())
        }
        _ => None,
    }
}

/// Iterates over control messages (`cmsg(3)`) and never reads beyond the buffer, whatever their lengths claim.
pub struct Messages<'a>(&'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        const LENGTH: usize = size_of::<usize>();
        let header = LENGTH + 8;
        let length = usize::from_ne_bytes(self.0.get(..LENGTH)?.try_into().ok()?);
        let number = |at: usize| Some(i32::from_ne_bytes(self.0.get(at..at + 4)?.try_into().ok()?));
        let (level, kind) = (number(LENGTH)?, number(LENGTH + 4)?);
        let data = self.0.get(header..length)?;
        self.0 = self.0.get(length.next_multiple_of(LENGTH)..).unwrap_or(&[]);
        Some(Message { level, kind, data })
    }
}

/// Returns the stamp at index `place` of a control message that contains `struct timespec`s.
pub fn stamp_at(data: &[u8], place: usize) -> Option<Stamp> {
    let number = |at: usize| Some(i64::from_ne_bytes(data.get(at..at + 8)?.try_into().ok()?));
    Stamp::from_parts(number(place * 16)?, number(place * 16 + 8)?)
}

/// `recvmsg(2)`.
pub fn receive(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    control: &mut Control,
    flags: i32,
) -> io::Result<Received> {
    let mut received = Received {
        length: 0,
        control: 0,
        name: [0; size_of::<libc::sockaddr_storage>()],
        name_length: 0,
    };
    let mut vector = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: an all-zero `msghdr` is a message without buffers.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_name = received.name.as_mut_ptr().cast();
    header.msg_namelen = received.name.len() as _;
    header.msg_iov = &raw mut vector;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = CONTROL as _;
    // SAFETY: the header points to buffers with the given lengths, which outlive the call.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags) };
    if length < 0 {
        return Err(io::Error::last_os_error());
    }
    received.length = length as usize;
    received.control = header.msg_controllen as _;
    received.name_length = (header.msg_namelen as usize).min(received.name.len());
    Ok(received)
}

/// Binds an `AF_PACKET` socket to a device and to all protocols (`packet(7)`); device 0 means all devices.
pub fn bind_packet(socket: BorrowedFd<'_>, device: u32) -> io::Result<()> {
    // SAFETY: all zeros is a valid address.
    let mut address: libc::sockaddr_ll = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = device as i32;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the pointer is to an address of the stated length.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_messages_are_separated() {
        let mut bytes = Vec::new();
        for (kind, data) in [(35_i32, vec![1_u8, 2, 3]), (37, vec![9; 48])] {
            bytes.extend((16 + data.len()).to_ne_bytes());
            bytes.extend(1_i32.to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(&data);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        let found: Vec<_> = Messages(&bytes)
            .map(|m| (m.level, m.kind, m.data.len()))
            .collect();
        assert_eq!(found, [(1, 35, 3), (1, 37, 48)]);
    }

    proptest! {
        #[test]
        fn never_reads_beyond_the_buffer(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Messages(&bytes).count() <= bytes.len() / 16 + 1);
            let _ = socket_address(&bytes);
            let _ = stamp_at(&bytes, 2);
        }
    }
}
