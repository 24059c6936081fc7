//! MPTCP sockets.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

/// Creates an MPTCP socket for the address family of `like`.
///
/// # Errors
/// `EPROTONOSUPPORT` if the kernel has no MPTCP, `ENOPROTOOPT` if it is disabled.
pub fn socket(like: SocketAddr) -> io::Result<Socket> {
    Socket::new(Domain::for_address(like), Type::STREAM, Some(Protocol::MPTCP))
}

/// Connects, within `timeout`. The first subflow uses the source address `from`, if given.
///
/// # Errors
/// Those of [`socket`], and the network's.
pub fn connect(from: Option<IpAddr>, to: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    let socket = socket(to)?;
    if let Some(from) = from {
        socket.bind(&SocketAddr::new(from, 0).into())?;
    }
    socket.connect_timeout(&to.into(), timeout)?;
    Ok(socket.into())
}

/// Listens at an address. Clients without MPTCP get plain TCP.
///
/// # Errors
/// Those of [`socket`], and the system's.
pub fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket(at)?;
    socket.bind(&at.into())?;
    socket.listen(128)?;
    Ok(socket.into())
}
