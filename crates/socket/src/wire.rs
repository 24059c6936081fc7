//! How the frames of a connection become datagrams.

use std::convert::Infallible;
use std::ops::Range;

use security::{Channel, Credentials};
use transport::arq::codec::{self, Layout};
use transport::arq::frame::{MAX_PAYLOAD, Payload};
use transport::arq::{Frame, StreamRange};

/// Whether connections are encrypted and authenticated.
#[derive(Clone, Debug)]
pub enum Protection {
    /// Neither: frames with a checksum, for studies, captures and trusted networks.
    None,
    /// Both, with these secrets.
    Secure(Credentials),
}

impl Protection {
    /// Whether connections are encrypted and authenticated.
    #[must_use]
    pub const fn is_secure(&self) -> bool {
        matches!(self, Self::Secure(_))
    }

    /// Returns the largest payload of a packet that fits a datagram.
    #[must_use]
    pub const fn max_payload(&self) -> u32 {
        match self {
            Self::None => MAX_PAYLOAD,
            Self::Secure(_) => MAX_PAYLOAD - Layout::PROTECTED.trailer() as u32,
        }
    }
}

/// Whether this processor has instructions for AES in Galois/Counter Mode.
#[must_use]
pub fn has_aes() -> bool {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    {
        std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq")
    }
    #[cfg(target_arch = "aarch64")]
    {
        std::arch::is_aarch64_feature_detected!("aes") && std::arch::is_aarch64_feature_detected!("pmull")
    }
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    {
        false
    }
}

/// The format of a connection's datagrams.
#[derive(Debug)]
pub enum Wire {
    /// Frames with a checksum.
    Plain,
    /// Encrypted and authenticated frames.
    Protected(Box<Channel>),
}

impl Wire {
    /// Returns the number of bytes in a datagram in addition to the frame.
    #[must_use]
    pub const fn overhead(&self) -> usize {
        match self {
            Self::Plain => Layout::PLAIN.trailer(),
            Self::Protected(_) => Layout::PROTECTED.trailer(),
        }
    }

    /// Appends the datagram of `frame` to `out`; `append` appends the payload. Bytes that it leaves out are 0.
    pub fn encode(
        &mut self,
        frame: &Frame<StreamRange>,
        out: &mut Vec<u8>,
        append: impl FnOnce(&StreamRange, &mut Vec<u8>),
    ) {
        match self {
            Self::Plain => plain(frame, out, append),
            Self::Protected(channel) => channel.seal(frame, out, append),
        }
    }

    /// Returns the frame in `datagram`, decrypted in place; `None` unless it is valid and, in a protected connection,
    /// authentic and new.
    pub fn decode(&mut self, datagram: &mut [u8]) -> Option<Frame<Range<usize>>> {
        match self {
            Self::Plain => codec::decode(datagram).ok(),
            Self::Protected(channel) => channel.open(datagram).ok(),
        }
    }
}

/// Appends `frame` with a checksum to `out`; `append` appends the payload. Bytes that it leaves out are 0.
pub fn plain<P: Payload>(frame: &Frame<P>, out: &mut Vec<u8>, append: impl FnOnce(&P, &mut Vec<u8>)) {
    let encoded: Result<(), Infallible> = codec::encode(frame, out, |payload, out| {
        append(payload, out);
        Ok(())
    });
    let Ok(()) = encoded;
}

/// Returns the connection that a datagram names, of either format.
#[must_use]
pub fn connection(datagram: &[u8]) -> Option<u32> {
    Layout::of(datagram)?;
    let bytes = datagram.get(4..8)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}
