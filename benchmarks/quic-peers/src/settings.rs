//! Settings that differ from the defaults of a library.

use crate::Failure;

/// What a peer changes. `None` leaves the library's default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Largest datagram in bytes.
    pub mtu: Option<u16>,
    /// Windows of streams and connection in bytes, and the send buffer.
    pub window: Option<u32>,
    /// Whether the system segments large sends (GSO).
    pub gso: Option<bool>,
}

impl Settings {
    /// Reads `mtu=9000`, `window=67108864` and `gso=off`.
    ///
    /// # Errors
    /// The word that is unknown.
    pub fn read(words: &[&str]) -> Result<Self, Failure> {
        let mut settings = Self::default();
        for word in words {
            match word.split_once('=') {
                Some(("mtu", mtu)) => settings.mtu = Some(mtu.parse()?),
                Some(("window", window)) => settings.window = Some(window.parse()?),
                Some(("gso", "on")) => settings.gso = Some(true),
                Some(("gso", "off")) => settings.gso = Some(false),
                _ => return Err(format!("{word}: mtu=BYTES, window=BYTES or gso=on|off").into()),
            }
        }
        Ok(settings)
    }
}
