//! The two sides of the handshake.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use noq_proto::crypto::{
    ClientConfig, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig, Session,
    UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};

use super::keys::{keys, packet_pair};
use super::messages::{self, Message};

/// Position of an end in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A client before its ClientHello, a server before the client's.
    Start,
    /// A client that waits for the ServerHello.
    HelloSent,
    /// The ServerHello is known; handshake keys follow.
    HandshakeKeys,
    /// A server that writes its certificate, a client that waits for it.
    Certificate,
    /// The keys of 1-RTT packets follow.
    FinalKeys,
    /// A server that waits for the client's Finished.
    WaitsForFinished,
    /// Complete.
    Done,
}

/// One end of a handshake.
struct NullSession {
    side: Side,
    step: Step,
    own: Vec<u8>,
    peer: Option<Vec<u8>>,
    certificate_chain: usize,
    /// Whether the server issues a ticket and accepts early data.
    issues_tickets: bool,
    /// Whether the session is resumed and has early data.
    resumes: bool,
    /// Set when the client gets a ticket.
    ticket: Arc<AtomicBool>,
    /// Bytes of an incomplete message.
    buffer: Vec<u8>,
    /// Key updates of 1-RTT packets that have keys, modulo 256.
    updates: u8,
}

impl NullSession {
    fn new(side: Side, parameters: &TransportParameters) -> Self {
        let mut own = Vec::new();
        parameters.write(&mut own);
        Self {
            side,
            step: Step::Start,
            own,
            peer: None,
            certificate_chain: 0,
            issues_tickets: false,
            resumes: false,
            ticket: Arc::default(),
            buffer: Vec::new(),
            updates: 0,
        }
    }

    fn write(&self, message: Message, out: &mut Vec<u8>) {
        messages::write(message, &self.own, self.certificate_chain, self.resumes, out);
    }

    fn read(&mut self, kind: u8, body: &[u8]) -> Result<(), TransportError> {
        let is = |message: Message| kind == message as u8;
        match (self.side, self.step) {
            (Side::Server, Step::Start) if is(Message::ClientHello) => {
                self.peer = Some(messages::parameters(Message::ClientHello, body).to_vec());
                self.resumes = self.issues_tickets && messages::resumes(body);
                self.step = Step::HandshakeKeys;
            }
            (Side::Server, Step::WaitsForFinished) if is(Message::Finished) => self.step = Step::Done,
            (Side::Client, Step::HelloSent) if is(Message::ServerHello) => self.step = Step::HandshakeKeys,
            (Side::Client, Step::Certificate) if is(Message::EncryptedExtensions) => {
                self.peer = Some(messages::parameters(Message::EncryptedExtensions, body).to_vec());
            }
            (Side::Client, Step::Certificate)
                if is(Message::Certificate) || is(Message::CertificateVerify) => {}
            (Side::Client, Step::Certificate) if is(Message::Finished) => self.step = Step::FinalKeys,
            (Side::Client, Step::Done) if is(Message::NewSessionTicket) => {
                self.ticket.store(true, Ordering::Relaxed);
            }
            _ => {
                // unexpected_message (RFC 8446, section 6.2)
                let code = TransportErrorCode::crypto(10);
                let reason = format!("unexpected handshake message {kind}");
                return Err(TransportError::new(code, reason));
            }
        }
        Ok(())
    }
}

impl Session for NullSession {
    fn initial_keys(&self, _: ConnectionId, _: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let keys = keys();
        self.resumes.then_some((keys.header.local, keys.packet.local))
    }

    /// The server of a simulation accepts the early data of its own tickets.
    fn early_data_accepted(&self) -> Option<bool> {
        self.side.is_client().then_some(self.resumes)
    }

    fn is_handshaking(&self) -> bool {
        self.step != Step::Done
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.buffer.extend_from_slice(buf);
        while let Some((kind, body)) = messages::take(&mut self.buffer) {
            self.read(kind, &body)?;
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        // A client with a ticket remembers the server's parameters, which are its own: both ends have one configuration.
        let remembered = Some(&self.own).filter(|_| self.resumes && self.side.is_client());
        let Some(peer) = self.peer.as_ref().or(remembered) else {
            return Ok(None);
        };
        Ok(Some(TransportParameters::read(self.side, &mut peer.as_slice())?))
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        match (self.side, self.step) {
            (Side::Client, Step::Start) => {
                self.write(Message::ClientHello, buf);
                self.step = Step::HelloSent;
                None
            }
            (side, Step::HandshakeKeys) => {
                if side.is_server() {
                    self.write(Message::ServerHello, buf);
                }
                self.step = Step::Certificate;
                Some(keys())
            }
            (Side::Server, Step::Certificate) => {
                self.write(Message::EncryptedExtensions, buf);
                if !self.resumes {
                    self.write(Message::Certificate, buf);
                    self.write(Message::CertificateVerify, buf);
                }
                self.write(Message::Finished, buf);
                self.step = Step::WaitsForFinished;
                Some(keys())
            }
            (Side::Client, Step::FinalKeys) => {
                self.write(Message::Finished, buf);
                self.step = Step::Done;
                Some(keys())
            }
            (Side::Server, Step::Done) if std::mem::take(&mut self.issues_tickets) => {
                self.write(Message::NewSessionTicket, buf);
                None
            }
            _ => None,
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.updates = self.updates.wrapping_add(1);
        Some(packet_pair(self.updates))
    }

    fn is_valid_retry(&self, _: ConnectionId, _: &[u8], _: &[u8]) -> bool {
        true
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        output.fill(0);
        Ok(())
    }
}

/// Starts sessions of clients.
pub(in crate::machine) struct NullClient {
    /// Whether it has a ticket.
    pub resumes: bool,
    /// Set when it gets a ticket.
    pub ticket: Arc<AtomicBool>,
}

impl ClientConfig for NullClient {
    fn start_session(
        &self,
        _: u32,
        _: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(NullSession {
            resumes: self.resumes,
            ticket: Arc::clone(&self.ticket),
            ..NullSession::new(Side::Client, params)
        }))
    }
}

/// Starts sessions of servers.
pub(in crate::machine) struct NullServer {
    /// Bytes of the certificate chain.
    pub certificate_chain: usize,
    /// Whether it issues tickets and accepts early data.
    pub issues_tickets: bool,
}

impl ServerConfig for NullServer {
    fn initial_keys(&self, _: u32, _: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _: u32, _: ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(&self, _: u32, params: &TransportParameters) -> Box<dyn Session> {
        Box::new(NullSession {
            certificate_chain: self.certificate_chain,
            issues_tickets: self.issues_tickets,
            ..NullSession::new(Side::Server, params)
        })
    }
}
