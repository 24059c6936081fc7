//! The operating system's end of a connection.

use std::io;

/// A nonblocking byte stream. Dropping it closes it in order: bytes already written arrive.
pub trait Socket {
    /// Reads bytes; 0 at the end of the peer's stream.
    ///
    /// # Errors
    /// `WouldBlock` if nothing has arrived; any other error is a reset.
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize>;

    /// Writes bytes; returns how many.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; any other error is a reset.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Ends the stream to the peer (half-close).
    fn finish(&mut self);

    /// Closes the connection with a reset.
    fn reset(self);
}

impl Socket for std::net::TcpStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        io::Read::read(self, out)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::Write::write(self, bytes)
    }

    fn finish(&mut self) {
        // It fails only if the peer has reset the connection, which the next read reports.
        let _ = self.shutdown(std::net::Shutdown::Write);
    }

    fn reset(self) {
        // Without this option the close would be in order (SO_LINGER of socket(7)).
        let _ = socket2::SockRef::from(&self).set_linger(Some(std::time::Duration::ZERO));
    }
}
