//! Sockets of MPTCP: those of TCP in all but the protocol's number.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

/// A socket of MPTCP for addresses like this one.
///
/// # Errors
/// `EPROTONOSUPPORT` where the kernel has no MPTCP, `ENOPROTOOPT` where it is switched off.
pub fn socket(like: SocketAddr) -> io::Result<Socket> {
    Socket::new(Domain::for_address(like), Type::STREAM, Some(Protocol::MPTCP))
}

/// Connects; the first subflow leaves from the address `from`, where one is given. Without an answer it gives up after
/// `patience`.
///
/// # Errors
/// Those of [`socket`], and the network's.
pub fn connect(from: Option<IpAddr>, to: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    let socket = socket(to)?;
    if let Some(from) = from {
        socket.bind(&SocketAddr::new(from, 0).into())?;
    }
    socket.connect_timeout(&to.into(), patience)?;
    Ok(socket.into())
}

/// A listener; peers without MPTCP get plain TCP from it.
///
/// # Errors
/// Those of [`socket`], and the system's.
pub fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket(at)?;
    socket.bind(&at.into())?;
    socket.listen(128)?;
    Ok(socket.into())
}
