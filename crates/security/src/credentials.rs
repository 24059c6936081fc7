//! How an end authenticates itself and its peer.

use crate::code::Code;
use crate::key::{PublicKey, SecretKey, TrustedKeys};
use crate::packet::Method;

/// Secrets of one end.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// A code that both ends know.
    Code(Code),
    /// A key, and the keys of trusted peers.
    Keys {
        /// The key of this end.
        identity: SecretKey,
        /// Keys of peers.
        trusted: TrustedKeys,
    },
}

impl Credentials {
    pub(crate) const fn method(&self) -> Method {
        match self {
            Self::Code(_) => Method::Code,
            Self::Keys { .. } => Method::Keys,
        }
    }

    /// Whether a peer that has proved to own `key` is trusted. Under a code, the handshake itself has verified it.
    pub(crate) fn trusts(&self, key: &PublicKey) -> bool {
        match self {
            Self::Code(_) => true,
            Self::Keys { trusted, .. } => trusted.name(key).is_some(),
        }
    }

    /// Returns the name of the peer with `key`, if the list has one.
    pub(crate) fn name(&self, key: &PublicKey) -> Option<String> {
        match self {
            Self::Code(_) => None,
            Self::Keys { trusted, .. } => Some(match trusted.name(key) {
                Some(name) if !name.is_empty() => name.to_owned(),
                _ => key.to_string(),
            }),
        }
    }
}
