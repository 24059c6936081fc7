//! What can go wrong, in one line each.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use foundation::Duration;

/// Why a transfer, a relay or an endpoint ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address to listen at is not to be had.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The system knows no way to the peer, or refuses to send.
    #[error("cannot send to {address}: {source}")]
    Send {
        /// The peer.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// A datagram is too large for the path.
    #[error("packets are too large for the path to {0}: choose a smaller mss")]
    TooLarge(SocketAddr),
    /// Receiving failed.
    #[error("cannot receive at {address}: {source}")]
    Receive {
        /// Our address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The peer's machine says that the port is closed.
    #[error("nothing listens at {0}")]
    Refused(SocketAddr),
    /// The peer's port was closed while it was talked to.
    #[error("the receiver at {address} has gone: nothing listens there any more, for {silence}")]
    Gone {
        /// The peer.
        address: SocketAddr,
        /// How long ago it was last heard.
        silence: Duration,
    },
    /// The connection failed.
    #[error("{address}: {source}")]
    Connection {
        /// The peer.
        address: SocketAddr,
        /// Why.
        source: transport::arq::Error,
    },
    /// The application gave up.
    #[error("{0}")]
    Abandoned(String),
    /// A file or directory.
    #[error("{}: {reason}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The caller asked for the end.
    #[error("cancelled")]
    Cancelled,
    /// The settings of the protocol are impossible.
    #[error("{0}")]
    Settings(foundation::Problem),
    /// No random numbers from the system.
    #[error("the system gives no random numbers: {0}")]
    Random(String),
}

/// Random bytes from the system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Error::Random(error.to_string()))?;
    Ok(bytes)
}
