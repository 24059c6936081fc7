//! TLS 1.3 of a trial's ends: rustls with ring, the sizes of simulation's handshake, and a certificate made at run time.

use std::sync::Arc;

use quic::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quic::crypto::{ClientConfig, ServerConfig};
use quic::{Cryptography, QuicConfig};
use ring::hmac;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring as provider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache, StoresServerSessions};
use rustls::{DigitallySignedStruct, SignatureScheme};

use super::certificate;
use crate::error::{Error, random};

/// The protocol name of a trial's ends (ALPN).
const PROTOCOL: &[u8] = b"h3";

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Tls(error.to_string())
}

/// AES-128-GCM and X25519 first, as in simulation.
fn tls13() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![
            provider::cipher_suite::TLS13_AES_128_GCM_SHA256,
            provider::cipher_suite::TLS13_AES_256_GCM_SHA384,
            provider::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        ],
        kx_groups: vec![provider::kx_group::X25519, provider::kx_group::SECP256R1],
        ..provider::default_provider()
    })
}

fn reset_key() -> Result<Arc<hmac::Key>, Error> {
    Ok(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &random::<32>()?)))
}

/// Accepts any certificate whose key signed the handshake: the peer is a process of the same trial, found by its address.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("QUIC requires TLS 1.3".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Sessions that a server keeps for its tickets; the oldest leaves for a new one.
const MOST_SESSIONS: usize = 1024;

/// TLS of the connections between two hosts whose tickets later connections use for early data (RFC 8446, sections 2.2 and 2.3).
/// Each connection gets a ticket, and each ticket serves one connection. Of eight or more unused tickets the client keeps the newest
/// eight.
#[derive(Clone)]
pub struct Sessions {
    client: QuicClientConfig,
    server: QuicServerConfig,
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

impl Sessions {
    /// Returns the TLS of both hosts, without tickets.
    ///
    /// # Errors
    /// [`Error::Tls`] if there is no certificate of the size in the settings.
    pub fn new(config: &QuicConfig) -> Result<Self, Error> {
        Ok(Self {
            client: client_config(Resumption::in_memory_sessions(1))?,
            server: server_config(config, ServerSessionMemoryCache::new(MOST_SESSIONS))?,
        })
    }
}

/// Returns the cryptography of a client.
pub(super) fn client(sessions: Option<&Sessions>) -> Result<Cryptography<dyn ClientConfig>, Error> {
    let config = match sessions {
        Some(sessions) => sessions.client.clone(),
        None => client_config(Resumption::disabled())?,
    };
    Ok(Cryptography::client(Arc::new(config), reset_key()?))
}

fn client_config(resumption: Resumption) -> Result<QuicClientConfig, Error> {
    let provider = tls13();
    let verifier = AnyCertificate(Arc::clone(&provider));
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(failed)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.resumption = resumption;
    // Without tickets there are none to send it with.
    config.enable_early_data = true;
    QuicClientConfig::try_from(config).map_err(failed)
}

/// Returns the cryptography of a server: that of the sessions, or one with a new certificate and without tickets.
pub(super) fn server(
    config: &QuicConfig,
    sessions: Option<&Sessions>,
) -> Result<Cryptography<dyn ServerConfig>, Error> {
    let config = match sessions {
        Some(sessions) => sessions.server.clone(),
        None => server_config(config, Arc::new(NoServerSessionStorage {}))?,
    };
    Ok(Cryptography::server(Arc::new(config), reset_key()?))
}

fn server_config(
    config: &QuicConfig,
    storage: Arc<dyn StoresServerSessions>,
) -> Result<QuicServerConfig, Error> {
    let chain = certificate::chain(config.certificate_chain())?;
    let certificates = chain.certificates.into_iter().map(CertificateDer::from).collect();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(chain.key));
    let mut config = rustls::ServerConfig::builder_with_provider(tls13())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(failed)?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(failed)?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    // As in simulation: a ticket for each connection, if there is a place for its session.
    if storage.can_cache() {
        config.send_tls13_tickets = 1;
        config.max_early_data_size = u32::MAX;
    } else {
        config.send_tls13_tickets = 0;
    }
    config.session_storage = storage;
    QuicServerConfig::try_from(config).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use foundation::{Generator, Instant};
    use quic::{Connection, Event};
    use rand::SeedableRng as _;
    use transport::Machine as _;

    /// Runs a request of 400 bytes for a second. Returns the sizes of all datagrams of both ends, in order, and the time in ms at which
    /// the server has read the request.
    fn run(mut ends: [Connection; 2]) -> ([Vec<usize>; 2], u64) {
        let mut sizes = [Vec::new(), Vec::new()];
        let mut read_at = None;
        for tick in 0..100 {
            let now = Instant::from_nanos(tick * 10_000_000);
            for side in [0, 1] {
                ends[side].handle_timeout(now);
                while let Some(event) = ends[side].poll_event() {
                    match event {
                        Event::Connected if side == 0 => assert_eq!(ends[0].write(400), 400),
                        Event::Readable if ends[side].read_all(now) > 0 => read_at = Some(tick * 10),
                        Event::Connected | Event::Readable => {}
                        other => panic!("{other:?}"),
                    }
                }
                while let Some(datagram) = ends[side].poll_transmit(now) {
                    sizes[side].push(datagram.bytes.len());
                    ends[1 - side].handle_frame(now, datagram);
                }
            }
        }
        assert_eq!(ends[0].statistics().bytes_acknowledged, 400);
        assert_eq!(ends[0].statistics().packets_sent, 1);
        (sizes, read_at.unwrap())
    }

    /// Returns both ends with TLS, and as simulated.
    fn pairs(json: &str, sessions: Option<&Sessions>, resumes: bool) -> [[Connection; 2]; 2] {
        let config: QuicConfig = serde_json::from_str(json).unwrap();
        let random = Generator::seed_from_u64;
        let start = Instant::ZERO;
        let real = [
            Connection::open_with(start, &config, client(sessions).unwrap(), random(1)),
            Connection::listen_with(start, &config, server(&config, sessions).unwrap(), random(2)),
        ];
        let simulated = [
            Connection::resume(start, &config, resumes, random(1)),
            Connection::listen(start, &config, random(2)),
        ];
        [real, simulated]
    }

    /// Compares a connection with TLS with that of simulation. Returns the times at which the server has read the request.
    fn compare(pairs: [[Connection; 2]; 2]) -> [u64; 2] {
        let [(real, at), (simulated, simulated_at)] = pairs.map(run);
        for side in [0, 1] {
            assert_eq!(
                real[side].len(),
                simulated[side].len(),
                "{real:?} and {simulated:?}"
            );
            let bytes = |sizes: &[usize]| sizes.iter().sum::<usize>();
            let difference = bytes(&real[side]).abs_diff(bytes(&simulated[side]));
            assert!(difference <= 16, "{real:?} and {simulated:?}");
        }
        [at, simulated_at]
    }

    /// Simulation has the sizes of this handshake: the same datagrams, and up to signatures and lengths of DER the same bytes.
    #[test]
    fn handshake_has_the_sizes_of_simulation() {
        for chain in [400, 1000, 3000, 10_000] {
            let json = format!(r#"{{"kind": "quic", "certificate_chain": "{chain}B"}}"#);
            let [at, simulated_at] = compare(pairs(&json, None, false));
            assert_eq!(at, simulated_at, "{chain}");
        }
    }

    /// The first connection gets a ticket. The second one uses it: its request leaves with the first flight. The third one uses
    /// that of the second.
    #[test]
    fn resumed_handshake_has_the_sizes_of_simulation() {
        let json = r#"{"kind": "quic", "zero_rtt": true}"#;
        let sessions = Sessions::new(&serde_json::from_str(json).unwrap()).unwrap();
        for number in 0..3 {
            let times = compare(pairs(json, Some(&sessions), number > 0));
            let first = times[0] == 0;
            assert_eq!(first, number > 0, "{number}: {times:?}");
            assert_eq!(times[0], times[1], "{number}");
        }
    }

    #[test]
    fn ticket_serves_one_connection() {
        let json = r#"{"kind": "quic", "zero_rtt": true}"#;
        let sessions = Sessions::new(&serde_json::from_str(json).unwrap()).unwrap();
        let [first, _] = pairs(json, Some(&sessions), false);
        run(first);
        // Two at once, of which one gets the ticket.
        let [[second, _], _] = pairs(json, Some(&sessions), false);
        let [[third, _], _] = pairs(json, Some(&sessions), false);
        let is_early = |mut connection: Connection| connection.poll_event() == Some(Event::Connected);
        assert!(is_early(second));
        assert!(!is_early(third));
    }
}
