//! Authenticated key exchange and protected frames of file transfers.
//!
//! An [`Initiator`] opens a connection and a [`Responder`] admits it: a Noise handshake (`XX`, with `psk0` under a code) in
//! datagrams of their own. Both end with a [`Channel`], which protects the frames of `transport::arq`: their header
//! stays readable, their payload is encrypted, and both are authenticated.
//!
//! Like `transport`, the crate uses neither sockets nor clocks nor a global source of randomness: the caller passes time
//! and random bytes in, so every run can be repeated.

#![forbid(unsafe_code)]

mod channel;
mod code;
mod credentials;
mod initiator;
mod key;
mod noise;
mod packet;
mod replay;
mod responder;
mod round_trip;
mod terms;
mod text;
mod traffic;

pub use channel::{Channel, OpenError};
pub use code::Code;
pub use credentials::Credentials;
pub use initiator::{HandshakeError, Initiator, InitiatorOutcome};
pub use key::{PublicKey, SecretKey, TrustedKeys};
pub use packet::{HELLO_LENGTH, Reason, Refusal};
pub use responder::{Admission, Admitted, HALF_OPEN_TIMEOUT, Responder};
pub use terms::{Acceptance, Proposal};
pub use traffic::Cipher;
