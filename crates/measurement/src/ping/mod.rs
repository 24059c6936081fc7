//! Round trips: a request, and the time until its answer, by the application's clock and by the kernel's stamps.

#[cfg(target_os = "linux")]
mod datagrams;
#[cfg(target_os = "linux")]
mod driver;
#[cfg(target_os = "linux")]
mod icmp;
pub mod plan;
#[cfg(test)]
mod plan_tests;
#[cfg(target_os = "linux")]
mod tcp;

#[cfg(target_os = "linux")]
pub use datagrams::REMEDY;
#[cfg(target_os = "linux")]
pub(crate) use datagrams::fragment;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use foundation::Duration;
use serde::Serialize;

use crate::Stamp;
use kernel::Error;
use plan::{Pace, State};

/// No measurement sends more requests than this.
pub const MOST_REQUESTS: u64 = 1_000_000;
/// The largest payload of a UDP datagram or an echo message over IPv4.
pub const MOST_BYTES: u32 = 65_507;
/// No flood is faster, in requests a second.
pub const MOST_RATE: u32 = 100_000;

/// How it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Echo requests (RFC 792, RFC 4443).
    Icmp,
    /// Datagrams to an echo server of this project, or to a closed port, whose host says so.
    Udp,
    /// New connections: until the SYN is answered, by whatever segment.
    Tcp,
}

/// By what means the system lets us ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// ICMP datagram sockets, which take no privilege (`icmp(7)`).
    IcmpDatagram,
    /// Raw sockets.
    IcmpRaw,
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
}

/// What is asked of whom.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who answers; the port is of UDP and TCP.
    pub to: SocketAddr,
    /// How it is asked.
    pub protocol: Protocol,
    /// Bytes of payload, each of them in every round. TCP takes none: the one size 0.
    pub sizes: Vec<u32>,
    /// Rounds.
    pub count: u32,
    /// How requests follow each other.
    pub pace: Pace,
    /// How many may be unanswered at a time.
    pub window: u32,
    /// What is not answered for so long is lost.
    pub timeout: Duration,
    /// Whether packets must not be fragmented (RFC 791: the bit DF), here or on their way.
    pub whole: bool,
    /// Whether to wait awake, so that no time passes until the thread runs again.
    pub spin: bool,
}

impl Options {
    /// # Errors
    /// [`Error::Option`] about what cannot be, in a line.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |what: String| Err(Error::Option(what));
        if self.sizes.is_empty() || self.count == 0 {
            return wrong("there is nothing to send: at least one size and one round".into());
        }
        let total = self.sizes.len() as u64 * u64::from(self.count);
        if total > MOST_REQUESTS {
            return wrong(format!("{total} requests are too many: at most {MOST_REQUESTS}"));
        }
        if let Some(size) = self.sizes.iter().find(|&&size| size > MOST_BYTES) {
            return wrong(format!("size {size} is too large: at most {MOST_BYTES} bytes"));
        }
        let least = crate::echo::message::HEADER as u32;
        match self.protocol {
            Protocol::Udp => {
                if let Some(size) = self.sizes.iter().find(|&&size| size < least) {
                    return wrong(format!(
                        "size {size} is too small for UDP: the header by which echo servers know requests takes {least} bytes"
                    ));
                }
            }
            Protocol::Tcp if self.sizes != [0] => {
                return wrong(
                    "TCP has no sizes: a connection's SYN carries no data; longfat transact takes sizes"
                        .into(),
                );
            }
            _ => {}
        }
        if let Pace::Flood { least, .. } = self.pace
            && least < Duration::from_secs(1) / u64::from(MOST_RATE)
        {
            return wrong(format!("a flood is no faster than {MOST_RATE} requests a second"));
        }
        match self.timeout.is_zero() {
            true => wrong("the timeout must be longer than nothing".into()),
            false => Ok(()),
        }
    }
}

/// What an answer was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The reply that was asked for, or the SYN that answers a SYN.
    Reply,
    /// A host's word that the port is closed: ICMP's port unreachable, or a RST.
    Closed,
}

/// What became of one request. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Bytes of its payload.
    pub size: u32,
    /// When the application sent it.
    pub sent: Stamp,
    /// From before the call that sends until after the one that gives the answer: the application's round trip.
    pub application: Option<Duration>,
    /// From the request's stamp on its way to the driver to the answer's stamp on its way from there; of TCP, the
    /// kernel's own round trip of the SYN, in microseconds.
    pub kernel: Option<Duration>,
    /// From the application's call to the first of these stamps.
    pub outbound: Option<Duration>,
    /// From the second one to the application.
    pub inbound: Option<Duration>,
    /// What became of it.
    pub state: State,
    /// What answered.
    pub answer: Option<Answer>,
    /// Answers after the first.
    pub duplicates: u16,
    /// The system's number of the error where it failed.
    pub error: Option<i32>,
    /// When the request left, until both stamps are there.
    pub(crate) left: Option<Stamp>,
    /// When the answer came.
    pub(crate) came: Option<Stamp>,
    /// When the application had it, on the same clock.
    pub(crate) read: Option<Stamp>,
}

impl Sample {
    #[cfg(target_os = "linux")]
    const fn new(size: u32, sent: Stamp) -> Self {
        Self {
            size,
            sent,
            application: None,
            kernel: None,
            outbound: None,
            inbound: None,
            state: State::Waiting,
            answer: None,
            duplicates: 0,
            error: None,
            left: None,
            came: None,
            read: None,
        }
    }

    /// Makes spans of the stamps. The kernel's span lies within the application's, unless the clock was set in between:
    /// then there is none.
    #[cfg(target_os = "linux")]
    fn settle(&mut self) {
        let (Some(left), Some(came), Some(application)) = (self.left, self.came, self.application) else {
            return;
        };
        let kernel = came.since(left);
        if left >= self.sent && came >= left && kernel <= application {
            self.kernel = Some(kernel);
            self.outbound = Some(left.since(self.sent));
            self.inbound = self.read.map(|read| read.since(came));
        }
    }
}

/// What a measurement found.
#[derive(Clone, Debug)]
pub struct Report {
    /// By what means.
    pub method: Method,
    /// Each request, in the order of sending; after an interruption without those that were still waited for.
    pub samples: Vec<Sample>,
    /// Answers that belonged to no request.
    pub strangers: u64,
    /// How long it took.
    pub took: Duration,
    /// Why the method is not the one that takes no privilege, with its remedy.
    pub note: Option<String>,
}

/// What is known while it goes on.
#[derive(Debug, Default)]
pub struct Progress {
    /// Requests sent.
    pub sent: AtomicU32,
    /// Requests answered in time.
    pub answered: AtomicU32,
    /// The last round trip by the application's clock, in nanoseconds.
    pub last: AtomicU64,
    /// Bytes of the payload that it had.
    pub size: AtomicU32,
    /// Set by who wants it to end.
    pub stop: AtomicBool,
}

impl Progress {
    /// Whether it shall end.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Makes it end soon.
    pub fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Asks and waits for answers until all is done or [`Progress::end`] was called. It keeps its thread.
///
/// # Errors
/// What cannot be asked, what the process may not do with its remedy, and what the system says.
#[cfg(target_os = "linux")]
pub fn ping(options: &Options, progress: &Progress) -> Result<Report, Error> {
    options.check()?;
    match options.protocol {
        Protocol::Tcp => tcp::run(options, progress),
        Protocol::Icmp | Protocol::Udp => driver::run(options, progress),
    }
}

/// Not here.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn ping(options: &Options, _: &Progress) -> Result<Report, Error> {
    options.check()?;
    Err(Error::Unsupported("longfat ping"))
}
