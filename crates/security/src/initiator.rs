//! The opening end of a handshake.

use foundation::{Duration, Instant};
use snow::HandshakeState;
use zeroize::Zeroizing;

use crate::channel::Channel;
use crate::credentials::Credentials;
use crate::key::PublicKey;
use crate::noise::{self, Role};
use crate::packet::{Packet, Reason};
use crate::round_trip::useful_bound;
use crate::terms::{Acceptance, Proposal};

/// First interval of retransmissions, without a measured round trip. RFC 6298 requires 1 s, to protect paths from full
/// windows. Repetitions of one message of 100 bytes stay below an initial window (RFC 6928), and on a path that loses 10 %
/// in each direction, a fifth of all handshakes requires them.
const INITIAL_TIMEOUT: Duration = Duration::from_millis(100);
/// Longest interval of retransmissions.
const MAX_TIMEOUT: Duration = Duration::from_secs(2);
/// Shortest interval of retransmissions.
const MIN_TIMEOUT: Duration = Duration::from_millis(20);
/// Tokens accepted in one handshake. A listener sends one; more may be forged.
const MAX_RETRIES: u32 = 4;

/// Why a handshake failed. Each message is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// No reply.
    #[error("no answer from the peer for {0}")]
    Silent(Duration),
    /// Replies, but none from the owner of the code or of a key.
    #[error("no authentic answer for {0}: something on the path answers instead of the receiver")]
    Forged(Duration),
    /// The listener's key is not in the list.
    #[error("the receiver's key is not trusted: {0}")]
    Untrusted(PublicKey),
    /// The listener refuses.
    #[error("{}", refusal(*.0))]
    Refused(Reason),
}

const fn refusal(reason: Reason) -> &'static str {
    match reason {
        Reason::Busy => "the receiver is busy: it accepts no more connections now",
        Reason::WrongCode => "the code is wrong or used: type the newest one that the receiver prints",
        Reason::UntrustedKey => "the receiver does not trust this key: add it to the receiver's trusted keys",
        Reason::NeedsCode => "the receiver requires the code that it prints",
        Reason::NeedsKey => "the receiver requires a trusted key instead of a code",
        Reason::Unprotected => "the receiver does not encrypt: it accepts insecure senders only",
        Reason::Unknown => "the receiver does not know this connection",
        Reason::Closed => "a relay reports that nothing listens at its target: start the receiver there",
    }
}

enum Stage {
    /// The first message is repeated until the reply.
    Opening(Box<HandshakeState>),
    /// The last message is repeated until the listener's first frame.
    Finishing,
    Confirmed,
}

/// The opening end. After every call, drain [`poll_transmit`](Self::poll_transmit), then see
/// [`poll_timeout`](Self::poll_timeout).
pub struct Initiator {
    connection: u32,
    credentials: Credentials,
    proposal: Proposal,
    stage: Stage,
    message: Vec<u8>,
    token: [u8; 24],
    opened_at: Instant,
    give_up: Duration,
    due: Instant,
    interval: Duration,
    /// When the current datagram was first sent, and how often since.
    first_sent_at: Instant,
    sent: u32,
    retries: u32,
    forged: bool,
}

impl std::fmt::Debug for Initiator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Initiator").finish_non_exhaustive()
    }
}

/// A handshake that succeeded, as the opener sees it. The listener may still miss the last message.
#[derive(Debug)]
pub struct InitiatorOutcome {
    /// Protects the connection's frames.
    pub channel: Channel,
    /// The listener's terms.
    pub acceptance: Acceptance,
    /// The round trip, or an upper bound if a message was repeated; `None` if it is too high to be useful.
    pub rtt: Option<Duration>,
}

impl Initiator {
    /// Starts a handshake. `connection` and `seed` are random; `aes` is whether this processor has AES instructions. No
    /// reply for `give_up` is an error.
    #[must_use]
    pub fn new(
        now: Instant,
        connection: u32,
        credentials: &Credentials,
        proposal: Proposal,
        aes: bool,
        seed: [u8; 32],
        give_up: Duration,
    ) -> Self {
        let mut state = noise::start(Role::Initiator, credentials, connection, &Zeroizing::new(seed));
        let message = noise::write(&mut state, &[aes.into()]);
        Self {
            connection,
            credentials: credentials.clone(),
            proposal,
            stage: Stage::Opening(Box::new(state)),
            message,
            token: [0; 24],
            opened_at: now,
            give_up,
            due: now,
            interval: INITIAL_TIMEOUT,
            first_sent_at: now,
            sent: 0,
            retries: 0,
            forged: false,
        }
    }

    /// Handles a datagram. Returns the channel once.
    ///
    /// # Errors
    /// [`HandshakeError`] if the listener refuses, or is not trusted.
    pub fn handle(
        &mut self,
        now: Instant,
        datagram: &[u8],
    ) -> Result<Option<InitiatorOutcome>, HandshakeError> {
        let Some((connection, packet)) = Packet::decode(datagram) else {
            return Ok(None);
        };
        if connection != self.connection {
            return Ok(None);
        }
        let state = match (&mut self.stage, &packet) {
            (Stage::Opening(state), _) => state,
            // Frames that overtook the last message reach a listener without this connection.
            (Stage::Finishing, Packet::Refusal(reason)) if *reason != Reason::Unknown => {
                return Err(HandshakeError::Refused(*reason));
            }
            _ => return Ok(None),
        };
        match packet {
            Packet::Refusal(reason) => Err(HandshakeError::Refused(reason)),
            Packet::Retry { token } if self.retries < MAX_RETRIES => {
                self.retries += 1;
                self.token = token;
                self.send_again(now);
                Ok(None)
            }
            Packet::Reply(message) => {
                let acceptance = noise::read(state, message).and_then(|payload| Acceptance::decode(&payload));
                let (Some(acceptance), Some(key)) = (acceptance, noise::peer_key(state)) else {
                    // The authentic reply may follow.
                    self.forged = true;
                    return Ok(None);
                };
                if !self.credentials.trusts(&key) {
                    return Err(HandshakeError::Untrusted(key));
                }
                self.message = noise::write(state, &self.proposal.encode());
                let channel = noise::channel(state, Role::Initiator, acceptance.cipher);
                let rtt = now - self.first_sent_at;
                self.stage = Stage::Finishing;
                self.interval = (rtt * 2).max(MIN_TIMEOUT);
                self.send_again(now);
                Ok(Some(InitiatorOutcome {
                    channel,
                    acceptance,
                    rtt: useful_bound(rtt),
                }))
            }
            Packet::Retry { .. } | Packet::Hello { .. } | Packet::Finish(_) => Ok(None),
        }
    }

    /// Stops the retransmissions: the listener's first authentic frame has arrived.
    pub fn confirm(&mut self) {
        self.stage = Stage::Confirmed;
        self.due = Instant::MAX;
    }

    fn send_again(&mut self, now: Instant) {
        (self.due, self.sent) = (now, 0);
    }

    /// Returns the datagram to send at `now`.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Vec<u8>> {
        if now < self.due {
            return None;
        }
        self.due = now + self.interval.doubled(self.sent).min(MAX_TIMEOUT);
        self.sent += 1;
        if self.sent == 1 {
            self.first_sent_at = now;
        }
        let message = &self.message;
        let packet = match &self.stage {
            Stage::Opening(_) => Packet::Hello {
                method: self.credentials.method(),
                token: self.token,
                message,
            },
            Stage::Finishing => Packet::Finish(message),
            Stage::Confirmed => return None,
        };
        Some(packet.encode(self.connection))
    }

    /// Returns when [`poll_transmit`](Self::poll_transmit) or [`check`](Self::check) is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        match self.stage {
            Stage::Opening(_) => self.due.min(self.opened_at + self.give_up),
            Stage::Finishing | Stage::Confirmed => self.due,
        }
    }

    /// Checks whether the listener is silent for too long.
    ///
    /// # Errors
    /// [`HandshakeError::Silent`] or [`HandshakeError::Forged`].
    pub fn check(&self, now: Instant) -> Result<(), HandshakeError> {
        match self.stage {
            Stage::Opening(_) if now >= self.opened_at + self.give_up => Err(if self.forged {
                HandshakeError::Forged(self.give_up)
            } else {
                HandshakeError::Silent(self.give_up)
            }),
            _ => Ok(()),
        }
    }
}
