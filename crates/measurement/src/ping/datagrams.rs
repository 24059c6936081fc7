//! The sockets of echo requests and UDP.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};

use foundation::icmp::Echo;
use socket2::{Domain, Socket, Type};

use super::icmp::{self, Number};
use super::plan::Probe;
use super::{Answer, Method, Options, Protocol};
use crate::Stamp;
use crate::datagram::{Header, MessageKind};
use crate::system::Control;
use crate::timestamps::{self, Queued};
use kernel::Error;

/// Remedy if the system grants no ICMP socket.
pub const REMEDY: &str = "allow ICMP datagram sockets (as root: sysctl net.ipv4.ping_group_range='0 2147483647'), or \
     CAP_NET_RAW (run as root, or setcap cap_net_raw+ep on the Python that runs longfat); --protocol udp and tcp need neither";

/// Room for the headers before a payload.
const ROOM: usize = 128;
/// `linux/icmp.h`: the option of raw sockets that filters message types.
const ICMP_FILTER: i32 = 1;

/// A connected socket with its buffers.
pub struct Datagrams {
    socket: Socket,
    pub method: Method,
    is_v4: bool,
    identifier: u16,
    token: [u8; icmp::TOKEN],
    /// Number of the first datagram on the wire.
    first: u32,
    request: Vec<u8>,
    length: usize,
    answer: Vec<u8>,
    control: Control,
}

/// A received packet.
pub enum Arrival {
    /// An answer to a request.
    Answer {
        number: Number,
        answer: Answer,
        stamp: Option<Stamp>,
    },
    /// A packet that belongs to no request.
    Stranger,
    /// The error queue has an entry.
    Error,
    /// Nothing has arrived.
    Nothing,
}

/// An entry of the error queue.
pub enum QueueEvent {
    /// A request left; `count` counts sent requests from 0.
    Left { count: u32, stamp: Stamp },
    /// The port is closed; `number` is `None` if the message does not identify the request.
    Closed {
        number: Option<Number>,
        stamp: Option<Stamp>,
    },
    /// A request did not arrive.
    Failed { number: Option<Number>, error: i32 },
    /// Any other entry.
    Other,
}

impl Datagrams {
    /// Opens the socket that needs the least privilege; returns a note if that is not the first choice.
    pub fn open(options: &Options) -> Result<(Self, Option<String>), Error> {
        let is_v4 = options.to.is_ipv4();
        let (socket, method, note) = match options.protocol {
            Protocol::Icmp => icmp_socket(is_v4)?,
            _ => {
                let domain = Domain::for_address(options.to);
                let socket = Socket::new(domain, Type::DGRAM, Some(socket2::Protocol::UDP))
                    .map_err(|error| Error::system("make a UDP socket", error))?;
                (socket, Method::Udp, None)
            }
        };
        let mut to = options.to;
        if options.protocol == Protocol::Icmp {
            to.set_port(0);
        }
        socket
            .connect(&to.into())
            .map_err(|error| Error::system(format!("reach {}", options.to.ip()), error))?;
        let set = || -> io::Result<()> {
            socket.set_nonblocking(true)?;
            // Without kernel stamps the application's round trips remain.
            let _ = timestamps::enable(socket.as_fd());
            timestamps::enable_errors(socket.as_fd(), is_v4)?;
            fragment(socket.as_fd(), is_v4, !options.whole)?;
            if method == Method::IcmpRaw && is_v4 {
                kernel::set_option(&socket, libc::SOL_RAW, ICMP_FILTER, !1)?;
            }
            Ok(())
        };
        set().map_err(|error| Error::system("set up a socket", error))?;
        let mut random = [0; icmp::TOKEN + 6];
        getrandom::fill(&mut random).map_err(|_| Error::system("get random numbers", ErrorKind::Other))?;
        let [token @ .., a, b, c, d, e, f] = random;
        let largest = options.schedule.sizes.iter().copied().max().unwrap_or(0) as usize;
        let made = Self {
            socket,
            method,
            is_v4,
            identifier: u16::from_be_bytes([e, f]),
            token,
            first: u32::from_be_bytes([a, b, c, d]),
            request: vec![0; largest + ROOM],
            length: 0,
            answer: vec![0; largest + ROOM],
            control: Control::default(),
        };
        Ok((made, note))
    }

    /// Writes the request, so that only the system call is left when it is due.
    pub fn prepare(&mut self, probe: Probe) {
        let size = probe.size as usize;
        self.length = if self.method == Method::Udp {
            let header = Header {
                kind: MessageKind::Request,
                number: self.first.wrapping_add(probe.number),
            };
            header.write(&mut self.request[..size]);
            size
        } else {
            let number = probe.number;
            icmp::write(
                &mut self.request,
                self.is_v4,
                self.identifier,
                number,
                self.token,
                size,
            )
        };
    }

    /// Sends the prepared request.
    #[inline]
    pub fn send(&self) -> io::Result<usize> {
        self.socket.send(&self.request[..self.length])
    }

    /// Receives a packet without waiting.
    #[inline]
    pub fn receive(&mut self) -> Arrival {
        let received = timestamps::receive(self.socket.as_fd(), &mut self.answer, &mut self.control);
        let delivery = match received {
            Ok(delivery) => delivery,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Arrival::Nothing;
            }
            Err(_) => return Arrival::Error,
        };
        let bytes = &self.answer[..delivery.length.min(self.answer.len())];
        let number = match self.method {
            Method::Udp => match Header::read(bytes) {
                Some(Header {
                    kind: MessageKind::Reply,
                    number,
                }) => Some(Number::Whole(number.wrapping_sub(self.first))),
                _ => None,
            },
            Method::IcmpRaw => {
                let inner = if self.is_v4 {
                    icmp::without_ip(bytes)
                } else {
                    Some(bytes)
                };
                inner.and_then(|bytes| icmp::read(bytes, self.is_v4, Some(self.identifier), self.token))
            }
            _ => icmp::read(bytes, self.is_v4, None, self.token),
        };
        match number {
            Some(number) => Arrival::Answer {
                number,
                answer: Answer::Reply,
                stamp: delivery.stamp,
            },
            // A raw socket receives everybody's echo replies; on loopback also its own requests.
            None if self.method == Method::IcmpRaw => Arrival::Answer {
                number: Number::Whole(u32::MAX),
                answer: Answer::Reply,
                stamp: None,
            },
            None => Arrival::Stranger,
        }
    }

    /// Takes one entry off the error queue; `None` if it is empty.
    pub fn take_error(&mut self) -> io::Result<Option<QueueEvent>> {
        let queued = timestamps::take_error(self.socket.as_fd(), &mut self.answer, &mut self.control)?;
        Ok(queued.map(|queued| match queued {
            Queued::Sent { number, stamp } => QueueEvent::Left { count: number, stamp },
            Queued::Other => QueueEvent::Other,
            Queued::Failed(failure) => {
                let number = self.quoted(failure.length);
                if self.method == Method::Udp && failure.error == libc::ECONNREFUSED {
                    let stamp = failure.stamp;
                    QueueEvent::Closed { number, stamp }
                } else {
                    let error = failure.error;
                    QueueEvent::Failed { number, error }
                }
            }
        }))
    }

    /// Returns which request a message quotes.
    fn quoted(&self, length: usize) -> Option<Number> {
        let bytes = &self.answer[..length];
        if self.method == Method::Udp {
            let header = Header::read(bytes)?;
            return Some(Number::Whole(header.number.wrapping_sub(self.first)));
        }
        Echo::read(self.is_v4, bytes).map(|request| Number::Low(request.sequence))
    }
}

impl AsFd for Datagrams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn icmp_socket(is_v4: bool) -> Result<(Socket, Method, Option<String>), Error> {
    let (domain, protocol) = match is_v4 {
        true => (Domain::IPV4, socket2::Protocol::ICMPV4),
        false => (Domain::IPV6, socket2::Protocol::ICMPV6),
    };
    let refused = match Socket::new(domain, Type::DGRAM, Some(protocol)) {
        Ok(socket) => return Ok((socket, Method::IcmpDatagram, None)),
        Err(error) => error,
    };
    let socket = Socket::new(domain, Type::RAW, Some(protocol))
        .map_err(|error| Error::permission("send echo requests", error, REMEDY))?;
    let note = format!(
        "a raw socket is used, because ICMP datagram sockets are not allowed here ({})",
        refused.kind()
    );
    Ok((socket, Method::IcmpRaw, Some(note)))
}

/// Sets whether packets may be fragmented.
pub(crate) fn fragment(socket: BorrowedFd<'_>, is_v4: bool, may: bool) -> io::Result<()> {
    let (level, name, value) = match (is_v4, may) {
        (true, true) => (libc::SOL_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DONT),
        (true, false) => (libc::SOL_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
        (false, true) => (libc::SOL_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DONT),
        (false, false) => (libc::SOL_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO),
    };
    kernel::set_option(socket, level, name, value)
}
