//! Socket options without a safe wrapper.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

fn result(returned: libc::c_int) -> io::Result<()> {
    match returned {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets an integer option.
///
/// # Errors
/// The error of `setsockopt(2)`.
pub fn set_option(socket: impl AsFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    let (socket, length) = (socket.as_fd().as_raw_fd(), size_of::<i32>() as libc::socklen_t);
    // SAFETY: the pointer is to an i32 that outlives the call, and its length is correct.
    result(unsafe { libc::setsockopt(socket, level, name, (&raw const value).cast(), length) })
}

/// Reads an option that is a structure. An older kernel writes only its start; the rest keeps its value.
///
/// # Errors
/// The error of `getsockopt(2)`.
///
/// # Safety
/// Every byte pattern is a value of `T`, and pointers in it lead to arrays of the lengths that it states.
pub unsafe fn read_option<T>(socket: impl AsFd, level: i32, name: i32, value: &mut T) -> io::Result<()> {
    let (socket, mut length) = (socket.as_fd().as_raw_fd(), size_of::<T>() as libc::socklen_t);
    // SAFETY: the descriptor is open, and the kernel writes at most `length` bytes into `value`.
    result(unsafe {
        libc::getsockopt(
            socket,
            level,
            name,
            std::ptr::from_mut(value).cast(),
            &raw mut length,
        )
    })
}
