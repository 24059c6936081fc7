//! Round-trip times of requests and replies, by the application's clock and by the kernel's stamps.

mod datagrams;
mod driver;
mod icmp;
pub mod plan;
#[cfg(test)]
mod plan_tests;
mod tcp;

pub use datagrams::REMEDY;
pub(crate) use datagrams::fragment;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use foundation::Duration;
use rustix::net::Shutdown;
use serde::{Deserialize, Serialize};

use crate::Stamp;
use kernel::Error;
use plan::{Pace, Schedule, State};

/// Maximum number of requests of a measurement.
pub const MOST_REQUESTS: u64 = 1_000_000;
/// Largest payload of a UDP datagram or an echo message over IPv4, in bytes.
pub const MOST_BYTES: u32 = 65_507;
/// Maximum rate of a flood, in requests per second.
pub const MOST_RATE: u32 = 100_000;

/// Type of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Echo requests (RFC 792, RFC 4443).
    Icmp,
    /// Datagrams to `longfat echo`, or to a closed port, which the host reports.
    Udp,
    /// New connections: from the SYN to any reply.
    Tcp,
}

/// Type of the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// ICMP datagram sockets, which need no privilege (`icmp(7)`).
    IcmpDatagram,
    /// Raw sockets.
    IcmpRaw,
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
}

/// Options of a measurement.
#[derive(Clone, Debug)]
pub struct Options {
    /// The destination; ICMP ignores the port.
    pub to: SocketAddr,
    /// Type of the requests.
    pub protocol: Protocol,
    /// Sizes, rounds and times. For TCP, which sends one request at a time, exactly one size, 0.
    pub schedule: Schedule,
    /// Whether to forbid fragmentation (RFC 791: the bit DF), here and on the path.
    pub whole: bool,
    /// Whether to wait by spinning, so that no wake-up time is measured.
    pub spin: bool,
}

impl Options {
    /// # Errors
    /// [`Error::Option`] with the first invalid option.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |what: String| Err(Error::Option(what));
        let (sizes, count) = (&self.schedule.sizes, self.schedule.count);
        if sizes.is_empty() || count == 0 {
            return wrong("nothing to send: give at least one size and one round".into());
        }
        let total = sizes.len() as u64 * u64::from(count);
        if total > MOST_REQUESTS {
            return wrong(format!("{total} requests are too many: at most {MOST_REQUESTS}"));
        }
        if let Some(size) = sizes.iter().find(|&&size| size > MOST_BYTES) {
            return wrong(format!("size {size} is too large: at most {MOST_BYTES} bytes"));
        }
        let least = crate::datagram::HEADER as u32;
        match self.protocol {
            Protocol::Udp => {
                if let Some(size) = sizes.iter().find(|&&size| size < least) {
                    return wrong(format!(
                        "size {size} is too small for UDP: at least {least} bytes, the header of requests"
                    ));
                }
            }
            Protocol::Tcp if *sizes != [0] => {
                return wrong("TCP has no sizes, because a SYN carries no data: use longfat transact".into());
            }
            _ => {}
        }
        if let Pace::Flood { least, .. } = self.schedule.pace
            && least < Duration::from_secs(1) / u64::from(MOST_RATE)
        {
            return wrong(format!("a flood has at most {MOST_RATE} requests per second"));
        }
        match self.schedule.timeout.is_zero() {
            true => wrong("the timeout must be positive".into()),
            false => Ok(()),
        }
    }
}

/// Type of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The expected reply, or a SYN-ACK.
    Reply,
    /// The port is closed: ICMP port unreachable, or a RST.
    Closed,
}

/// Result of one request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Payload size in bytes.
    pub size: u32,
    /// When the application sent it.
    pub sent: Stamp,
    /// The application's round trip: from before the sending call to after the receiving call.
    pub application: Option<Duration>,
    /// Round trip by kernel stamps, from the request's way to the driver to the reply's way from the driver; for TCP,
    /// the kernel's RTT of the SYN, in microseconds.
    pub kernel: Option<Duration>,
    /// From the application's call to the request's stamp.
    pub outbound: Option<Duration>,
    /// From the reply's stamp to the application.
    pub inbound: Option<Duration>,
    /// State of the request.
    pub state: State,
    /// Type of the answer.
    pub answer: Option<Answer>,
    /// Answers after the first.
    pub duplicates: u16,
    /// The error number if it failed.
    pub error: Option<i32>,
    /// The request's stamp.
    pub(crate) left: Option<Stamp>,
    /// The reply's stamp.
    pub(crate) arrived: Option<Stamp>,
    /// When the application received the reply, on the stamps' clock.
    pub(crate) read: Option<Stamp>,
}

impl Sample {
    fn new(size: u32, sent: Stamp) -> Self {
        Self {
            size,
            sent,
            ..Self::default()
        }
    }

    /// Computes spans from the stamps. The kernel's span must lie within the application's; if the clock was set in
    /// between, it is dropped.
    fn compute_spans(&mut self) {
        let (Some(left), Some(arrived), Some(application)) = (self.left, self.arrived, self.application)
        else {
            return;
        };
        let kernel = arrived.since(left);
        if left >= self.sent && arrived >= left && kernel <= application {
            self.kernel = Some(kernel);
            self.outbound = Some(left.since(self.sent));
            self.inbound = self.read.map(|read| read.since(arrived));
        }
    }
}

/// Result of a measurement.
#[derive(Clone, Debug)]
pub struct Report {
    /// Type of the socket.
    pub method: Method,
    /// Each request in sending order; after an interruption without unanswered ones.
    pub samples: Vec<Sample>,
    /// Answers that belong to no request.
    pub strangers: u64,
    /// Total duration.
    pub took: Duration,
    /// Why a privileged socket was used, with the remedy.
    pub note: Option<String>,
}

/// Live counters of a measurement.
#[derive(Debug, Default)]
pub struct Progress {
    /// Requests sent.
    pub sent: AtomicU32,
    /// Requests answered in time.
    pub answered: AtomicU32,
    /// The last round trip by the application's clock, in nanoseconds.
    pub last: AtomicU64,
    /// Payload size of that request, in bytes.
    pub size: AtomicU32,
    stop: AtomicBool,
    /// A socket in which the measurement may be blocked.
    blocked: Mutex<Option<OwnedFd>>,
}

impl Progress {
    /// Whether to stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Stops the measurement soon.
    pub fn end(&self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(socket) = &*self.socket() {
            // It may be connected no longer.
            let _ = rustix::net::shutdown(socket, Shutdown::Both);
        }
    }

    /// Runs calls that block in a socket. [`end`](Self::end) shuts it down, so that they return.
    pub(crate) fn blocking<T>(
        &self,
        socket: BorrowedFd<'_>,
        calls: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        *self.socket() = Some(socket.try_clone_to_owned()?);
        let result = if self.is_stopped() {
            Err(io::ErrorKind::Interrupted.into())
        } else {
            calls()
        };
        *self.socket() = None;
        result
    }

    fn socket(&self) -> MutexGuard<'_, Option<OwnedFd>> {
        self.blocked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends requests and waits for replies, until all are done or [`Progress::end`] is called. Occupies its thread.
///
/// # Errors
/// Invalid options, missing privileges with their remedy, and errors of the system.
pub fn ping(options: &Options, progress: &Progress) -> Result<Report, Error> {
    options.check()?;
    match options.protocol {
        Protocol::Tcp => tcp::run(options, progress),
        Protocol::Icmp | Protocol::Udp => driver::run(options, progress),
    }
}
