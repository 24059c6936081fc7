//! Set-up with address validation. A listener keeps no state for a peer until that peer has shown
//! that it receives at its claimed address: it answers an `Open` by a token that only it can make
//! (the idea of TCP's SYN cookies, RFC 4987, and of QUIC's Retry, RFC 9000, section 8.1).

use foundation::{Duration, Instant};

use super::config::Kind as Protocol;
use super::frame::{Frame, Handshake, Kind, Parameters, Payload, ResetReason};

/// How long a token is good for.
const TOKEN_LIFETIME: Duration = Duration::from_secs(10);

/// What a listener does about a frame of no known connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission<P> {
    /// Answer with this frame; keep nothing.
    Reply(Frame<P>),
    /// The peer is real: make a connection with these parameters.
    Accept(Parameters),
    /// Nothing to do.
    Ignore,
}

/// The side that waits for peers. It holds a secret and nothing about any peer.
#[derive(Clone)]
pub struct Listener {
    secret: [u8; 32],
    window: u32,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}

impl Listener {
    /// A listener with this secret, whose connections have room for `window` packets.
    #[must_use]
    pub const fn new(secret: [u8; 32], window: u32) -> Self {
        Self { secret, window }
    }

    /// A frame of no known connection came from `peer` (its address in any fixed form).
    pub fn handle_frame<P: Payload, Q>(&self, now: Instant, peer: &[u8], frame: &Frame<P>) -> Admission<Q> {
        let Some(handshake) = frame.handshake.as_deref().filter(|_| frame.kind == Kind::Open) else {
            // Tell the peer that it talks to nobody; never answer a reset by a reset.
            let mut reset = Frame::new(Kind::Reset, frame.connection);
            reset.sequence = ResetReason::Unknown.code();
            reset.echo = frame.timestamp;
            return if frame.kind == Kind::Reset {
                Admission::Ignore
            } else {
                Admission::Reply(reset)
            };
        };
        let sane = Protocol::from_code(handshake.parameters.protocol).is_some()
            && handshake.parameters.segment_size > 0
            && handshake.parameters.acknowledge_every > 0;
        if !sane {
            return Admission::Ignore;
        }
        if self.is_valid(now, peer, frame.connection, &handshake.token) {
            return Admission::Accept(handshake.parameters);
        }
        let mut challenge = Frame::new(Kind::Challenge, frame.connection);
        challenge.echo = frame.timestamp;
        challenge.window = self.window;
        let token = self.token(now, peer, frame.connection);
        challenge.handshake = Some(Box::new(Handshake {
            token,
            parameters: handshake.parameters,
        }));
        Admission::Reply(challenge)
    }

    fn token(&self, made_at: Instant, peer: &[u8], connection: u32) -> [u8; 24] {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        hasher.update(&made_at.as_nanos().to_be_bytes());
        hasher.update(&connection.to_be_bytes());
        hasher.update(peer);
        let mut token = [0; 24];
        token[..8].copy_from_slice(&made_at.as_nanos().to_be_bytes());
        token[8..].copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        token
    }

    fn is_valid(&self, now: Instant, peer: &[u8], connection: u32, token: &[u8; 24]) -> bool {
        let mut made_at = [0; 8];
        made_at.copy_from_slice(&token[..8]);
        let made_at = Instant::from_nanos(u64::from_be_bytes(made_at));
        if made_at > now || now - made_at > TOKEN_LIFETIME {
            return false;
        }
        // Compared without early exit, as every authenticator is.
        let expected = self.token(made_at, peer, connection);
        expected
            .iter()
            .zip(token)
            .fold(0, |difference, (a, b)| difference | (a ^ b))
            == 0
    }
}
