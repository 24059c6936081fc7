//! Sequential transactions, with a capture if permitted.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering::Relaxed;

use foundation::{Duration, Instant};
use socket::clock::Clock;
use socket::wait::sharpen_timers;

use super::sockets::{Exchange, Transactor};
use super::{Options, Protocol, Report, Transaction, wire};
use crate::capture::{Capture, Filter, Frame, Protocol as Above};
use crate::ping::Progress;
use crate::rights;
use kernel::Error;

/// How long to wait for the last frames of a transaction, in addition to its own duration.
const TIMEOUT: Duration = Duration::from_millis(50);

/// The captures of one measurement, if permitted.
struct Captures {
    udp: Option<Capture>,
    tcp: Option<Capture>,
    frames: Vec<Frame>,
}

/// Runs all transactions, or until [`Progress::end`] is called. Occupies its thread.
///
/// # Errors
/// Invalid options, a missing server, and errors of the system. Later failures are part of their transaction's result.
pub fn transact(options: &Options, progress: &Progress) -> Result<Report, Error> {
    options.check()?;
    sharpen_timers();
    let largest = options.sizes.iter().copied().max().unwrap_or(0);
    let mut transactor = Transactor::new(options.to, largest, options.timeout, progress);
    let present = |first: std::io::Result<Exchange>| match first {
        Err(error) if !progress.is_stopped() => Err(unreachable(options.to, error)),
        _ => Ok(()),
    };
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
        present(first)?;
    }
    if options.protocols.contains(&Protocol::Ttcp) {
        // The first connection fills the caches of both ends (RFC 1644, section 3.2).
        let first = transactor.run(Protocol::Ttcp, options.sizes[0]);
        present(first)?;
    }
    let mut captures = Captures::open(options, &mut notes);
    let (clock, mut transactions) = (Clock::new(), Vec::new());
    let mut due = clock.now();
    'rounds: for _ in 0..options.count {
        for &size in &options.sizes {
            for &protocol in &options.protocols {
                while !progress.is_stopped() && clock.now() < due {
                    std::thread::sleep((due - clock.now()).min(TIMEOUT).into());
                }
                if progress.is_stopped() {
                    break 'rounds;
                }
                due = clock.now() + options.interval;
                captures.discard()?;
                progress.sent.fetch_add(1, Relaxed);
                let done = transactor.run(protocol, size);
                if done.is_err() && progress.is_stopped() {
                    break 'rounds;
                }
                if transactions.is_empty()
                    && let Err(error) = done
                {
                    return Err(unreachable(options.to, error));
                }
                let made = captures.record(protocol, size, done, &clock)?;
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
    let attempts = transactions.iter().filter(fast).count();
    if opened < attempts {
        notes.push(format!(
            "{} of {attempts} TFO requests carried no data on the SYN: the server's host must have \
             net.ipv4.tcp_fastopen=3, and some networks drop such SYNs",
            attempts - opened
        ));
    }
    Ok(Report {
        transactions,
        notes,
        dropped: captures.dropped()?,
    })
}

/// The first transaction shows whether a server is present.
fn unreachable(to: SocketAddr, error: std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::ConnectionRefused => Error::Missing {
            what: format!("an echo server at {to}"),
            remedy: "its port is closed: start longfat echo on that host".into(),
        },
        ErrorKind::TimedOut => Error::Missing {
            what: format!("an answer of {to}"),
            remedy: "start longfat echo on that host, and check that no firewall is in between".into(),
        },
        _ => Error::system(format!("run a transaction with {to}"), error),
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
                notes.push(format!("no capture: no route to {}: {error}", options.to.ip()));
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
                    let note = format!("no wire times: {error}");
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

    /// Discards frames of earlier transactions.
    fn discard(&mut self) -> Result<(), Error> {
        for capture in [&mut self.udp, &mut self.tcp].into_iter().flatten() {
            capture.discard()?;
        }
        Ok(())
    }

    fn record(
        &mut self,
        protocol: Protocol,
        size: u32,
        done: std::io::Result<Exchange>,
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
                let until = clock.now() + done.took + TIMEOUT;
                self.collect(protocol, &done, clock, until)?;
                made.wire = wire::read(&self.frames);
            }
        }
        Ok(made)
    }

    /// Collects the frames of the transaction from this port, until they are complete or the time is up.
    fn collect(
        &mut self,
        protocol: Protocol,
        done: &Exchange,
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
                // A later fragment of the datagram in flight.
                None => true,
            });
            let whole = match (is_tcp, done.datagrams) {
                (true, _) => wire::is_closed(&self.frames),
                // The reply was read completely, so all of its frames have passed.
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

/// Returns this host's address towards another host.
fn near(to: SocketAddr) -> std::io::Result<IpAddr> {
    let any: SocketAddr = match to {
        SocketAddr::V4(_) => ([0; 4], 0).into(),
        SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(to)?;
    Ok(socket.local_addr()?.ip())
}
