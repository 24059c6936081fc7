//! MPTCP's sysctls in the network namespace of the calling thread.

use std::fs::{read_to_string, write};
use std::io::ErrorKind;

use super::manager::missing;
use crate::error::{self, Error};

const ENABLED: &str = "/proc/sys/net/mptcp/enabled";
const MANAGER: &str = "/proc/sys/net/mptcp/pm_type";

/// The path manager of new connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathManager {
    /// The kernel's, configured by endpoints and limits.
    Kernel,
    /// A process that receives events.
    User,
}

/// Returns whether MPTCP sockets can be created; `None` if the kernel has no MPTCP.
#[must_use]
pub fn is_enabled() -> Option<bool> {
    Some(read_to_string(ENABLED).ok()?.trim() == "1")
}

/// Returns the path manager of new connections.
///
/// # Errors
/// [`Error::Missing`] if the kernel offers no choice.
pub fn path_manager() -> Result<PathManager, Error> {
    match read_to_string(MANAGER) {
        Ok(text) if text.trim() == "1" => Ok(PathManager::User),
        Ok(_) => Ok(PathManager::Kernel),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(missing()),
        Err(error) => Err(error::mptcp(format!("read {MANAGER}"), error)),
    }
}

/// Sets the path manager of new connections. Dropping the result restores the previous one.
///
/// # Errors
/// [`Error::Missing`] if the kernel offers no choice, [`Error::Permission`] without `CAP_NET_ADMIN`.
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
    write(MANAGER, text).map_err(|error| error::mptcp(format!("write {text} to {MANAGER}"), error))
}

/// Restores the previous path manager on drop, in the namespace of the dropping thread.
#[derive(Debug)]
#[must_use = "dropping it restores the previous path manager"]
pub struct Restore(Option<PathManager>);

impl Restore {
    /// Whether the setting was changed.
    #[must_use]
    pub const fn has_changed(&self) -> bool {
        self.0.is_some()
    }

    /// Keeps the new setting.
    pub fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            // Drop cannot report a failure, and the same write succeeded before.
            let _ = store(before);
        }
    }
}
