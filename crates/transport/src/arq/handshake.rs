//! Setup with address validation. A listener stores no state for a peer until that peer has proved that it receives at
//! its address: it answers an `Open` with a token that only the listener can generate (the idea of TCP's SYN cookies,
//! RFC 4987, and of QUIC's Retry, RFC 9000, section 8.1).

use foundation::{Duration, Instant};

use super::config::ArqProtocol;
use super::frame::{Frame, FrameType, Handshake, Parameters, Payload, ResetReason};

/// Validity of a token.
const TOKEN_LIFETIME: Duration = Duration::from_secs(10);

/// A listener's reaction to a frame without a known connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission<P> {
    /// Reply with this frame and store nothing.
    Reply(Frame<P>),
    /// The peer's address is valid: create a connection with these parameters.
    Accept(Parameters),
    /// Nothing to do.
    Ignore,
}

/// The listening side. It has a secret and stores nothing about peers.
#[derive(Clone, Debug)]
pub struct Listener {
    tokens: Tokens,
    window: u32,
}

impl Listener {
    /// Creates a listener whose connections have room for `window` packets.
    #[must_use]
    pub const fn new(secret: [u8; 32], window: u32) -> Self {
        let tokens = Tokens::new(secret);
        Self { tokens, window }
    }

    /// Handles a frame without a known connection from `peer` (its address in any fixed form).
    pub fn handle_frame<P: Payload, Q>(&self, now: Instant, peer: &[u8], frame: &Frame<P>) -> Admission<Q> {
        let Some(handshake) = frame
            .handshake
            .as_deref()
            .filter(|_| frame.kind == FrameType::Open)
        else {
            // Reset unknown connections, but never answer a reset with a reset.
            let mut reset = Frame::new(FrameType::Reset, frame.connection);
            reset.sequence = ResetReason::Unknown.code();
            reset.echo = frame.timestamp;
            return if frame.kind == FrameType::Reset {
                Admission::Ignore
            } else {
                Admission::Reply(reset)
            };
        };
        if !is_valid(handshake.parameters) {
            return Admission::Ignore;
        }
        if self
            .tokens
            .is_valid(now, peer, frame.connection, &handshake.token)
        {
            return Admission::Accept(handshake.parameters);
        }
        let mut challenge = Frame::new(FrameType::Challenge, frame.connection);
        challenge.echo = frame.timestamp;
        challenge.window = self.window;
        let token = self.tokens.token(now, peer, frame.connection);
        challenge.handshake = Some(Box::new(Handshake {
            token,
            parameters: handshake.parameters,
        }));
        Admission::Reply(challenge)
    }
}

/// Whether a connection can have these parameters.
#[must_use]
pub fn is_valid(parameters: Parameters) -> bool {
    ArqProtocol::from_code(parameters.protocol).is_some()
        && parameters.segment_size > 0
        && parameters.acknowledge_every > 0
}

/// Proofs of address: bytes that only the owner of the secret can generate, and that a peer can repeat only if it
/// receives at its address.
#[derive(Clone)]
pub struct Tokens {
    secret: [u8; 32],
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}

impl Tokens {
    /// Creates tokens of a random `secret`.
    #[must_use]
    pub const fn new(secret: [u8; 32]) -> Self {
        Self { secret }
    }

    /// Returns the token of a connection of `peer` (its address in any fixed form).
    #[must_use]
    pub fn token(&self, made_at: Instant, peer: &[u8], connection: u32) -> [u8; 24] {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        hasher.update(&made_at.as_nanos().to_be_bytes());
        hasher.update(&connection.to_be_bytes());
        hasher.update(peer);
        let mut token = [0; 24];
        token[..8].copy_from_slice(&made_at.as_nanos().to_be_bytes());
        token[8..].copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        token
    }

    /// Whether `token` belongs to this connection of `peer` and is fresh.
    #[must_use]
    pub fn is_valid(&self, now: Instant, peer: &[u8], connection: u32, token: &[u8; 24]) -> bool {
        let mut made_at = [0; 8];
        made_at.copy_from_slice(&token[..8]);
        let made_at = Instant::from_nanos(u64::from_be_bytes(made_at));
        if made_at > now || now - made_at > TOKEN_LIFETIME {
            return false;
        }
        // Compared in constant time, like any authenticator.
        let expected = self.token(made_at, peer, connection);
        expected
            .iter()
            .zip(token)
            .fold(0, |difference, (a, b)| difference | (a ^ b))
            == 0
    }
}
