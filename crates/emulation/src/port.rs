//! The port of a user-space stack that replaces or complements a host's kernel.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use foundation::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};

/// Socket buffer in bytes for either direction, including the kernel's overhead for each packet.
const BUFFER: usize = 32 << 20;

/// Sends and receives a host's IPv4 packets. While it exists, the network delivers to it instead of to the host's
/// kernel.
#[derive(Debug)]
pub struct Port(OwnedFd);

impl Port {
    /// A port and the emulator's end of it.
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        for end in [&ours, &theirs] {
            // A privileged process may exceed the system's limit.
            if sockopt::set_socket_send_buffer_size_force(end, BUFFER).is_err() {
                sockopt::set_socket_send_buffer_size(end, BUFFER)?;
            }
        }
        Ok((Self(ours), theirs))
    }

    /// Sends a packet into the network: an IPv4 header with its checksum, and a payload.
    ///
    /// # Errors
    /// `WouldBlock` while the emulator is behind, `BrokenPipe` once it has stopped.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        write(&self.0, packet)?;
        Ok(())
    }

    /// Reads the next packet into `buffer` and returns its length; `None` if there is none. Longer packets are
    /// truncated.
    ///
    /// # Errors
    /// `UnexpectedEof` once the emulator has stopped, and the system's.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match read(&self.0, buffer) {
            Ok(0) | Err(Errno::CONNRESET) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => Ok(Some(length)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for a packet, at most `timeout`; returns whether there is one.
    ///
    /// # Errors
    /// The system's.
    pub fn wait(&self, timeout: Duration) -> io::Result<bool> {
        let timeout = Timespec {
            tv_sec: (timeout.as_nanos() / 1_000_000_000) as _,
            tv_nsec: (timeout.as_nanos() % 1_000_000_000) as _,
        };
        match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// For `poll(2)`; reads do not block.
impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
