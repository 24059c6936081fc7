//! The sockets of a prober (Linux).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use foundation::Instant;
use foundation::icmp::Echo;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket::clock::Clock;
use socket2::{Domain, Protocol as Number, SockAddr, Socket, Type};

use super::answer::{self, Answer, AnswerKind};
use super::flight::{Flight, MOST_SLOTS, SentProbe};
use super::message::{LEAST_PAYLOAD, Probe};
use super::{Options, ProbeResult, ProbeSpec, Protocol};
use crate::Stamp;
use crate::system::Control;
use crate::timestamps::{self, Failure, Queued};
use kernel::Error;

/// Length of the IP header, and of the UDP or ICMP header.
const HEADER_V4: usize = 20;
const HEADER_V6: usize = 40;
const SECOND: usize = 8;
/// The largest probe.
const LARGEST: usize = 65_000;
/// Packets read at a time, so that a flood does not delay timeouts.
const MOST_PER_POLL: usize = 1000;
/// How often sending is retried while the socket first reports errors of earlier probes.
const ATTEMPTS: usize = 4;

/// Sends probes and collects their results.
///
/// UDP needs no privilege. For ICMP an unprivileged socket is tried before a raw one.
pub struct Prober {
    options: Options,
    socket: Socket,
    /// A raw socket receives all ICMP packets with their IP headers and fills in less.
    is_raw: bool,
    identifier: u16,
    ttl: u8,
    clock: Clock,
    flight: Flight,
    pending: [Pending; MOST_SLOTS],
    /// Datagrams sent so far, in the kernel's numbering.
    stamped: u32,
    message: Vec<u8>,
    buffer: Vec<u8>,
    control: Control,
}

#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    number: u32,
    kernel_number: u32,
    before: Instant,
    left: Option<Stamp>,
}

impl Prober {
    /// Opens the sockets.
    ///
    /// # Errors
    /// If the system refuses them; a missing privilege is reported with its remedy.
    pub fn open(options: Options) -> Result<Self, Error> {
        if options.window == 0 || options.window > MOST_SLOTS {
            return Err(Error::Option(format!(
                "the window must be from 1 to {MOST_SLOTS} probes"
            )));
        }
        if options.protocol == Protocol::Udp
            && usize::from(options.port) + options.window > usize::from(u16::MAX)
        {
            return Err(Error::Option(format!(
                "port {} leaves no room for the window",
                options.port
            )));
        }
        let (socket, is_raw) = open(&options)?;
        let is_v4 = options.to.is_ipv4();
        let what = "prepare a socket for probes";
        timestamps::enable_errors(socket.as_fd(), is_v4).map_err(|error| Error::system(what, error))?;
        timestamps::enable(socket.as_fd()).map_err(|error| Error::system(what, error))?;
        // Probes are never fragmented, and ignore the cached path MTU.
        let probe = match is_v4 {
            true => (libc::SOL_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE),
            false => (libc::SOL_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE),
        };
        kernel::set_option(&socket, probe.0, probe.1, probe.2).map_err(|error| Error::system(what, error))?;
        let clock = Clock::new();
        Ok(Self {
            flight: Flight::new(clock.now(), options.interval, options.timeout, options.window),
            identifier: std::process::id() as u16,
            options,
            socket,
            is_raw,
            ttl: 0,
            clock,
            pending: [Pending::default(); MOST_SLOTS],
            stamped: 0,
            message: vec![0; LARGEST],
            buffer: vec![0; LARGEST],
            control: Control::default(),
        })
    }

    /// Returns the smallest and the largest length of a probe, with the IP header.
    #[must_use]
    pub fn sizes(&self) -> (usize, usize) {
        (self.headers() + LEAST_PAYLOAD, LARGEST)
    }

    /// Sends these probes and returns their results in the order of completion.
    ///
    /// `keep_running` is called at least ten times a second with the results since the last call. When it returns
    /// false, no further probe is sent; the probes in flight are still awaited.
    ///
    /// # Errors
    /// Errors of the socket, and invalid options.
    pub fn run(
        &mut self,
        probes: &[ProbeSpec],
        keep_running: &mut dyn FnMut(&[ProbeResult]) -> bool,
    ) -> Result<Vec<ProbeResult>, Error> {
        let (least, most) = self.sizes();
        if let Some(bad) = probes
            .iter()
            .find(|probe| !(least..=most).contains(&usize::from(probe.size)) || probe.ttl == 0)
        {
            return Err(Error::Option(format!(
                "a probe of {} bytes and time to live {}: sizes are from {least} to {most} and times to live from 1",
                bad.size, bad.ttl
            )));
        }
        self.flight.enqueue(probes.iter().copied());
        let (mut all, mut reported, mut reported_at) =
            (Vec::with_capacity(probes.len()), 0, self.clock.now());
        while !self.flight.is_idle() {
            let now = self.clock.now();
            while let Some(lost) = self.flight.poll_lost(now) {
                all.push(ProbeResult {
                    spec: lost.sent.spec,
                    answer: None,
                    application_s: None,
                    kernel_s: None,
                });
            }
            while let Some(sent) = self.flight.poll_send(self.clock.now()) {
                self.send(sent, &mut all)?;
            }
            self.receive_all(&mut all)?;
            let now = self.clock.now();
            if now.saturating_since(reported_at) >= foundation::Duration::from_millis(50) {
                reported_at = now;
                if !keep_running(&all[reported..]) {
                    self.flight.stop();
                }
                reported = all.len();
            }
            if let Some(next) = self.flight.poll_timeout() {
                let wait = next.saturating_since(self.clock.now());
                self.wait(wait.min(foundation::Duration::from_millis(50)))?;
            }
        }
        keep_running(&all[reported..]);
        Ok(all)
    }

    fn headers(&self) -> usize {
        SECOND
            + if self.options.to.is_ipv4() {
                HEADER_V4
            } else {
                HEADER_V6
            }
    }

    fn wait(&self, most: foundation::Duration) -> Result<(), Error> {
        let time = Timespec {
            tv_sec: (most.as_nanos() / 1_000_000_000) as _,
            tv_nsec: (most.as_nanos() % 1_000_000_000) as _,
        };
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(Error::system("wait for answers", error)),
        }
    }

    fn send(&mut self, sent: SentProbe, all: &mut Vec<ProbeResult>) -> Result<(), Error> {
        if self.ttl != sent.spec.ttl {
            self.ttl = sent.spec.ttl;
            match self.options.to {
                IpAddr::V4(_) => self.socket.set_ttl_v4(u32::from(self.ttl)),
                IpAddr::V6(_) => self.socket.set_unicast_hops_v6(u32::from(self.ttl)),
            }
            .map_err(|error| Error::system("set a time to live", error))?;
        }
        let is_v4 = self.options.to.is_ipv4();
        let probe = Probe { number: sent.number };
        let mut length = usize::from(sent.spec.size) - self.headers();
        let mut port = 0;
        match self.options.protocol {
            Protocol::Udp => {
                probe.write_udp(&mut self.message[..length]);
                port = self.options.port + sent.slot as u16;
            }
            Protocol::Icmp => {
                length += SECOND;
                probe.write_echo(is_v4, self.identifier, &mut self.message[..length]);
            }
        }
        let to = SockAddr::from(SocketAddr::new(self.options.to, port));
        for attempt in 0.. {
            // A pending error of an earlier probe would make this call fail.
            let _ = self.socket.take_error();
            let before = self.clock.now();
            match self.socket.send_to(&self.message[..length], &to) {
                Ok(_) => {
                    self.pending[sent.slot] = Pending {
                        number: sent.number,
                        kernel_number: self.stamped,
                        before,
                        left: None,
                    };
                    self.stamped = self.stamped.wrapping_add(1);
                    return Ok(());
                }
                Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => {
                    self.flight.answered(sent.slot, Some(sent.number), u32::MAX);
                    all.push(self.too_big_here(sent.spec));
                    return Ok(());
                }
                Err(_) if attempt < ATTEMPTS => self.receive_all(all)?,
                Err(error) => return Err(Error::system(format!("send to {}", self.options.to), error)),
            }
        }
        Ok(())
    }

    /// Returns the result of a probe that exceeds the MTU of this host's own device.
    fn too_big_here(&self, spec: ProbeSpec) -> ProbeResult {
        let answer = Answer {
            kind: AnswerKind::TooBig,
            from: self.local(),
            size: 0,
            mtu: None,
        };
        ProbeResult {
            spec,
            answer: Some(answer),
            application_s: None,
            kernel_s: None,
        }
    }

    fn local(&self) -> IpAddr {
        let own = self
            .socket
            .local_addr()
            .ok()
            .and_then(|address| address.as_socket());
        own.map_or(self.options.to, |address| address.ip())
    }

    /// Reads all pending errors and packets.
    fn receive_all(&mut self, all: &mut Vec<ProbeResult>) -> Result<(), Error> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let result = self.receive_into(&mut buffer, all);
        self.buffer = buffer;
        result
    }

    fn receive_into(&mut self, buffer: &mut [u8], all: &mut Vec<ProbeResult>) -> Result<(), Error> {
        for _ in 0..MOST_PER_POLL {
            let taken = timestamps::take_error(self.socket.as_fd(), buffer, &mut self.control);
            match taken.map_err(|error| Error::system("read the error queue", error))? {
                None => break,
                Some(Queued::Sent { number, stamp }) => {
                    if let Some(one) = self.pending.iter_mut().find(|one| one.kernel_number == number) {
                        one.left.get_or_insert(stamp);
                    }
                }
                Some(Queued::Failed(failure)) => {
                    let result = self.failed(&failure, &buffer[..failure.length]);
                    all.extend(result);
                }
                Some(Queued::Other) => {}
            }
        }
        for _ in 0..MOST_PER_POLL {
            match timestamps::receive(self.socket.as_fd(), buffer, &mut self.control) {
                Ok(delivery) => {
                    let bytes = &buffer[..delivery.length.min(buffer.len())];
                    let from = delivery.from.map(|from| from.ip());
                    all.extend(self.replied(bytes, from, delivery.stamp));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The error queue contains ICMP errors as well.
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Matches an ICMP error with a probe.
    fn failed(&mut self, failure: &Failure, quoted: &[u8]) -> Option<ProbeResult> {
        let from = failure.offender?.ip();
        let kind = answer::kind(self.options.to, from, failure.icmp?)?;
        let inner = if self.options.to.is_ipv4() {
            HEADER_V4
        } else {
            HEADER_V6
        };
        let (slot, number, mask, size) = match self.options.protocol {
            Protocol::Udp => {
                let slot = usize::from(failure.destination?.port().checked_sub(self.options.port)?);
                let number = Probe::read_udp(quoted).map(|probe| probe.number);
                (slot, number, u32::MAX, quoted.len() + SECOND)
            }
            Protocol::Icmp => {
                if self.is_raw && self.identifier_of(quoted) != Some(self.identifier) {
                    return None;
                }
                let (number, mask) = self.echo(quoted, false)?;
                (
                    self.flight.slot_of(number, mask)?,
                    Some(number),
                    mask,
                    quoted.len(),
                )
            }
        };
        let answer = Answer {
            kind,
            from,
            size: (size + 2 * inner + SECOND) as u32,
            mtu: (kind == AnswerKind::TooBig && failure.info > 0).then_some(failure.info),
        };
        self.answered(slot, number, mask, answer, failure.stamp)
    }

    /// Matches a received packet with a probe: an echo reply, or on a raw socket any ICMP packet.
    fn replied(&mut self, bytes: &[u8], from: Option<IpAddr>, stamp: Option<Stamp>) -> Option<ProbeResult> {
        let from = from.filter(|_| self.options.protocol == Protocol::Icmp)?;
        let mut message = bytes;
        if self.is_raw && self.options.to.is_ipv4() {
            message = bytes.get(usize::from(bytes.first()? & 0xf) * 4..)?;
        }
        if from != self.options.to || (self.is_raw && self.identifier_of(message) != Some(self.identifier)) {
            return None;
        }
        let (number, mask) = self.echo(message, true)?;
        let slot = self.flight.slot_of(number, mask)?;
        let header = if from.is_ipv4() { HEADER_V4 } else { HEADER_V6 };
        let answer = Answer {
            kind: AnswerKind::Reached,
            from,
            size: (message.len() + header) as u32,
            mtu: None,
        };
        self.answered(slot, Some(number), mask, answer, stamp)
    }

    fn identifier_of(&self, message: &[u8]) -> Option<u16> {
        Echo::read(self.options.to.is_ipv4(), message).map(|echo| echo.identifier)
    }

    /// Returns the number of an echo message and the mask of its valid bits.
    fn echo(&self, message: &[u8], reply: bool) -> Option<(u32, u32)> {
        let probe = Probe::read_echo(self.options.to.is_ipv4(), message, reply)?;
        let whole = message.len() >= SECOND + LEAST_PAYLOAD;
        Some((probe.number, if whole { u32::MAX } else { 0xffff }))
    }

    fn answered(
        &mut self,
        slot: usize,
        number: Option<u32>,
        mask: u32,
        answer: Answer,
        stamp: Option<Stamp>,
    ) -> Option<ProbeResult> {
        let now = self.clock.now();
        let sent = self.flight.answered(slot, number, mask)?;
        let pending = self.pending[slot];
        let left = pending.left.filter(|_| pending.number == sent.number);
        let kernel = left.zip(stamp).filter(|(left, came)| left <= came);
        Some(ProbeResult {
            spec: sent.spec,
            answer: Some(answer),
            application_s: Some(now.saturating_since(pending.before).as_secs_f64()),
            kernel_s: kernel.map(|(left, came)| came.since(left).as_secs_f64()),
        })
    }
}

/// Opens a socket; returns whether it is a raw one.
fn open(options: &Options) -> Result<(Socket, bool), Error> {
    let is_v4 = options.to.is_ipv4();
    let domain = if is_v4 { Domain::IPV4 } else { Domain::IPV6 };
    if options.protocol == Protocol::Udp {
        let made = Socket::new(domain, Type::DGRAM, Some(Number::UDP));
        return Ok((
            made.map_err(|error| Error::system("make a UDP socket", error))?,
            false,
        ));
    }
    let number = if is_v4 { Number::ICMPV4 } else { Number::ICMPV6 };
    if let Ok(socket) = Socket::new(domain, Type::DGRAM, Some(number)) {
        return Ok((socket, false));
    }
    let remedy = "allow ICMP sockets (sysctl -w net.ipv4.ping_group_range=\"0 2147483647\"), give the \
                  capability CAP_NET_RAW, or use UDP";
    let raw = Socket::new(domain, Type::RAW, Some(number));
    Ok((
        raw.map_err(|error| Error::permission("send ICMP", error, remedy))?,
        true,
    ))
}

impl AsFd for Prober {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
