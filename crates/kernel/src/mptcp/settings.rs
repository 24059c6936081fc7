//! The sysctls of MPTCP, which are the network namespace's of the calling thread.

use std::fs::{read_to_string, write};
use std::io::ErrorKind;

use crate::error::Error;

const ENABLED: &str = "/proc/sys/net/mptcp/enabled";
const MANAGER: &str = "/proc/sys/net/mptcp/pm_type";

/// Who decides about the subflows of connections that begin from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathManager {
    /// The kernel, by its endpoints and limits.
    Kernel,
    /// Whoever listens to events, in user space.
    User,
}

/// Whether sockets of MPTCP can be made here; `None` where the kernel knows none.
#[must_use]
pub fn is_enabled() -> Option<bool> {
    Some(read_to_string(ENABLED).ok()?.trim() == "1")
}

/// The path manager of connections that begin here.
///
/// # Errors
/// [`Error::Missing`] where the kernel gives no choice.
pub fn path_manager() -> Result<PathManager, Error> {
    match read_to_string(MANAGER) {
        Ok(text) if text.trim() == "1" => Ok(PathManager::User),
        Ok(_) => Ok(PathManager::Kernel),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(super::manager::missing()),
        Err(error) => Err(Error::of(format!("read {MANAGER}"), error)),
    }
}

/// Sets the path manager of connections that begin here from now on. What it was before comes back when the
/// result is dropped, or stays changed where that is [kept](Restore::keep).
///
/// # Errors
/// [`Error::Missing`] where the kernel gives no choice, [`Error::Permission`] without `CAP_NET_ADMIN`.
pub fn set_path_manager(to: PathManager) -> Result<Restore, Error> {
    let before = path_manager()?;
    if before != to {
        store(to)?;
    }
    Ok(Restore((before != to).then_some(before)))
}

fn store(to: PathManager) -> Result<(), Error> {
    let text = match to {
        PathManager::Kernel => "0",
        PathManager::User => "1",
    };
    write(MANAGER, text).map_err(|error| Error::of(format!("write {text} to {MANAGER}"), error))
}

/// Puts the path manager back that was there before, in the thread that drops it.
#[derive(Debug)]
#[must_use = "dropped at once, it puts back what was there before at once"]
pub struct Restore(Option<PathManager>);

impl Restore {
    /// Whether anything was changed.
    #[must_use]
    pub const fn has_changed(&self) -> bool {
        self.0.is_some()
    }

    /// Leaves it as it is set.
    pub fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            // Nobody is left to tell; the file could be written a moment ago.
            let _ = store(before);
        }
    }
}
