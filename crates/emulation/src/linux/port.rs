//! A user-space stack in the place of a host's kernel.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use foundation::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};

/// Bytes that may wait on either side, with the kernel's own for each packet.
const BUFFER: usize = 32 << 20;

/// Where whole IPv4 packets of one host come and go. While it lives, the network delivers to it instead of to the
/// host's kernel.
#[derive(Debug)]
pub struct Port(OwnedFd);

impl Port {
    /// A port, and the emulator's end of it.
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        for end in [&ours, &theirs] {
            // Beyond the limit for everybody where this process may, which decides how much can wait.
            if sockopt::set_socket_send_buffer_size_force(end, BUFFER).is_err() {
                sockopt::set_socket_send_buffer_size(end, BUFFER)?;
            }
        }
        Ok((Self(ours), theirs))
    }

    /// The kernel of a host, by a descriptor of its device that does not block.
    pub(crate) const fn of_device(device: OwnedFd) -> Self {
        Self(device)
    }

    /// Sends a packet into the network: an IPv4 header with its checksum, and a payload.
    ///
    /// # Errors
    /// `WouldBlock` while the emulator is behind, `BrokenPipe` once it has ended.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        write(&self.0, packet)?;
        Ok(())
    }

    /// Writes the next packet that has arrived into `buffer` and gives its length; `None` if there is none now. What does
    /// not fit into the buffer is cut off.
    ///
    /// # Errors
    /// `UnexpectedEof` once the emulator has ended, and the system's.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match read(&self.0, buffer) {
            Ok(0) | Err(Errno::CONNRESET) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => Ok(Some(length)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until a packet has arrived, at most `timeout`.
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

/// To wait for it among others; it does not block.
impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
