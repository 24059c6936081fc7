//! Transactions in turn, with a capture beside them where that is allowed.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering::Relaxed;

use foundation::{Duration, Instant};
use socket::clock::Clock;
use socket::wait::sharpen_timers;

use super::sockets::{Done, Transactor};
use super::{Options, Protocol, Report, Transaction, wire};
use crate::capture::{Capture, Filter, Frame, Protocol as Above};
use crate::ping::Progress;
use crate::rights;
use kernel::Error;

/// So long the last frames of a transaction are waited for, beyond what it took itself.
const PATIENCE: Duration = Duration::from_millis(50);

/// The captures of one measurement, where they are allowed.
struct Captures {
    udp: Option<Capture>,
    tcp: Option<Capture>,
    frames: Vec<Frame>,
}

/// Does all transactions, or those until [`Progress::end`] was called. It keeps its thread.
///
/// # Errors
/// What cannot be asked, a server that is not there, and what the system says. What fails later is told with its
/// transaction.
pub fn transact(options: &Options, progress: &Progress) -> Result<Report, Error> {
    options.check()?;
    sharpen_timers();
    let largest = options.sizes.iter().copied().max().unwrap_or(0);
    let mut transactor = Transactor::new(options.to, largest, options.timeout);
    let mut notes = Vec::new();
    if options.protocols.contains(&Protocol::Tfo) {
        if rights::fast_open() & 1 == 0 {
            notes.push(
                "TCP Fast Open is switched off for clients here: as root, sysctl net.ipv4.tcp_fastopen=3"
                    .into(),
            );
        }
        // The first connection only fetches the cookie (RFC 7413, section 3).
        let first = transactor.run(Protocol::Tfo, options.sizes[0]);
        first.map_err(|error| unreachable(options.to, error))?;
    }
    if options.protocols.contains(&Protocol::Ttcp) {
        // The first connection makes the cache of both ends (RFC 1644, section 3.2).
        let first = transactor.run(Protocol::Ttcp, options.sizes[0]);
        first.map_err(|error| unreachable(options.to, error))?;
    }
    let mut captures = Captures::open(options, &mut notes);
    let (clock, mut transactions) = (Clock::new(), Vec::new());
    let mut due = clock.now();
    'rounds: for _ in 0..options.count {
        for &size in &options.sizes {
            for &protocol in &options.protocols {
                while !progress.is_stopped() && clock.now() < due {
                    std::thread::sleep((due - clock.now()).min(PATIENCE).into());
                }
                if progress.is_stopped() {
                    break 'rounds;
                }
                due = clock.now() + options.interval;
                captures.discard()?;
                progress.sent.fetch_add(1, Relaxed);
                let done = transactor.run(protocol, size);
                if transactions.is_empty()
                    && let Err(error) = done
                {
                    return Err(unreachable(options.to, error));
                }
                let made = captures.told(protocol, size, done, &clock)?;
                if let Some(took) = made.application {
                    progress.answered.fetch_add(1, Relaxed);
                    progress.last.store(took.as_nanos(), Relaxed);
                    progress.size.store(size, Relaxed);
                }
                transactions.push(made);
            }
        }
    }
    let fast = |transaction: &&Transaction| transaction.protocol == Protocol::Tfo;
    let opened = transactions
        .iter()
        .filter(fast)
        .filter(|made| made.syn_data)
        .count();
    let asked = transactions.iter().filter(fast).count();
    if opened < asked {
        notes.push(format!(
            "the data of {} of {asked} requests over TFO did not go with the SYN: the server's host must have \
             net.ipv4.tcp_fastopen=3, and some networks drop such SYNs",
            asked - opened
        ));
    }
    Ok(Report {
        transactions,
        notes,
        dropped: captures.dropped()?,
    })
}

/// The first transaction says whether the server is there at all.
fn unreachable(to: SocketAddr, error: std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::ConnectionRefused => Error::Missing {
            what: format!("an echo server at {to}"),
            remedy: "nothing listens there: start longfat echo on that host".into(),
        },
        ErrorKind::TimedOut => Error::Missing {
            what: format!("an answer of {to}"),
            remedy: "start longfat echo on that host, and see that no firewall is in between".into(),
        },
        _ => Error::system(format!("do a transaction with {to}"), error),
    }
}

impl Captures {
    fn open(options: &Options, notes: &mut Vec<String>) -> Self {
        let mut captures = Self {
            udp: None,
            tcp: None,
            frames: Vec::new(),
        };
        let near = match near(options.to) {
            Ok(near) => near,
            Err(error) => {
                notes.push(format!("no capture: no way to {}: {error}", options.to.ip()));
                return captures;
            }
        };
        let open = |protocol| {
            let filter = Filter {
                protocol,
                near,
                far: options.to.ip(),
                near_port: None,
                far_port: Some(options.to.port()),
            };
            Capture::open(None, filter)
        };
        let mut opened = |protocol, wanted: bool| {
            let captured = wanted.then(|| open(protocol))?;
            captured
                .map_err(|error| {
                    let note = format!("no times on the wire: {error}");
                    if !notes.contains(&note) {
                        notes.push(note);
                    }
                })
                .ok()
        };
        let tcp = options.protocols.iter().any(|protocol| protocol.is_kernel_tcp());
        let udp = options.protocols.iter().any(|protocol| !protocol.is_kernel_tcp());
        captures.udp = opened(Above::Udp, udp);
        captures.tcp = opened(Above::Tcp, tcp);
        captures
    }

    /// Frames of earlier transactions are nobody's.
    fn discard(&mut self) -> Result<(), Error> {
        for capture in [&mut self.udp, &mut self.tcp].into_iter().flatten() {
            capture.discard()?;
        }
        Ok(())
    }

    fn told(
        &mut self,
        protocol: Protocol,
        size: u32,
        done: std::io::Result<Done>,
        clock: &Clock,
    ) -> Result<Transaction, Error> {
        let mut made = Transaction {
            protocol,
            size,
            application: None,
            wire: None,
            syn_data: false,
            retransmissions: 0,
            error: None,
        };
        match done {
            Err(error) => made.error = Some(error.to_string()),
            Ok(done) => {
                made.application = Some(done.took);
                made.syn_data = done.syn_data;
                made.retransmissions = done.info.map_or(0, |info| info.retransmissions());
                let until = clock.now() + done.took + PATIENCE;
                self.collect(protocol, &done, clock, until)?;
                made.wire = wire::read(&self.frames);
            }
        }
        Ok(made)
    }

    /// Takes the frames of the transaction from this port, until they are all there or the time is up.
    fn collect(
        &mut self,
        protocol: Protocol,
        done: &Done,
        clock: &Clock,
        until: Instant,
    ) -> Result<(), Error> {
        let (is_tcp, port) = (protocol.is_kernel_tcp(), done.near.port());
        self.frames.clear();
        let capture = if is_tcp { &mut self.tcp } else { &mut self.udp };
        let Some(capture) = capture else { return Ok(()) };
        loop {
            capture.take(&mut self.frames)?;
            self.frames.retain(|frame| match frame.packet.ports() {
                Some((source, destination)) => source == port || destination == port,
                // A later fragment of the one datagram that is on its way.
                None => true,
            });
            let whole = match (is_tcp, done.datagrams) {
                (true, _) => wire::is_closed(&self.frames),
                // The reply was read, so that all of it has passed.
                (_, None) => wire::read(&self.frames).is_some(),
                (_, Some((sent, received))) => self.frames.len() >= (sent + received) as usize,
            };
            if whole || clock.now() >= until {
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
    }

    fn dropped(&mut self) -> Result<u64, Error> {
        let mut dropped = 0;
        for capture in [&mut self.udp, &mut self.tcp].into_iter().flatten() {
            dropped += capture.counts()?.dropped;
        }
        Ok(dropped)
    }
}

/// This host's address towards another.
fn near(to: SocketAddr) -> std::io::Result<IpAddr> {
    let any: SocketAddr = match to {
        SocketAddr::V4(_) => ([0; 4], 0).into(),
        SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(to)?;
    Ok(socket.local_addr()?.ip())
}
