//! Kernel time stamps of sent and received packets (Linux, `Documentation/networking/timestamping.rst`), and the error
//! queue's reports of packets that did not arrive (`ip(7)`, `IP_RECVERR`).
//!
//! The stamps are software stamps: taken when a packet is passed to the device driver, and when it comes from there.
//! Their difference is the time spent outside of this host's protocol stack.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use crate::Stamp;
use crate::system::{self, Control, Message};

/// Metadata of a received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its length; greater than the buffer if it was truncated.
    pub length: usize,
    /// Its sender.
    pub from: Option<SocketAddr>,
    /// When the device driver passed it to the kernel.
    pub stamp: Option<Stamp>,
}

/// An ICMP error or a local error about a sent packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The error number, such as `ECONNREFUSED`.
    pub error: i32,
    /// Type and code of the ICMP message; `None` for a local error.
    pub icmp: Option<(u8, u8)>,
    /// The next hop's MTU if the packet was too big.
    pub info: u32,
    /// The host that reported the error.
    pub offender: Option<SocketAddr>,
    /// The destination of the sent packet.
    pub destination: Option<SocketAddr>,
    /// When the message arrived.
    pub stamp: Option<Stamp>,
    /// Length of the quoted part of the packet in the buffer.
    pub length: usize,
}

/// An entry of a socket's error queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queued {
    /// A packet has left.
    Sent {
        /// Its number, counted from 0: datagrams, or bytes of a stream.
        number: u32,
        /// When it was passed to the device driver.
        stamp: Stamp,
    },
    /// A packet did not arrive.
    Failed(Failure),
    /// Any other entry.
    Other,
}

/// Enables stamps of all packets that the socket sends and receives.
///
/// # Errors
/// If the kernel does not support them.
pub fn enable(socket: BorrowedFd<'_>) -> io::Result<()> {
    let flags = libc::SOF_TIMESTAMPING_SOFTWARE
        | libc::SOF_TIMESTAMPING_RX_SOFTWARE
        | libc::SOF_TIMESTAMPING_TX_SOFTWARE
        | libc::SOF_TIMESTAMPING_OPT_ID
        | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    kernel::set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags as i32)
}

/// Enables the delivery of ICMP errors about sent packets.
///
/// # Errors
/// If the kernel refuses.
pub fn enable_errors(socket: BorrowedFd<'_>, is_v4: bool) -> io::Result<()> {
    match is_v4 {
        true => kernel::set_option(socket, libc::SOL_IP, libc::IP_RECVERR, 1),
        false => kernel::set_option(socket, libc::SOL_IPV6, libc::IPV6_RECVERR, 1),
    }
}

/// Receives one packet.
///
/// # Errors
/// `WouldBlock` if there is none, and other errors of the socket.
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8], control: &mut Control) -> io::Result<Delivery> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    let received = system::receive(socket, buffer, control, flags)?;
    let stamps = received.messages(control).filter_map(|message| {
        let is_stamp = (message.level, message.kind) == (libc::SOL_SOCKET, libc::SO_TIMESTAMPING);
        is_stamp.then(|| system::stamp_at(message.data, 0)).flatten()
    });
    Ok(Delivery {
        length: received.length,
        from: received.from(),
        stamp: stamps.last(),
    })
}

/// Takes one entry off the socket's error queue; `None` if it is empty.
///
/// # Errors
/// Errors of the socket.
pub fn take_error(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    control: &mut Control,
) -> io::Result<Option<Queued>> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_ERRQUEUE;
    let received = match system::receive(socket, buffer, control, flags) {
        Ok(received) => received,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        Err(error) => return Err(error),
    };
    let destination = received.from();
    Ok(Some(read(
        received.messages(control),
        destination,
        received.length.min(buffer.len()),
    )))
}

fn read<'a>(
    messages: impl Iterator<Item = Message<'a>>,
    destination: Option<SocketAddr>,
    length: usize,
) -> Queued {
    let (mut stamp, mut detail) = (None, None);
    for message in messages {
        match (message.level, message.kind) {
            (libc::SOL_SOCKET, libc::SO_TIMESTAMPING) => stamp = system::stamp_at(message.data, 0),
            (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR) => {
                detail = Some(message.data)
            }
            _ => {}
        }
    }
    // `struct sock_extended_err`, then the offender's address.
    let Some((error, origin, kind, code, info, data)) = detail.and_then(|detail| {
        let field = |at: usize| Some(u32::from_ne_bytes(detail.get(at..at + 4)?.try_into().ok()?));
        Some((
            field(0)?,
            *detail.get(4)?,
            *detail.get(5)?,
            *detail.get(6)?,
            field(8)?,
            field(12)?,
        ))
    }) else {
        return Queued::Other;
    };
    if origin == libc::SO_EE_ORIGIN_TIMESTAMPING {
        return match stamp {
            Some(stamp) if info == 0 => Queued::Sent { number: data, stamp },
            _ => Queued::Other,
        };
    }
    let is_icmp = matches!(origin, libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6);
    Queued::Failed(Failure {
        error: error as i32,
        icmp: is_icmp.then_some((kind, code)),
        info,
        offender: detail.and_then(|detail| system::socket_address(detail.get(16..)?)),
        destination,
        stamp,
        length,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::time::{Duration, Instant};

    /// Repeats `poll` until it returns a value, which on loopback is soon.
    fn until<T>(mut poll: impl FnMut() -> Option<T>) -> T {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(found) = poll() {
                return found;
            }
            assert!(Instant::now() < end);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn sent_and_received_packets_are_timestamped() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for socket in [&receiver, &sender] {
            enable(socket.as_fd()).unwrap();
        }
        let (mut buffer, mut control) = ([0; 64], Control::default());
        for round in 0..3 {
            let before = Stamp::now();
            sender.send_to(&[7; 10], receiver.local_addr().unwrap()).unwrap();
            let delivery = until(|| receive(receiver.as_fd(), &mut buffer, &mut control).ok());
            assert_eq!((delivery.length, delivery.from), (10, sender.local_addr().ok()));
            let sent = until(|| take_error(sender.as_fd(), &mut buffer, &mut control).unwrap());
            let Queued::Sent { number, stamp } = sent else {
                panic!("{sent:?}");
            };
            assert_eq!(number, round);
            assert!(before <= stamp && stamp <= Stamp::now());
            // The kernel starts timestamping shortly after it was enabled.
            assert!(delivery.stamp.is_none_or(|arrived| stamp <= arrived));
        }
    }

    #[test]
    fn a_closed_port_is_reported_with_its_icmp_message() {
        let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        enable_errors(sender.as_fd(), true).unwrap();
        sender.send_to(&[1, 2, 3], closed).unwrap();
        let (mut buffer, mut control) = ([0; 64], Control::default());
        let detail = until(|| take_error(sender.as_fd(), &mut buffer, &mut control).unwrap());
        let Queued::Failed(failure) = detail else {
            panic!("{detail:?}");
        };
        assert_eq!(failure.icmp, Some((3, 3)));
        assert_eq!(failure.offender.map(|offender| offender.ip()), Some(closed.ip()));
        assert_eq!(failure.destination, Some(closed));
        assert_eq!(buffer[..failure.length], [1, 2, 3]);
    }
}
