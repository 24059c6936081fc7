//! Users that the path manager's socket serves.

use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// Whether the peer process belongs to root or to this process's user. Any user in the network namespace can connect to
/// an abstract socket.
pub(super) fn is_allowed(socket: &UnixStream) -> bool {
    peer_user(socket).is_ok_and(|user| user == 0 || user == own_user())
}

/// The error for other users.
pub(super) fn refusal() -> String {
    match own_user() {
        0 => "the path manager here serves root only".into(),
        user => format!("the path manager here serves root and user {user} only"),
    }
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The effective user of the peer process at its `connect(2)` (`SO_PEERCRED`, `unix(7)`).
///
/// `rustix` cannot represent the process ID 0, which the kernel reports for a peer in another process-ID namespace.
fn peer_user(socket: &UnixStream) -> io::Result<u32> {
    let mut credentials = libc::ucred {
        pid: 0,
        uid: libc::uid_t::MAX,
        gid: libc::gid_t::MAX,
    };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into the structure.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut length,
        )
    };
    if result == 0 {
        Ok(credentials.uid)
    } else {
        Err(io::Error::last_os_error())
    }
}
