//! Messages of the operating system's errors.

use std::error::Error;

/// Returns the message of an error without the system's error number at its end.
///
/// ```
/// let error = std::io::Error::from_raw_os_error(2);
/// assert_eq!(socket::system_error::plain(&error), "No such file or directory");
/// ```
#[must_use]
pub fn plain(error: &dyn Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ").filter(|_| text.ends_with(')')) {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}
