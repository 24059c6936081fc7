//! Transactions: one request, one reply of the same size, as the application sees them and as the wire saw them.
//!
//! The application's time begins before the first call that sends anything (`connect`, or the `sendto` that carries data)
//! and ends when the last byte of the reply has been read: of a connection, its end as well. The wire's time is from the
//! first frame of the request's sender to the last frame that the reply's sender needs for its data and its end (of TCP,
//! its FIN). What the application sees beyond that is the time in the protocol stack of this host.

#[cfg(target_os = "linux")]
mod driver;
#[cfg(target_os = "linux")]
mod sockets;
pub mod wire;

use std::net::SocketAddr;

use foundation::Duration;
use serde::Serialize;

#[cfg(target_os = "linux")]
pub use driver::transact;
use kernel::Error;
use wire::Wire;

/// No measurement has more transactions than this.
pub const MOST: u64 = 100_000;

/// How a transaction is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// One datagram each way.
    Udp,
    /// A connection of its own: connect, request and end, reply and end.
    Tcp,
    /// The same with the request on the SYN (RFC 7413).
    Tfo,
    /// TCP in user space at both ends, its packets in datagrams.
    TcpUser,
    /// T/TCP (RFC 1644) likewise.
    Ttcp,
}

impl Protocol {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 5] = [Self::Udp, Self::Tcp, Self::Tfo, Self::TcpUser, Self::Ttcp];

    /// As people write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Tfo => "tfo",
            Self::TcpUser => "tcp-user",
            Self::Ttcp => "ttcp",
        }
    }

    /// Whether the kernel's TCP carries it.
    #[must_use]
    pub const fn is_kernel_tcp(self) -> bool {
        matches!(self, Self::Tcp | Self::Tfo)
    }
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Options {
    /// The echo server.
    pub to: SocketAddr,
    /// Each of them in every round.
    pub protocols: Vec<Protocol>,
    /// Bytes of request and reply, each of them in every round.
    pub sizes: Vec<u32>,
    /// Rounds.
    pub count: u32,
    /// The least time from the beginning of one transaction to that of the next.
    pub interval: Duration,
    /// What takes longer has failed.
    pub timeout: Duration,
}

impl Options {
    /// # Errors
    /// [`Error::Option`] about what cannot be, in a line.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |what: String| Err(Error::Option(what));
        let total = self.protocols.len() as u64 * self.sizes.len() as u64 * u64::from(self.count);
        if total == 0 {
            return wrong("there is nothing to do: at least one protocol, one size and one round".into());
        }
        if total > MOST {
            return wrong(format!("{total} transactions are too many: at most {MOST}"));
        }
        for (&protocol, &size) in self
            .protocols
            .iter()
            .flat_map(|protocol| self.sizes.iter().map(move |size| (protocol, size)))
        {
            let (least, most) = match protocol {
                Protocol::Udp => (crate::echo::message::HEADER as u32, crate::ping::MOST_BYTES),
                _ => (1, 65_536),
            };
            if !(least..=most).contains(&size) {
                return wrong(format!(
                    "size {size} is out of range for {}: {least} to {most} bytes",
                    protocol.name()
                ));
            }
        }
        match self.timeout.is_zero() {
            true => wrong("the timeout must be longer than nothing".into()),
            false => Ok(()),
        }
    }
}

/// One transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// How it was carried.
    pub protocol: Protocol,
    /// Bytes of request and of reply.
    pub size: u32,
    /// As the application saw it; `None` where it failed.
    pub application: Option<Duration>,
    /// As the wire saw it; `None` without the right to look, or where frames are missing.
    pub wire: Option<Wire>,
    /// Whether the request's data were acknowledged with the SYN.
    pub syn_data: bool,
    /// Segments that this host sent again.
    pub retransmissions: u32,
    /// Why it failed.
    pub error: Option<String>,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Report {
    /// All transactions, in order.
    pub transactions: Vec<Transaction>,
    /// What was missing, each with its remedy.
    pub notes: Vec<String>,
    /// Frames that the kernel dropped before they could be counted.
    pub dropped: u64,
}

/// Not here.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn transact(options: &Options, _: &crate::ping::Progress) -> Result<Report, Error> {
    options.check()?;
    Err(Error::Unsupported("longfat transact"))
}
