//! Network namespaces, held by file descriptors: closing the last descriptor removes the namespace and its devices.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::error::{Error, system_error};

/// A network namespace.
#[derive(Debug)]
pub struct Namespace(OwnedFd);

impl Namespace {
    /// Creates a namespace with a loopback device that is down.
    ///
    /// # Errors
    /// [`Error::Permission`] without `CAP_SYS_ADMIN`, and the system's.
    pub fn create() -> Result<Self, Error> {
        let made = in_thread(|| {
            // SAFETY: does not unshare the file table.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            current()
        });
        Ok(Self(made.map_err(|error| {
            system_error("create a network namespace", error)
        })?))
    }

    /// The namespace of the calling thread.
    ///
    /// # Errors
    /// The system's, for example without `/proc`.
    pub fn current() -> Result<Self, Error> {
        let current = current().map_err(|error| system_error("open /proc/thread-self/ns/net", error))?;
        Ok(Self(current))
    }

    /// Runs `f` in a thread in the namespace. Sockets and devices created there stay there.
    ///
    /// # Errors
    /// The system's, without the permission to enter.
    ///
    /// # Panics
    /// If `f` panics.
    pub fn run<T: Send>(&self, f: impl FnOnce() -> T + Send) -> io::Result<T> {
        in_thread(|| {
            self.enter()?;
            Ok(f())
        })
    }

    /// Moves the calling thread into the namespace permanently.
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

/// Runs `f` in a new thread, so that changes of its namespaces affect no other code.
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
