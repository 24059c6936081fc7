//! Standard input.

use std::io;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Reads until `buffer` is full, standard input has ended, or no byte is waiting after the first. Returns the number of
/// bytes; 0 at the end.
///
/// # Errors
/// The system's.
pub fn read(buffer: &mut [u8]) -> io::Result<usize> {
    let input = io::stdin();
    let mut filled = 0;
    while filled < buffer.len() && (filled == 0 || is_ready(&input)) {
        match rustix::io::read(&input, &mut buffer[filled..]) {
            Ok(0) => break,
            Ok(length) => filled += length,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(filled)
}

/// Whether a read does not wait.
fn is_ready(input: &io::Stdin) -> bool {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut [PollFd::new(input, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}
