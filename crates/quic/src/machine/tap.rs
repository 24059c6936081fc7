//! Copies of 0-RTT and 1-RTT packets in clear text, where a real cryptography encrypts and decrypts them. The counters need their frames.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use noq_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig,
    Session, UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectError, ConnectionId, PathId, Side, TransportError};

use super::paths::{has_key_phase, number_of};

/// A 0-RTT or 1-RTT packet.
#[derive(Debug)]
pub(super) struct ClearPacket {
    pub is_sent: bool,
    /// Path ID.
    pub path: u8,
    pub number: u64,
    /// Key phase of a 1-RTT packet (RFC 9001, section 6).
    pub key_phase: bool,
    /// The frames.
    pub frames: Vec<u8>,
}

/// The packets since the last call of [`take`](Tap::take).
#[derive(Debug, Default)]
pub(super) struct Tap(Mutex<Vec<ClearPacket>>);

impl Tap {
    fn add(&self, is_sent: bool, path: PathId, number: u64, header: &[u8], frames: &[u8]) {
        let mut packets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        packets.push(ClearPacket {
            is_sent,
            path: number_of(path),
            number,
            key_phase: has_key_phase(header),
            frames: frames.to_vec(),
        });
    }

    pub(super) fn take(&self) -> Vec<ClearPacket> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A key whose packets are copied.
struct TappedKey {
    inner: Box<dyn PacketKey>,
    tap: Arc<Tap>,
}

impl PacketKey for TappedKey {
    fn encrypt(&self, path_id: PathId, packet: u64, buf: &mut [u8], header_len: usize) {
        let end = buf.len() - self.inner.tag_len();
        self.tap
            .add(true, path_id, packet, &buf[..header_len], &buf[header_len..end]);
        self.inner.encrypt(path_id, packet, buf, header_len);
    }

    fn decrypt(
        &self,
        path_id: PathId,
        packet: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        self.inner.decrypt(path_id, packet, header, payload)?;
        self.tap.add(false, path_id, packet, header, payload);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}

/// A session whose 0-RTT and 1-RTT packets are copied.
struct TappedSession {
    inner: Box<dyn Session>,
    tap: Arc<Tap>,
    /// Whether the handshake keys are known: the next ones are those of 1-RTT packets.
    has_handshake_keys: bool,
}

impl TappedSession {
    fn tapped(&self, pair: KeyPair<Box<dyn PacketKey>>) -> KeyPair<Box<dyn PacketKey>> {
        let tapped = |inner| -> Box<dyn PacketKey> {
            let tap = Arc::clone(&self.tap);
            Box::new(TappedKey { inner, tap })
        };
        KeyPair {
            local: tapped(pair.local),
            remote: tapped(pair.remote),
        }
    }
}

impl Session for TappedSession {
    fn initial_keys(&self, dst_cid: ConnectionId, side: Side) -> Keys {
        self.inner.initial_keys(dst_cid, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let (header, inner) = self.inner.early_crypto()?;
        let tap = Arc::clone(&self.tap);
        Some((header, Box::new(TappedKey { inner, tap })))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_handshake(buf)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let keys = self.inner.write_handshake(buf)?;
        if !std::mem::replace(&mut self.has_handshake_keys, true) {
            return Some(keys);
        }
        Some(Keys {
            header: keys.header,
            packet: self.tapped(keys.packet),
        })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let next = self.inner.next_1rtt_keys()?;
        Some(self.tapped(next))
    }

    fn is_valid_retry(&self, orig_dst_cid: ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}

/// A side of the handshake whose 0-RTT and 1-RTT packets are copied.
pub(super) struct Tapped<C: ?Sized> {
    pub inner: Arc<C>,
    pub tap: Arc<Tap>,
}

impl<C: ?Sized> Tapped<C> {
    fn session(&self, inner: Box<dyn Session>) -> Box<dyn Session> {
        Box::new(TappedSession {
            inner,
            tap: Arc::clone(&self.tap),
            has_handshake_keys: false,
        })
    }
}

impl ClientConfig for Tapped<dyn ClientConfig> {
    fn start_session(
        &self,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let inner = self.inner.start_session(version, server_name, params)?;
        Ok(self.session(inner))
    }
}

impl ServerConfig for Tapped<dyn ServerConfig> {
    fn initial_keys(&self, version: u32, dst_cid: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.inner.initial_keys(version, dst_cid)
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.inner.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(&self, version: u32, params: &TransportParameters) -> Box<dyn Session> {
        self.session(self.inner.start_session(version, params))
    }
}
