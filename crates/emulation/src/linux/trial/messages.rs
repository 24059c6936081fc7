//! Requests and responses between two kernels that are one datagram each: UDP between two processes, or ICMP echo, which
//! the peer's kernel answers by itself.

use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;

use experiment::application::RESPONSE_TIMEOUT;
use experiment::outcome::Transaction;
use experiment::plan::Group;
use experiment::trace::content::MessageProtocol;
use foundation::icmp::{self, Echo};
use measurement::capture;
use socket2::{Domain, Protocol, Socket, Type};

use super::context::TrialContext;
use super::flow::Flow;
use super::request_capture::RequestCapture;
use super::waiting::{INTERVAL, sleep_until};

/// The largest datagram, with ICMP's header.
const LARGEST: usize = 65_536;

/// One who asks: its socket, and the packet that it sends.
struct Requester {
    protocol: MessageProtocol,
    /// Its own address, and that of the one who answers.
    ends: (Ipv4Addr, SocketAddr),
    /// Of all its echo requests, also over further sockets: by it a capture tells them from those of other flows. (The
    /// kernel takes it for the port of the socket.)
    identifier: Option<u16>,
    socket: Socket,
    packet: Vec<u8>,
    response: usize,
    /// Bytes at the beginning of request and response that tell over UDP which request it is: as many as both have.
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

    /// A socket of its own for the next request, in the place of the one before.
    fn reopen(&mut self) -> io::Result<()> {
        // Closes the one before: two cannot have one identifier.
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
            MessageProtocol::Icmp => Echo {
                is_v4: true,
                is_reply: false,
                identifier: self.identifier.unwrap_or(0),
                sequence: number as u16,
            }
            .write(&mut self.packet),
        }
        self.socket.send(&self.packet).map(drop)
    }

    /// Waits for a packet; gives whether it is the response to this request.
    fn receive(&mut self, number: u32) -> io::Result<bool> {
        let length = self.socket.recv(&mut self.buffer)?;
        // SAFETY: the kernel has written that many bytes, and the slice is of no more than the buffer has.
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

/// Asks as often as the workload says, one request after the other.
pub(super) fn ask(
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
    let asked = Requester::new(protocol, (near, to), group.workload.exchange()).and_then(|mut requester| {
        let is_alone = group.workload.flows() == 1 && group.workload.each_path != Some(true);
        let mut capture = RequestCapture::look(captured, near, requester.identifier, to, is_alone);
        let asked = ask_all(context, group, flow, &mut capture, &mut requester);
        flow.set_packets(capture.packets());
        asked
    });
    if let Err(error) = asked {
        flow.fail(error.to_string());
    }
    flow.over.store(true, Ordering::Relaxed);
}

fn ask_all(
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
        let from = capture.ask();
        let requested_at = context.clock.now();
        flow.first_data_at.note(requested_at);
        // One that is larger than what the path is known to carry is lost; the kernel has learnt it then.
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
            if context.clock.now().saturating_since(requested_at) >= RESPONSE_TIMEOUT {
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
        if number < requests && !sleep_until(context, responded_at + workload.think.unwrap_or_default()) {
            return Ok(());
        }
    }
    flow.finished.store(true, Ordering::Relaxed);
    Ok(())
}

/// Answers each request with a datagram of its own.
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
            // TraceEventKind does not leave is lost, as what is lost on the way.
            let _ = socket.send_to(&buffer[..response as usize], from);
        }
    }
}
