//! Errors with remedies for the permissions that emulation needs.

use std::io;

pub use kernel::Error;

use crate::privileges;

/// `EMFILE`.
const TOO_MANY_FILES: i32 = 24;

/// Returns the error of a failed system call, with a remedy for a missing permission or too few descriptors.
pub(crate) fn system_error(what: impl Into<String>, source: impl Into<io::Error>) -> Error {
    let (what, source) = (what.into(), source.into());
    if source.raw_os_error() == Some(TOO_MANY_FILES) {
        return Error::Missing {
            what: format!("room for more open files, to {what},"),
            remedy: "raise the limit (ulimit -n): each host needs two or more".into(),
        };
    }
    let remedy = privileges::remedy();
    Error::permission(what, source, remedy)
}
