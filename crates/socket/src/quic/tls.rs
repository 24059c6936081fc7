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

/// Returns the cryptography of a client.
pub(super) fn client() -> Result<Cryptography<dyn ClientConfig>, Error> {
    let provider = tls13();
    let verifier = AnyCertificate(Arc::clone(&provider));
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(failed)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.resumption = Resumption::disabled();
    let config = QuicClientConfig::try_from(config).map_err(failed)?;
    Ok(Cryptography::client(Arc::new(config), reset_key()?))
}

/// Returns the cryptography of a server, with a new certificate.
pub(super) fn server(config: &QuicConfig) -> Result<Cryptography<dyn ServerConfig>, Error> {
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
    // Simulation has no session tickets.
    config.send_tls13_tickets = 0;
    let config = QuicServerConfig::try_from(config).map_err(failed)?;
    Ok(Cryptography::server(Arc::new(config), reset_key()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use foundation::{Generator, Instant};
    use quic::{Connection, Event};
    use rand::SeedableRng as _;
    use transport::Machine as _;

    /// Runs a handshake. Returns the sizes of all datagrams of both ends, in order.
    fn handshake(mut ends: [Connection; 2]) -> [Vec<usize>; 2] {
        let mut sizes = [Vec::new(), Vec::new()];
        let (mut now, mut connected) = (Instant::ZERO, 0);
        while connected < 2 {
            for side in [0, 1] {
                ends[side].handle_timeout(now);
                while let Some(datagram) = ends[side].poll_transmit(now) {
                    sizes[side].push(datagram.bytes.len());
                    ends[1 - side].handle_frame(now, datagram);
                }
                while let Some(event) = ends[side].poll_event() {
                    assert_eq!(event, Event::Connected);
                    connected += 1;
                }
            }
            now += foundation::Duration::from_millis(10);
            assert!(now < Instant::from_nanos(60_000_000_000));
        }
        sizes
    }

    /// Simulation has the sizes of this handshake: the same datagrams, and up to signatures and lengths of DER the same bytes.
    #[test]
    fn handshake_has_the_sizes_of_simulation() {
        for chain in [400, 1000, 3000, 10_000] {
            let json = format!(r#"{{"kind": "quic", "certificate_chain": "{chain}B"}}"#);
            let config: QuicConfig = serde_json::from_str(&json).unwrap();
            let random = Generator::seed_from_u64;
            let start = Instant::ZERO;
            let real = handshake([
                Connection::open_with(start, &config, client().unwrap(), random(1)),
                Connection::listen_with(start, &config, server(&config).unwrap(), random(2)),
            ]);
            let simulated = handshake([
                Connection::open(start, &config, random(1)),
                Connection::listen(start, &config, random(2)),
            ]);
            for side in [0, 1] {
                assert_eq!(
                    real[side].len(),
                    simulated[side].len(),
                    "{chain}: {real:?} and {simulated:?}"
                );
                let bytes = |sizes: &[usize]| sizes.iter().sum::<usize>();
                let difference = bytes(&real[side]).abs_diff(bytes(&simulated[side]));
                assert!(difference <= 16, "{chain}: {real:?} and {simulated:?}");
            }
        }
    }
}
