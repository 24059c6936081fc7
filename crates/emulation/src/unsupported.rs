//! What is left on other systems than Linux: an error that says so.

use crate::error::Error;
use crate::options::EmulationOptions;

/// A network on wall time whose hosts are network namespaces: there is none on this system.
#[derive(Debug)]
pub enum Emulation {}

impl Emulation {
    /// Refuses.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn start(options: EmulationOptions) -> Result<Self, Error> {
        options.check()?;
        Err(Error::Unsupported)
    }
}
