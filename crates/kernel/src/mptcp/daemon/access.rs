//! Users that the path manager's socket serves.

use std::io;
use std::os::unix::net::UnixStream;

use crate::socket_options::read_option;

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
    // SAFETY: the structure consists of integers.
    unsafe { read_option(socket, libc::SOL_SOCKET, libc::SO_PEERCRED, &mut credentials) }?;
    Ok(credentials.uid)
}
