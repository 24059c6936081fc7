//! Configuration of the library: all randomness derives from one seed.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration as StdDuration;

use foundation::Generator;
use noq_proto::congestion::{CubicConfig, NewRenoConfig};
use noq_proto::crypto;
use noq_proto::{
    AckFrequencyConfig, ClientConfig, ConnectionId, ConnectionIdGenerator, EndpointConfig, IdleTimeout,
    MtuDiscoveryConfig, NoneTokenStore, ServerConfig, TransportConfig, VarInt,
};
use rand::{Rng, SeedableRng};

use super::controller::Factory;
use super::crypto::{NullClient, NullHmac, NullServer, NullToken};
use super::tap::{Tap, Tapped};
use crate::{CONNECTION_ID, ControllerChoice, LibraryController, QuicConfig};

/// Connection IDs from a seeded generator.
struct SeededIds(Generator);

impl ConnectionIdGenerator for SeededIds {
    fn generate_cid(&mut self) -> ConnectionId {
        connection_id(&mut self.0)
    }

    fn cid_len(&self) -> usize {
        CONNECTION_ID
    }

    fn cid_lifetime(&self) -> Option<StdDuration> {
        None
    }
}

fn connection_id(random: &mut Generator) -> ConnectionId {
    let mut bytes = [0; CONNECTION_ID];
    random.fill_bytes(&mut bytes);
    ConnectionId::new(&bytes)
}

/// Streams of a connection in progress at once: the largest number in a transport parameter of two bytes, as the library's default.
const MAX_STREAMS: u32 = 16_383;

/// Any two different addresses. The simulated network has its own routes. Those of a further path have its number as the third byte.
pub(super) const CLIENT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 50_000);
pub(super) const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 443);

/// The cryptography of one end: of a client, or of a server.
pub struct Cryptography<C: ?Sized> {
    /// TLS.
    pub handshake: Arc<C>,
    /// Signs the tokens of stateless resets.
    pub reset_key: Arc<dyn crypto::HmacKey>,
    /// Copies packets, if the cryptography encrypts them.
    pub(super) tap: Option<Arc<Tap>>,
}

impl<C: ?Sized> std::fmt::Debug for Cryptography<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cryptography").finish_non_exhaustive()
    }
}

impl<C: ?Sized> Cryptography<C> {
    /// A cryptography that encrypts nothing.
    fn null(handshake: Arc<C>) -> Self {
        Self {
            handshake,
            reset_key: Arc::new(NullHmac),
            tap: None,
        }
    }
}

impl Cryptography<dyn crypto::ClientConfig> {
    /// A client's cryptography that encrypts packets. The counters read copies of them in clear text.
    #[must_use]
    pub fn client(inner: Arc<dyn crypto::ClientConfig>, reset_key: Arc<dyn crypto::HmacKey>) -> Self {
        let tap = Arc::new(Tap::default());
        let handshake = Tapped {
            inner,
            tap: Arc::clone(&tap),
        };
        Self {
            handshake: Arc::new(handshake),
            reset_key,
            tap: Some(tap),
        }
    }

    /// `resumes` sends early data with a ticket; `ticket` is set when the client gets one.
    pub(super) fn null_client(resumes: bool, ticket: &Arc<AtomicBool>) -> Self {
        let ticket = Arc::clone(ticket);
        Self::null(Arc::new(NullClient { resumes, ticket }))
    }
}

impl Cryptography<dyn crypto::ServerConfig> {
    /// A server's cryptography that encrypts packets. The counters read copies of them in clear text.
    #[must_use]
    pub fn server(inner: Arc<dyn crypto::ServerConfig>, reset_key: Arc<dyn crypto::HmacKey>) -> Self {
        let tap = Arc::new(Tap::default());
        let handshake = Tapped {
            inner,
            tap: Arc::clone(&tap),
        };
        Self {
            handshake: Arc::new(handshake),
            reset_key,
            tap: Some(tap),
        }
    }

    pub(super) fn null_server(config: &QuicConfig) -> Self {
        Self::null(Arc::new(NullServer {
            certificate_chain: config.certificate_chain(),
            issues_tickets: config.zero_rtt == Some(true),
        }))
    }
}

/// Returns the settings of an endpoint.
pub(super) fn endpoint(
    config: &QuicConfig,
    reset_key: Arc<dyn crypto::HmacKey>,
    random: &mut Generator,
) -> EndpointConfig {
    let mut endpoint = EndpointConfig::new(reset_key);
    let mut seed = [0; 32];
    random.fill_bytes(&mut seed);
    let ids = random.next_u64();
    endpoint.rng_seed(Some(seed));
    endpoint.cid_generator(Arc::new(move || {
        Box::new(SeededIds(Generator::seed_from_u64(ids)))
    }));
    // A receiver accepts what senders of the same settings may send.
    let _ = endpoint.max_udp_payload_size(config.max_datagram_size().max(1472));
    endpoint
}

/// Returns the settings of a server. It sends no tokens, so none need a key.
pub(super) fn server(
    handshake: Arc<dyn crypto::ServerConfig>,
    transport: Arc<TransportConfig>,
) -> ServerConfig {
    let mut server = ServerConfig::new(handshake, Arc::new(NullToken));
    server.transport_config(transport);
    server
}

/// Returns the settings of a client.
pub(super) fn client(
    handshake: Arc<dyn crypto::ClientConfig>,
    transport: Arc<TransportConfig>,
    random: &mut Generator,
) -> ClientConfig {
    let mut client = ClientConfig::new(handshake);
    let first = connection_id(random);
    client.transport_config(transport);
    client.token_store(Arc::new(NoneTokenStore));
    client.initial_dst_cid_provider(Arc::new(move || first));
    client
}

/// Returns the transport settings of both sides, and the controllers if they are this project's.
pub(super) fn transport(config: &QuicConfig) -> (TransportConfig, Option<Arc<Factory>>) {
    let mut transport = TransportConfig::default();
    let size = config.max_datagram_size();
    let mut factory = None;
    match config.congestion() {
        ControllerChoice::Library(LibraryController::Cubic) => {
            transport.congestion_controller_factory(Arc::new(CubicConfig::default()));
        }
        ControllerChoice::Library(LibraryController::Reno) => {
            transport.congestion_controller_factory(Arc::new(NewRenoConfig::default()));
        }
        ControllerChoice::Own(own) => {
            let own = Arc::new(Factory::new(own, config.initial_window));
            transport.congestion_controller_factory(Arc::clone(&own) as _);
            factory = Some(own);
        }
    }
    let mut search = MtuDiscoveryConfig::default();
    search.upper_bound(size);
    transport
        .enable_segmentation_offload(false)
        .initial_mtu(config.first_datagram_size())
        .mtu_discovery_config(config.discovers_mtu().then_some(search))
        .stream_receive_window(window(config.receive_window()))
        .receive_window(window(config.receive_window()))
        .max_concurrent_bidi_streams(VarInt::from_u32(MAX_STREAMS))
        .max_concurrent_uni_streams(VarInt::from_u32(MAX_STREAMS))
        .datagram_send_buffer_size(config.send_window() as usize)
        .send_fairness(config.fair_streams == Some(true))
        .send_window(config.send_window());
    if let Some(threshold) = config.packet_threshold {
        transport.packet_threshold(threshold);
    }
    if config.ack_every.is_some() || config.ack_delay.is_some() || config.ack_reordering.is_some() {
        let mut frequency = AckFrequencyConfig::default();
        // The packets that may wait, and as without the frame, none of them out of order.
        frequency
            .ack_eliciting_threshold(VarInt::from_u32(config.ack_every.unwrap_or(2) - 1))
            .max_ack_delay(
                config
                    .ack_delay
                    .map(|delay| StdDuration::from_nanos(delay.as_nanos())),
            )
            .reordering_threshold(VarInt::from_u32(config.ack_reordering.unwrap_or(1)));
        transport.ack_frequency_config(Some(frequency));
    }
    if let Some(rtt) = config.initial_rtt {
        transport.initial_rtt(StdDuration::from_nanos(rtt.as_nanos()));
    }
    if config.paths() > 1 {
        let timeout = StdDuration::from_nanos(config.path_timeout().as_nanos());
        transport
            .max_concurrent_multipath_paths(config.paths())
            .default_path_max_idle_timeout(Some(timeout));
    }
    let idle = StdDuration::from_nanos(config.idle_timeout().as_nanos());
    transport.max_idle_timeout(IdleTimeout::try_from(idle).ok());
    (transport, factory)
}

fn window(bytes: u64) -> VarInt {
    VarInt::from_u64(bytes).unwrap_or(VarInt::MAX)
}
