//! What can go wrong, in one line each.

use std::io;

/// Why something cannot be measured.
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
    /// The system has no such thing, or it is switched off.
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
    /// An option that cannot be.
    #[error("{0}")]
    Option(String),
    /// Another system than Linux.
    #[error("{0} needs Linux: it is not supported here")]
    Unsupported(&'static str),
}

impl Error {
    /// What follows from a failed system call.
    #[must_use]
    pub fn of(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        let (what, source) = (what.into(), source.into());
        Self::System { what, source }
    }

    /// The same, where a missing right has a remedy.
    #[must_use]
    pub fn right(what: impl Into<String>, source: impl Into<io::Error>, remedy: &str) -> Self {
        let (what, source) = (what.into(), source.into());
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::Permission {
                what,
                remedy: remedy.into(),
            },
            _ => Self::System { what, source },
        }
    }
}
