//! The Noise handshake: pattern XX (revision 34), with the code as a pre-shared key in front (`psk0`).

use snow::params::{CipherChoice, DHChoice, HashChoice, NoiseParams};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher as NoiseCipher, Dh, Hash, Random};
use snow::{Builder, HandshakeState};
use zeroize::{Zeroize, Zeroizing};

use crate::channel::Channel;
use crate::credentials::Credentials;
use crate::key::PublicKey;
use crate::traffic::Cipher;

/// The longest Noise message of this handshake.
pub const MAX_MESSAGE: usize = 160;
/// Bound into the handshake with the connection's number: a different version or connection fails.
const PROLOGUE: &[u8] = b"longfat transfer 1";

/// Which end of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sends the first message.
    Initiator,
    /// Replies.
    Responder,
}

/// Random bytes from a seed.
struct Seeded(blake3::OutputReader);

impl Random for Seeded {
    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), snow::Error> {
        self.0.fill(out);
        Ok(())
    }
}

impl Drop for Seeded {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// The default algorithms with the caller's random bytes.
struct Resolver(Zeroizing<[u8; 32]>);

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        let mut hasher = blake3::Hasher::new_derive_key("longfat transfer 1: ephemeral key");
        hasher.update(&self.0[..]);
        let bytes = Seeded(hasher.finalize_xof());
        hasher.zeroize();
        Some(Box::new(bytes))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn NoiseCipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

/// Starts a handshake with the randomness of `seed`, which must be used once.
///
/// # Panics
/// Never: the patterns and keys are valid.
pub fn start(role: Role, credentials: &Credentials, connection: u32, seed: &[u8; 32]) -> HandshakeState {
    let (name, code, secret) = match credentials {
        Credentials::Code(code) => (
            "Noise_XXpsk0_25519_ChaChaPoly_BLAKE2s",
            Some(code.key()),
            // Only the code authenticates, so the static key is a second ephemeral one.
            Zeroizing::new(blake3::derive_key(
                "longfat transfer 1: temporary static key",
                seed,
            )),
        ),
        Credentials::Keys { identity, .. } => (
            "Noise_XX_25519_ChaChaPoly_BLAKE2s",
            None,
            Zeroizing::new(*identity.bytes()),
        ),
    };
    let params: NoiseParams = name.parse().expect("a valid pattern");
    let prologue = [PROLOGUE, &connection.to_be_bytes()].concat();
    let mut builder = Builder::with_resolver(params, Box::new(Resolver(Zeroizing::new(*seed))));
    builder = builder.prologue(&prologue).expect("set once");
    builder = builder.local_private_key(&secret[..]).expect("set once");
    if let Some(code) = &code {
        builder = builder.psk(0, code).expect("set once");
    }
    let built = match role {
        Role::Initiator => builder.build_initiator(),
        Role::Responder => builder.build_responder(),
    };
    built.expect("the pattern has all its keys")
}

/// Returns the next message with `payload` in it.
///
/// # Panics
/// If it is not this end's turn.
pub fn write(state: &mut HandshakeState, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0; MAX_MESSAGE];
    let length = state.write_message(payload, &mut out).expect("this end's turn");
    out.truncate(length);
    out
}

/// Returns the payload of the peer's next message; `None` unless the message is authentic. The third
/// message spoils the state then: [`start`] it again with the same seed, and repeat its messages.
pub fn read(state: &mut HandshakeState, message: &[u8]) -> Option<Vec<u8>> {
    let mut out = vec![0; message.len()];
    let length = state.read_message(message, &mut out).ok()?;
    out.truncate(length);
    Some(out)
}

/// Returns the peer's static key, once it has been received.
pub fn peer_key(state: &HandshakeState) -> Option<PublicKey> {
    Some(PublicKey::new(state.get_remote_static()?.try_into().ok()?))
}

/// Returns the channel of a complete handshake.
pub fn channel(state: &mut HandshakeState, role: Role, cipher: Cipher) -> Channel {
    let (opener, listener) = state.dangerously_get_raw_split();
    let (opener, listener) = (Zeroizing::new(opener), Zeroizing::new(listener));
    match role {
        Role::Initiator => Channel::new(cipher, opener, listener),
        Role::Responder => Channel::new(cipher, listener, opener),
    }
}
