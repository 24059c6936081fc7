//! Transactions: one request, and one reply of the same size, timed by the application and on the wire.
//!
//! The application's time is from the first call that sends anything (`connect`, or the `sendto` with the data) to the
//! last byte of the reply, for a connection including its end. The wire's time is from the first frame of the client
//! to the last frame that the server needs for its data and its end (for TCP, its FIN). The difference is the time in
//! this host's protocol stack.

mod driver;
mod sockets;
pub mod wire;

use std::net::SocketAddr;

use foundation::Duration;
use serde::{Deserialize, Serialize};

pub use driver::transact;
use kernel::Error;
use wire::Wire;

/// Maximum number of transactions of a measurement.
pub const MOST: u64 = 100_000;

/// Transport of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// One datagram each way.
    Udp,
    /// A new connection: connect, request and end, reply and end.
    Tcp,
    /// As TCP, with the request on the SYN (RFC 7413).
    Tfo,
    /// User-space TCP at both ends, with its packets in datagrams.
    TcpUser,
    /// User-space T/TCP (RFC 1644), likewise.
    Ttcp,
}

impl Protocol {
    /// All protocols in display order.
    pub const ALL: [Self; 5] = [Self::Udp, Self::Tcp, Self::Tfo, Self::TcpUser, Self::Ttcp];

    /// Returns the name for users.
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

    /// Whether the kernel's TCP is used.
    #[must_use]
    pub const fn is_kernel_tcp(self) -> bool {
        matches!(self, Self::Tcp | Self::Tfo)
    }
}

/// Options of a measurement.
#[derive(Clone, Debug)]
pub struct Options {
    /// The echo server.
    pub to: SocketAddr,
    /// Protocols; each round uses all of them.
    pub protocols: Vec<Protocol>,
    /// Request and reply sizes in bytes; each round uses all of them.
    pub sizes: Vec<u32>,
    /// Rounds.
    pub count: u32,
    /// Minimum time between the starts of two transactions.
    pub interval: Duration,
    /// A longer transaction has failed.
    pub timeout: Duration,
}

impl Options {
    /// # Errors
    /// [`Error::Option`] with the first invalid option.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |what: String| Err(Error::Option(what));
        let total = self.protocols.len() as u64 * self.sizes.len() as u64 * u64::from(self.count);
        if total == 0 {
            return wrong("nothing to do: give at least one protocol, one size and one round".into());
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
                Protocol::Udp => (crate::datagram::HEADER as u32, crate::ping::MOST_BYTES),
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
            true => wrong("the timeout must be positive".into()),
            false => Ok(()),
        }
    }
}

/// One transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its transport.
    pub protocol: Protocol,
    /// Size of request and reply in bytes.
    pub size: u32,
    /// The application's time; `None` if it failed.
    pub application: Option<Duration>,
    /// The wire's view; `None` without the privilege to capture, or if frames are missing.
    pub wire: Option<Wire>,
    /// Whether the request's data was acknowledged with the SYN.
    pub syn_data: bool,
    /// Segments that this host retransmitted.
    pub retransmissions: u32,
    /// Why it failed.
    pub error: Option<String>,
}

/// Result of a measurement.
#[derive(Clone, Debug)]
pub struct Report {
    /// All transactions in order.
    pub transactions: Vec<Transaction>,
    /// What was unavailable, each with its remedy.
    pub notes: Vec<String>,
    /// Frames that the kernel dropped before they were counted.
    pub dropped: u64,
}
