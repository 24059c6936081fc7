//! The default congestion controller of the kernel's TCP at hosts.

use std::io::ErrorKind;

use foundation::Problem;

use crate::error::{Error, system_error};

const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// How hosts select a requested controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// As the default, which programs may replace.
    Default,
    /// By their routes, since the kernel accepts as the default of a namespace only controllers that unprivileged
    /// programs may use (`net.ipv4.tcp_allowed_congestion_control`). Programs cannot replace it.
    Routes,
}

/// Selects a controller as the default of the calling thread's network namespace, as far as the kernel permits.
///
/// # Errors
/// A controller that the kernel does not have, and the system's.
pub(crate) fn select(name: &str) -> Result<Selection, Error> {
    match std::fs::write(DEFAULT, name) {
        Ok(()) => Ok(Selection::Default),
        Err(error) if error.kind() == ErrorKind::PermissionDenied && available().any(|one| one == name) => {
            Ok(Selection::Routes)
        }
        // Only a privileged process can load a module.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
            let all: Vec<String> = available().collect();
            let message = format!(
                "{name:?} is not in this kernel: available: {}; as root, modprobe tcp_{name} may load it",
                all.join(", ")
            );
            Err(Problem::new("congestion", message).into())
        }
        Err(error) => Err(system_error(format!("write {name:?} to {DEFAULT}"), error)),
    }
}

fn available() -> impl Iterator<Item = String> {
    let text = std::fs::read_to_string(AVAILABLE).unwrap_or_default();
    let names: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    names.into_iter()
}

/// Returns the default of the calling thread's network namespace, with its version if the name has several. New
/// namespaces inherit it. Returns `None` if the system does not report it.
pub(crate) fn here() -> Option<String> {
    let name = std::fs::read_to_string(DEFAULT).ok()?;
    Some(label(name.trim()).into())
}

/// Names Linux's BBR with its version, since versions 2 and 3 are not in the kernel.
pub(crate) fn label(name: &str) -> &str {
    if name == "bbr" { "bbr (version 1)" } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_version_of_bbr() {
        assert_eq!(label("bbr"), "bbr (version 1)");
        assert_eq!(label("cubic"), "cubic");
        assert!(here().is_some_and(|name| !name.is_empty()));
    }
}
