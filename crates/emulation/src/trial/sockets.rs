//! The kernel's TCP and MPTCP sockets, with a study's settings.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use kernel::set_option;
use rustix::event::PollFlags;
use socket2::{Domain, Protocol, Socket, Type};

use super::kernel_tcp::KernelTcp;
use super::waiting::{INTERVAL, wait_for};

/// Timeout of a connection: that of Linux after six retransmissions of the SYN.
const CONNECT: Duration = Duration::from_secs(127);
/// Fast Open connections that a listener accepts before their handshakes finish.
const PENDING: libc::c_int = 256;

/// Creates a socket in the namespace of the calling thread.
fn socket(kernel: &KernelTcp) -> io::Result<Socket> {
    let protocol = match kernel.multipath {
        None => Protocol::TCP,
        Some(_) => Protocol::MPTCP,
    };
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol))?;
    // Setting an unlisted controller could make the kernel load a module, which would stay.
    let name = &kernel.congestion;
    if !is_listed(name) {
        return Err(io::Error::other(no_controller(name)));
    }
    socket.set_tcp_congestion(name.as_bytes())?;
    socket.set_tcp_nodelay(kernel.no_delay)?;
    if kernel.segment > 0 {
        socket.set_tcp_mss(kernel.segment)?;
    }
    Ok(socket)
}

/// Listens at any port of an address.
pub(super) fn listen(kernel: &KernelTcp, at: Ipv4Addr) -> io::Result<TcpListener> {
    let socket = socket(kernel)?;
    socket.bind(&SocketAddr::from((at, 0)).into())?;
    if kernel.fast_open {
        // Hand out cookies and accept data on SYNs (RFC 7413).
        set_option(&socket, libc::IPPROTO_TCP, libc::TCP_FASTOPEN, PENDING)?;
    }
    socket.listen(8)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Connects, from the address `from` if given.
pub(super) fn connect(kernel: &KernelTcp, from: Option<Ipv4Addr>, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = socket(kernel)?;
    if let Some(from) = from {
        socket.bind(&SocketAddr::from((from, 0)).into())?;
    }
    if kernel.fast_open {
        // With a cookie, the SYN waits for the first write and carries it.
        set_option(&socket, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, 1)?;
    }
    socket.connect_timeout(&to.into(), CONNECT)?;
    let socket = socket.into();
    set_timeouts(&socket)?;
    Ok(socket)
}

/// Accepts a connection within one polling interval.
pub(super) fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    wait_for(listener, PollFlags::IN)?;
    let (socket, _) = listener.accept()?;
    socket.set_nonblocking(false)?;
    set_timeouts(&socket)?;
    Ok(socket)
}

fn set_timeouts(socket: &TcpStream) -> io::Result<()> {
    socket.set_read_timeout(Some(INTERVAL))?;
    socket.set_write_timeout(Some(INTERVAL))
}

/// The error for a congestion controller that the kernel does not offer.
pub(super) fn no_controller(name: &str) -> String {
    format!("the kernel has no congestion controller {name:?}")
}

/// Whether the kernel offers a congestion controller.
pub(super) fn is_listed(name: &str) -> bool {
    let all = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    all.is_ok_and(|all| all.split_whitespace().any(|one| one == name))
}
