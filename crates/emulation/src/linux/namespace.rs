//! Network namespaces, held by file descriptors alone: when the last one is closed, however that comes about, the
//! namespace is gone with all that is in it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::error::{Error, system_error};

/// A network namespace.
#[derive(Debug)]
pub struct Namespace(OwnedFd);

impl Namespace {
    /// A new one, empty but for a loopback device that is down.
    ///
    /// # Errors
    /// [`Error::Permission`] without `CAP_SYS_ADMIN`, and the system's.
    pub fn create() -> Result<Self, Error> {
        let made = in_thread(|| {
            // SAFETY: a network namespace is no file table: no other thread loses a descriptor.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            current()
        });
        Ok(Self(made.map_err(|error| {
            system_error("make a network namespace", error)
        })?))
    }

    /// The one that the calling thread is in.
    ///
    /// # Errors
    /// The system's, where `/proc` is not mounted.
    pub fn current() -> Result<Self, Error> {
        let current = current().map_err(|error| system_error("open /proc/thread-self/ns/net", error))?;
        Ok(Self(current))
    }

    /// Runs `f` in a thread that has entered the namespace. Sockets and devices made there stay there.
    ///
    /// # Errors
    /// The system's, if the thread may not enter.
    ///
    /// # Panics
    /// As `f` does.
    pub fn run<T: Send>(&self, f: impl FnOnce() -> T + Send) -> io::Result<T> {
        in_thread(|| {
            self.enter()?;
            Ok(f())
        })
    }

    /// Moves the calling thread into the namespace, for good.
    pub(crate) fn enter(&self) -> io::Result<()> {
        Ok(move_into_link_name_space(
            self.as_fd(),
            Some(LinkNameSpaceType::Network),
        )?)
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn current() -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(
        "/proc/thread-self/ns/net",
        flags,
        Mode::empty(),
    )?)
}

/// Runs `f` in a thread of its own, whose namespaces nobody else sees change.
pub(crate) fn in_thread<T: Send>(f: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("namespace".into())
            .spawn_scoped(scope, f)?;
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
