//! What can go wrong, in one line each.

use std::io;

/// Why the kernel did not do it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel has no such thing.
    #[error("{what} is missing: {remedy}")]
    Missing {
        /// What was looked for.
        what: String,
        /// What to do about it.
        remedy: String,
    },
    /// The process may not do it.
    #[error("may not {what}: {remedy}")]
    Permission {
        /// What was tried.
        what: String,
        /// What to do about it.
        remedy: String,
    },
    /// The kernel refuses.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the kernel says.
        source: io::Error,
    },
    /// An option that cannot be.
    #[error("{0}")]
    Option(foundation::Problem),
}

impl Error {
    /// What follows from a failed system call or request.
    pub(crate) fn of(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        let (what, source) = (what.into(), source.into());
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::Permission {
                what,
                remedy: "it takes CAP_NET_ADMIN in the network namespace: run it as root".into(),
            },
            _ => Self::System { what, source },
        }
    }

    /// The number of the system's error, where it is one.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::System { source, .. } => source.raw_os_error(),
            Self::Missing { .. } | Self::Permission { .. } | Self::Option(_) => None,
        }
    }
}
