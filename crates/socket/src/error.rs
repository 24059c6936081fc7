//! Errors, each with a one-line message.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use foundation::Duration;

/// Why a transfer, a relay or an endpoint stopped early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address to listen at is not available.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// There is no route to the peer, or the system refuses to send.
    #[error("cannot send to {address}: {source}")]
    Send {
        /// The peer.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// A datagram is too large for the path.
    #[error("packets are too large for the path to {0}: choose a smaller mss")]
    TooLarge(SocketAddr),
    /// Receiving failed.
    #[error("cannot receive at {address}: {source}")]
    Receive {
        /// The local address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The peer's host reports that the port is closed.
    #[error("nothing listens at {0}: start longfat recv there")]
    Refused(SocketAddr),
    /// The peer's port was closed during the connection.
    #[error("the receiver at {address} is gone: its port has been closed for {:.1} s", silence.as_secs_f64())]
    Gone {
        /// The peer.
        address: SocketAddr,
        /// Time since its last datagram.
        silence: Duration,
    },
    /// The connection failed.
    #[error("{address}: {source}")]
    Connection {
        /// The peer.
        address: SocketAddr,
        /// The reason.
        source: transport::arq::Error,
    },
    /// The peer answers that it does not know the connection.
    #[error("the receiver at {address} does not know this connection: it was restarted")]
    Restarted {
        /// The peer.
        address: SocketAddr,
    },
    /// The QUIC connection failed, for this reason.
    #[error("{address}: {reason}")]
    Quic {
        /// The peer.
        address: SocketAddr,
        /// The reason.
        reason: String,
    },
    /// No certificates or keys of TLS can be made.
    #[error("TLS: {0}")]
    Tls(String),
    /// The peers did not authenticate each other.
    #[error("{address}: {source}")]
    Handshake {
        /// The peer.
        address: SocketAddr,
        /// The reason.
        source: security::HandshakeError,
    },
    /// The application gave up, for this reason.
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
    /// The caller stopped it.
    #[error("cancelled")]
    Cancelled,
    /// Invalid settings of the protocol.
    #[error("{0}")]
    Settings(foundation::Problem),
    /// The system provides no random numbers.
    #[error("the system provides no random numbers: {0}")]
    Random(String),
}

/// Returns random bytes from the system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Error::Random(error.to_string()))?;
    Ok(bytes)
}
