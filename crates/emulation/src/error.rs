//! What can go wrong, in one line each.

use std::io;

/// Why there is no emulated network, or not this one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process may not do it.
    #[error("may not {what}: {remedy}")]
    Permission {
        /// What was tried.
        what: String,
        /// What to do about it.
        remedy: String,
    },
    /// The system has no such thing.
    #[error("{what} is missing: {remedy}")]
    Missing {
        /// What was looked for.
        what: String,
        /// What to do about it.
        remedy: String,
    },
    /// The system refuses.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system says.
        source: io::Error,
    },
    /// A command that cannot be started.
    #[error("{name}: {}", why(source))]
    Command {
        /// The program, as it was called.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// An option that cannot be.
    #[error("{0}")]
    Option(foundation::Problem),
    /// Another system than Linux.
    #[error(
        "emulated networks need Linux: network namespaces and TUN devices are its own; use world = \"sim\" or \"relay\" here"
    )]
    Unsupported,
}

/// As shells say it.
fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such command".into(),
        io::ErrorKind::PermissionDenied => "may not be executed".into(),
        _ => error.to_string(),
    }
}

/// `EMFILE`, the same number on every Unix.
const TOO_MANY_FILES: i32 = 24;

impl Error {
    /// What follows from a failed system call: a missing permission is named, with what to do about it.
    pub(crate) fn from_system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        let (what, source) = (what.into(), source.into());
        match source.kind() {
            _ if source.raw_os_error() == Some(TOO_MANY_FILES) => Self::Missing {
                what: format!("room for more open files, to {what},"),
                remedy: "raise the limit (ulimit -n), two and a few for each host".into(),
            },
            io::ErrorKind::PermissionDenied => Self::Permission {
                what,
                remedy: privilege(),
            },
            _ => Self::System { what, source },
        }
    }
}

/// How to get what is missing.
fn privilege() -> String {
    #[cfg(target_os = "linux")]
    let missing = crate::linux::user_namespace::missing_capabilities();
    #[cfg(not(target_os = "linux"))]
    let missing: Vec<&str> = Vec::new();
    #[cfg(target_os = "linux")]
    if missing.is_empty() && crate::linux::user_namespace::is_inside() {
        let why = crate::linux::user_namespace::remedy();
        return format!("refused to the root of a user namespace: {why}");
    }
    if missing.is_empty() {
        return "this process has the capabilities, but a container or sandbox forbids it".into();
    }
    format!(
        "this process lacks {}: run it as root, or inside a user namespace (unshare --user --map-root-user)",
        missing.join(" and ")
    )
}
