//! Requests and responses of one datagram each: UDP between two processes, or ICMP echo, which the peer's kernel
//! answers.

use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;

use experiment::outcome::Transaction;
use experiment::plan::Group;
use experiment::trace::content::MessageProtocol;
use foundation::icmp::{self, Echo};
use measurement::capture;
use socket2::{Domain, Protocol, Socket, Type};

use super::context::TrialContext;
use super::flow::Flow;
use super::request_capture::RequestCapture;
use super::waiting::{INTERVAL, wait_for_request};

/// The largest datagram, including ICMP's header.
const LARGEST: usize = 65_536;

/// A requesting end: its socket and its packet.
struct Requester {
    protocol: MessageProtocol,
    /// The local address and the peer's.
    ends: (Ipv4Addr, SocketAddr),
    /// Identifier of all echo requests, also over further sockets, by which a capture selects them. (In the kernel it
    /// is the socket's port.)
    identifier: Option<u16>,
    socket: Socket,
    packet: Vec<u8>,
    response: usize,
    /// Length of the request number at the start of UDP requests and responses: as much as fits both.
    mark: usize,
    buffer: Vec<MaybeUninit<u8>>,
}

impl Requester {
    fn new(protocol: MessageProtocol, ends: (Ipv4Addr, SocketAddr), sizes: (u64, u64)) -> io::Result<Self> {
        let header = match protocol {
            MessageProtocol::Udp => 0,
            MessageProtocol::Icmp => icmp::HEADER,
        };
        let mut requester = Self {
            protocol,
            ends,
            identifier: None,
            socket: Self::socket(protocol)?,
            packet: vec![0; header + sizes.0 as usize],
            response: sizes.1 as usize,
            mark: sizes.0.min(sizes.1).min(4) as usize,
            buffer: vec![MaybeUninit::uninit(); LARGEST],
        };
        requester.open()?;
        Ok(requester)
    }

    fn socket(protocol: MessageProtocol) -> io::Result<Socket> {
        let protocol = match protocol {
            MessageProtocol::Udp => Protocol::UDP,
            MessageProtocol::Icmp => Protocol::ICMPV4,
        };
        Socket::new(Domain::IPV4, Type::DGRAM, Some(protocol))
    }

    /// Replaces the socket by a new one for the next request.
    fn reopen(&mut self) -> io::Result<()> {
        // Two sockets cannot share an identifier: the assignment closes the old one first.
        self.socket = Self::socket(self.protocol)?;
        self.open()
    }

    fn open(&mut self) -> io::Result<()> {
        let (near, to) = self.ends;
        let identifier = self.identifier.unwrap_or(0);
        self.socket.bind(&SocketAddr::from((near, identifier)).into())?;
        self.socket.connect(&to.into())?;
        self.socket.set_read_timeout(Some(INTERVAL))?;
        self.socket.set_recv_buffer_size(4 * LARGEST)?;
        if self.protocol == MessageProtocol::Icmp {
            let own = self.socket.local_addr()?.as_socket();
            self.identifier = own.map(|own| own.port());
        }
        Ok(())
    }

    fn send(&mut self, number: u32) -> io::Result<()> {
        match self.protocol {
            MessageProtocol::Udp => {
                let mark = &number.to_le_bytes()[..self.mark];
                self.packet[..self.mark].copy_from_slice(mark);
            }
            // The kernel sets the checksum.
            MessageProtocol::Icmp => {
                Echo::request(true, self.identifier.unwrap_or(0), number as u16).write(&mut self.packet);
            }
        }
        self.socket.send(&self.packet).map(drop)
    }

    /// Waits for a packet; returns whether it is the response to this request.
    fn receive(&mut self, number: u32) -> io::Result<bool> {
        let length = self.socket.recv(&mut self.buffer)?;
        // SAFETY: the kernel wrote `length` bytes, which is at most the buffer's length.
        let got = unsafe { std::slice::from_raw_parts(self.buffer[..length].as_ptr().cast::<u8>(), length) };
        Ok(match self.protocol {
            MessageProtocol::Udp => {
                got.len() == self.response && got[..self.mark] == number.to_le_bytes()[..self.mark]
            }
            MessageProtocol::Icmp => {
                got.len() == icmp::HEADER + self.response
                    && Echo::read(true, got)
                        .is_some_and(|echo| echo.is_reply && echo.sequence == number as u16)
            }
        })
    }
}

/// Sends the workload's requests, one after the other.
pub(super) fn send(
    context: &TrialContext<'_>,
    group: &Group,
    flow: &Flow,
    protocol: MessageProtocol,
    near: Ipv4Addr,
    to: SocketAddr,
) {
    let captured = match protocol {
        MessageProtocol::Udp => capture::Protocol::Udp,
        MessageProtocol::Icmp => capture::Protocol::Echo,
    };
    let result = Requester::new(protocol, (near, to), group.workload.exchange()).and_then(|mut requester| {
        let is_alone = group.workload.flows() == 1 && group.workload.each_path != Some(true);
        let mut capture = RequestCapture::open(captured, near, requester.identifier, to, is_alone);
        let result = send_all(context, group, flow, &mut capture, &mut requester);
        flow.set_packets(capture.packets());
        result
    });
    if let Err(error) = result {
        flow.fail(error.to_string());
    }
    flow.end();
}

fn send_all(
    context: &TrialContext<'_>,
    group: &Group,
    flow: &Flow,
    capture: &mut RequestCapture,
    requester: &mut Requester,
) -> io::Result<()> {
    let workload = &group.workload;
    let requests = workload.requests.unwrap_or(1);
    let (request, response) = workload.exchange();
    for number in 1..=requests {
        if number > 1 && workload.reconnect == Some(true) {
            requester.reopen()?;
        }
        let from = capture.start();
        let requested_at = context.clock.now();
        flow.first_data_at.note(requested_at);
        // A request above the known path MTU is lost; the kernel has learned the MTU.
        match requester.send(number) {
            Err(error) if error.raw_os_error() != Some(libc::EMSGSIZE) => return Err(error),
            _ => {}
        }
        flow.set_sent(u64::from(number), u64::from(number) * request);
        let is_answered = loop {
            match requester.receive(number) {
                Ok(true) => break true,
                Ok(false) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => return Err(error),
            }
            if context.is_over() {
                return Ok(());
            }
            if context.clock.now().saturating_since(requested_at) >= group.response_timeout {
                break false;
            }
        };
        let responded_at = context.clock.now();
        if is_answered {
            flow.answered(Transaction {
                requested_at,
                responded_at,
                on_wire: capture.answered(from),
            });
            flow.read(1, response);
            flow.last_acknowledged_at.move_to(responded_at);
        } else {
            flow.count_unanswered();
        }
        if number < requests && !wait_for_request(context, group, flow, responded_at) {
            return Ok(());
        }
    }
    flow.finished.store(true, Ordering::Relaxed);
    Ok(())
}

/// Answers each request with one datagram.
pub(super) fn answer(context: &TrialContext<'_>, group: &Group, flow: &Flow, socket: &UdpSocket) {
    let (request, response) = group.workload.exchange();
    let mut buffer = vec![0; LARGEST];
    if socket.set_read_timeout(Some(INTERVAL)).is_err() {
        return;
    }
    let is_over = || context.is_over() || flow.over.load(Ordering::Relaxed);
    while !is_over() {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else {
            continue;
        };
        if length as u64 == request {
            flow.read(0, request);
            // A response that cannot leave is lost, like a lost packet.
            let _ = socket.send_to(&buffer[..response as usize], from);
        }
    }
}
