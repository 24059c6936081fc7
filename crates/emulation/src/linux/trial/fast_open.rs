//! TCP Fast Open of the kernel (RFC 7413): what its sockets are asked for.

use std::io;
use std::os::fd::AsRawFd;

use socket2::Socket;

/// Connections that a listener answers at a time before their clients have shown that they hear.
const PENDING: libc::c_int = 256;

/// A listener gives cookies and takes the data of SYNs that show one (`TCP_FASTOPEN`).
///
/// # Errors
/// The system's: it is too old, or was built without.
pub(super) fn serve(listener: &Socket) -> io::Result<()> {
    set(listener, libc::TCP_FASTOPEN, PENDING)
}

/// A connection leaves with what is written first, where the kernel has a cookie, else at once (`TCP_FASTOPEN_CONNECT`).
///
/// # Errors
/// As of [`serve`].
pub(super) fn defer(socket: &Socket) -> io::Result<()> {
    set(socket, libc::TCP_FASTOPEN_CONNECT, 1)
}

fn set(socket: &Socket, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the kernel reads as many bytes of `value` as it is told.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if result == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}
