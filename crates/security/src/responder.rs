//! The listening end: admits openers that authenticate themselves.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use foundation::{Duration, Instant};
use snow::HandshakeState;
use transport::arq::handshake::Tokens;
use zeroize::Zeroizing;

use crate::channel::Channel;
use crate::credentials::Credentials;
use crate::noise::{self, Role};
use crate::packet::{Method, Packet, Reason};
use crate::round_trip::useful_bound;
use crate::terms::{Acceptance, Proposal};
use crate::traffic::Cipher;

/// Handshakes without their last message at a time, in all about 100 kB.
const MAX_HALF_OPEN: usize = 64;
/// Of these, from one host: an IPv4 address, or an IPv6 network of 64 bits.
const MAX_PER_HOST: usize = 16;
/// From this number on, openers prove their address with a token first.
const TOKEN_THRESHOLD: usize = 16;
/// How long an opener may take for its last message. The listener drops the handshake then.
pub const HALF_OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// Handshakes of one connection number that a last message is tried with.
const MAX_ATTEMPTS: usize = 4;

/// Reaction to a handshake datagram.
#[derive(Debug)]
pub enum Admission {
    /// Send this datagram, which is shorter than the one that it answers.
    Reply(Vec<u8>),
    /// The opener is authentic: create its connection.
    Admit(Box<Admitted>),
    /// Nothing to do.
    Ignore,
}

/// An authentic opener.
#[derive(Debug)]
pub struct Admitted {
    /// The connection's number.
    pub connection: u32,
    /// Protects its frames.
    pub channel: Channel,
    /// Its terms.
    pub proposal: Proposal,
    /// The name of its key, under keys.
    pub name: Option<String>,
    /// The round trip, or an upper bound if a message was repeated; `None` if it is too high to be useful.
    pub rtt: Option<Duration>,
}

struct HalfOpen {
    from: SocketAddr,
    connection: u32,
    since: Instant,
    seed: Zeroizing<[u8; 32]>,
    /// The opener's first message.
    hello: Vec<u8>,
    reply: Vec<u8>,
    state: HandshakeState,
    cipher: Cipher,
}

impl HalfOpen {
    fn is(&self, from: SocketAddr, connection: u32) -> bool {
        self.from == from && self.connection == connection
    }
}

/// The listening end.
pub struct Responder {
    credentials: Credentials,
    tokens: Tokens,
    seed: Zeroizing<[u8; 32]>,
    drawn: u64,
    receive_window: u32,
    aes: bool,
    /// Oldest first.
    half_open: VecDeque<HalfOpen>,
}

impl std::fmt::Debug for Responder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Responder").finish_non_exhaustive()
    }
}

/// Returns the part of an address that one host chooses freely.
fn host(address: SocketAddr) -> [u8; 8] {
    let mut host = [0; 8];
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => host[..4].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => host.copy_from_slice(&ip.octets()[..8]),
    }
    host
}

impl Responder {
    /// Creates a responder. `seed` is random; `receive_window` is the first receive window of a connection in
    /// packets; `aes` is whether this processor has AES instructions.
    #[must_use]
    pub fn new(credentials: Credentials, seed: [u8; 32], receive_window: u32, aes: bool) -> Self {
        Self {
            credentials,
            tokens: Tokens::new(blake3::derive_key("longfat transfer 1: tokens", &seed)),
            seed: Zeroizing::new(blake3::derive_key("longfat transfer 1: handshakes", &seed)),
            drawn: 0,
            receive_window,
            aes,
            half_open: VecDeque::new(),
        }
    }

    /// Replaces the credentials. Handshakes under the earlier ones end.
    pub fn replace_credentials(&mut self, credentials: Credentials) {
        self.credentials = credentials;
        self.half_open.clear();
    }

    /// Returns the number of handshakes without their last message.
    #[must_use]
    pub fn half_open(&self) -> usize {
        self.half_open.len()
    }

    /// Returns a seed that is used once.
    fn draw(&mut self) -> Zeroizing<[u8; 32]> {
        self.drawn += 1;
        Zeroizing::new(*blake3::keyed_hash(&self.seed, &self.drawn.to_be_bytes()).as_bytes())
    }

    /// Handles a datagram that is no frame of a known connection. `full` is whether the caller accepts no more
    /// connections.
    pub fn handle(&mut self, now: Instant, from: SocketAddr, datagram: &[u8], full: bool) -> Admission {
        while self
            .half_open
            .front()
            .is_some_and(|oldest| oldest.since + HALF_OPEN_TIMEOUT < now)
        {
            self.half_open.pop_front();
        }
        let Some((connection, packet)) = Packet::decode(datagram) else {
            return Admission::Ignore;
        };
        let refuse = |reason| Admission::Reply(Packet::Refusal(reason).encode(connection));
        match packet {
            Packet::Hello { message, .. } if self.repeated(connection, message).is_some() => {
                let reply = self
                    .repeated(connection, message)
                    .map(|known| known.reply.clone());
                reply.map_or(Admission::Ignore, Admission::Reply)
            }
            Packet::Hello { .. } | Packet::Finish(_) if full => refuse(Reason::Busy),
            Packet::Hello { method, .. } if method != self.credentials.method() => refuse(match method {
                Method::Code => Reason::NeedsKey,
                Method::Keys => Reason::NeedsCode,
            }),
            // A different handshake under the same number: the address must first drop the other one.
            Packet::Hello { .. } if self.half_open.iter().any(|known| known.is(from, connection)) => {
                Admission::Ignore
            }
            Packet::Hello {
                token,
                message,
                method,
            } => {
                let peer = from.to_string();
                if self.half_open.len() >= TOKEN_THRESHOLD
                    && !self.tokens.is_valid(now, peer.as_bytes(), connection, &token)
                {
                    let token = self.tokens.token(now, peer.as_bytes(), connection);
                    return Admission::Reply(Packet::Retry { token }.encode(connection));
                }
                match (self.open(now, from, connection, message), method) {
                    (Some(reply), _) => Admission::Reply(reply),
                    (None, Method::Code) => refuse(Reason::WrongCode),
                    (None, Method::Keys) => Admission::Ignore,
                }
            }
            Packet::Finish(message) => match self.finish(now, from, connection, message) {
                Some(Ok(admitted)) => Admission::Admit(Box::new(admitted)),
                Some(Err(reason)) => refuse(reason),
                None => Admission::Ignore,
            },
            Packet::Retry { .. } | Packet::Reply(_) | Packet::Refusal(_) => Admission::Ignore,
        }
    }

    /// Returns the handshake that started with `hello`, from any address: the opener's may have changed since.
    fn repeated(&self, connection: u32, hello: &[u8]) -> Option<&HalfOpen> {
        let mut known = self.half_open.iter();
        known.find(|known| known.connection == connection && known.hello == hello)
    }

    /// Handles the last message of a handshake. Returns the opener, or why it is refused; `None` if the message is not
    /// authentic.
    fn finish(
        &mut self,
        now: Instant,
        from: SocketAddr,
        connection: u32,
        message: &[u8],
    ) -> Option<Result<Admitted, Reason>> {
        let mut candidates: Vec<usize> = (0..self.half_open.len())
            .filter(|&at| self.half_open[at].connection == connection)
            .collect();
        // The opener's address may have changed since its first message. Each attempt costs a key exchange.
        candidates.sort_by_key(|&at| self.half_open[at].from != from);
        for at in candidates.into_iter().take(MAX_ATTEMPTS) {
            let Some(proposal) = noise::read(&mut self.half_open[at].state, message) else {
                let (seed, hello) = (&self.half_open[at].seed, &self.half_open[at].hello);
                if let Some((fresh, ..)) = self.answer(connection, seed, hello) {
                    self.half_open[at].state = fresh;
                }
                continue;
            };
            // From here on the handshake is complete, and the opener has the code or the key.
            let mut opener = self.half_open.remove(at)?;
            let proposal = Proposal::decode(&proposal)?;
            let key = noise::peer_key(&opener.state)?;
            if !self.credentials.trusts(&key) {
                return Some(Err(Reason::UntrustedKey));
            }
            return Some(Ok(Admitted {
                connection,
                channel: noise::channel(&mut opener.state, Role::Responder, opener.cipher),
                proposal,
                name: self.credentials.name(&key),
                rtt: useful_bound(now - opener.since),
            }));
        }
        None
    }

    /// Answers a first message. Returns the state, the cipher and the second message, always the same ones for the same
    /// arguments; `None` if the opener does not have the code.
    fn answer(
        &self,
        connection: u32,
        seed: &[u8; 32],
        hello: &[u8],
    ) -> Option<(HandshakeState, Cipher, Vec<u8>)> {
        let mut state = noise::start(Role::Responder, &self.credentials, connection, seed);
        let aes = noise::read(&mut state, hello)?;
        let cipher = if self.aes && aes == [1] {
            Cipher::Aes128Gcm
        } else {
            Cipher::ChaCha20Poly1305
        };
        let acceptance = Acceptance {
            cipher,
            receive_window: self.receive_window,
        };
        let message = noise::write(&mut state, &acceptance.encode());
        Some((state, cipher, message))
    }

    /// Stores a handshake that starts with `hello`. Returns the reply; `None` if the opener does not have the code.
    fn open(&mut self, now: Instant, from: SocketAddr, connection: u32, hello: &[u8]) -> Option<Vec<u8>> {
        let seed = self.draw();
        let (state, cipher, message) = self.answer(connection, &seed, hello)?;
        let reply = Packet::Reply(&message).encode(connection);
        self.make_room(from);
        self.half_open.push_back(HalfOpen {
            from,
            connection,
            since: now,
            seed,
            hello: hello.to_vec(),
            reply: reply.clone(),
            state,
            cipher,
        });
        Some(reply)
    }

    /// Drops the oldest handshake of a host that has too many, or of all.
    fn make_room(&mut self, from: SocketAddr) {
        let of_host = |other: &HalfOpen| host(other.from) == host(from);
        let from_host = self.half_open.iter().filter(|other| of_host(other)).count();
        if from_host >= MAX_PER_HOST {
            let oldest = self.half_open.iter().position(of_host);
            let _ = oldest.and_then(|at| self.half_open.remove(at));
        } else if self.half_open.len() >= MAX_HALF_OPEN {
            self.half_open.pop_front();
        }
    }
}
