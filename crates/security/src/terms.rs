//! What both ends agree on in the handshake, next to keys: the cipher and the connection's parameters.

use transport::arq::frame::Parameters;
use transport::arq::handshake::is_valid;

use crate::traffic::Cipher;

/// The opener's part, which is encrypted in its last message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Parameters of the connection.
    pub parameters: Parameters,
    /// The first sequence number of both directions.
    pub first: u32,
    /// Packets that the opener can receive before it acknowledges: its first receive window.
    pub receive_window: u32,
}

/// The listener's part, which is encrypted in its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acceptance {
    /// The cipher of all frames.
    pub cipher: Cipher,
    /// Packets that the listener can receive before it acknowledges: its first receive window.
    pub receive_window: u32,
}

impl Proposal {
    pub(crate) const LENGTH: usize = 15;

    pub(crate) fn encode(&self) -> [u8; Self::LENGTH] {
        let mut out = [0; Self::LENGTH];
        out[0] = self.parameters.protocol;
        out[1..3].copy_from_slice(&self.parameters.segment_size.to_be_bytes());
        out[3..5].copy_from_slice(&self.parameters.acknowledge_every.to_be_bytes());
        out[5..7].copy_from_slice(&self.parameters.acknowledge_delay.to_be_bytes());
        out[7..11].copy_from_slice(&self.first.to_be_bytes());
        out[11..15].copy_from_slice(&self.receive_window.to_be_bytes());
        out
    }

    /// Returns the proposal; `None` unless a connection can have these parameters.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let b: &[u8; Self::LENGTH] = bytes.try_into().ok()?;
        let parameters = Parameters {
            protocol: b[0],
            segment_size: u16::from_be_bytes([b[1], b[2]]),
            acknowledge_every: u16::from_be_bytes([b[3], b[4]]),
            acknowledge_delay: u16::from_be_bytes([b[5], b[6]]),
        };
        is_valid(parameters).then_some(Self {
            parameters,
            first: u32::from_be_bytes([b[7], b[8], b[9], b[10]]),
            receive_window: u32::from_be_bytes([b[11], b[12], b[13], b[14]]),
        })
    }
}

impl Acceptance {
    pub(crate) const LENGTH: usize = 5;

    pub(crate) fn encode(&self) -> [u8; Self::LENGTH] {
        let [a, b, c, d] = self.receive_window.to_be_bytes();
        [self.cipher.code(), a, b, c, d]
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let &[cipher, a, b, c, d] = bytes else { return None };
        Some(Self {
            cipher: Cipher::from_code(cipher)?,
            receive_window: u32::from_be_bytes([a, b, c, d]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decoded_terms_encode_to_the_same_bytes(bytes in prop::collection::vec(any::<u8>(), 0..20), protocol in 0_u8..5) {
            let mut proposal = bytes.clone();
            proposal.resize(Proposal::LENGTH, 1);
            proposal[0] = protocol;
            if let Some(decoded) = Proposal::decode(&proposal) {
                prop_assert_eq!(&decoded.encode()[..], &proposal[..]);
            }
            if let Some(welcome) = Acceptance::decode(&bytes) {
                prop_assert_eq!(&welcome.encode()[..], &bytes[..]);
            }
            prop_assert!(bytes.len() == Proposal::LENGTH || Proposal::decode(&bytes).is_none());
        }
    }
}
