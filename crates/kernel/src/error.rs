//! One error type for the crates that call the operating system: `kernel`, `measurement` and `emulation`.

use std::io;

use foundation::Problem;

/// A failure of the system or of its configuration, in one line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process lacks a permission.
    #[error("may not {what}: {remedy}")]
    Permission {
        /// The action, as an infinitive.
        what: String,
        /// How to fix it.
        remedy: String,
    },
    /// The system lacks a feature, a device or a configuration.
    #[error("{what} is missing: {remedy}")]
    Missing {
        /// The missing thing.
        what: String,
        /// How to fix it.
        remedy: String,
    },
    /// A system call or a request to the kernel failed.
    #[error("cannot {what}: {source}")]
    System {
        /// The action, as an infinitive.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// A command did not start.
    #[error("{name}: {}", reason(source))]
    Command {
        /// The program.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// An option is invalid.
    #[error("{0}")]
    Option(String),
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self::Option(problem.to_string())
    }
}

/// The wording of shells.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such command".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}

impl Error {
    /// Returns [`Error::System`].
    #[must_use]
    pub fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System {
            what: what.into(),
            source: source.into(),
        }
    }

    /// Returns [`Error::Permission`] with this remedy if the system denied a permission, else [`Error::System`].
    #[must_use]
    pub fn permission(
        what: impl Into<String>,
        source: impl Into<io::Error>,
        remedy: impl Into<String>,
    ) -> Self {
        let source = source.into();
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::Permission {
                what: what.into(),
                remedy: remedy.into(),
            },
            _ => Self::system(what, source),
        }
    }

    /// The number of the system's error, if it has one.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::System { source, .. } | Self::Command { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}

/// The error of an operation on the kernel's MPTCP.
pub(crate) fn mptcp(what: impl Into<String>, source: impl Into<io::Error>) -> Error {
    let remedy = "it needs CAP_NET_ADMIN in the network namespace: run as root";
    Error::permission(what, source, remedy)
}
