//! Configuration of the library: all randomness derives from one seed.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration as StdDuration;

use foundation::Generator;
use noq_proto::congestion::{CubicConfig, NewRenoConfig};
use noq_proto::{
    AckFrequencyConfig, ClientConfig, ConnectionId, ConnectionIdGenerator, EndpointConfig, IdleTimeout,
    MtuDiscoveryConfig, NoneTokenStore, ServerConfig, TransportConfig, VarInt,
};
use rand::{Rng, SeedableRng};

use super::controller::Factory;
use super::crypto::{NullClient, NullHmac, NullServer, NullToken};
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

/// Any two different addresses. The simulated network has its own routes.
pub(super) const CLIENT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 50_000);
pub(super) const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 443);

/// Returns the settings of an endpoint.
pub(super) fn endpoint(config: &QuicConfig, random: &mut Generator) -> EndpointConfig {
    let mut endpoint = EndpointConfig::new(Arc::new(NullHmac));
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

/// Returns the settings of a server.
pub(super) fn server(config: &QuicConfig, transport: Arc<TransportConfig>) -> ServerConfig {
    let crypto = NullServer {
        certificate_chain: config.certificate_chain(),
    };
    let mut server = ServerConfig::new(Arc::new(crypto), Arc::new(NullToken));
    server.transport_config(transport);
    server
}

/// Returns the settings of a client.
pub(super) fn client(transport: Arc<TransportConfig>, random: &mut Generator) -> ClientConfig {
    let mut client = ClientConfig::new(Arc::new(NullClient));
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
        .send_fairness(config.fair_streams == Some(true))
        .send_window(config.send_window());
    if let Some(threshold) = config.packet_threshold {
        transport.packet_threshold(threshold);
    }
    if let Some(packets) = config.ack_every {
        let mut frequency = AckFrequencyConfig::default();
        // The packets that may wait, and as without the frame, none of them out of order.
        frequency
            .ack_eliciting_threshold(VarInt::from_u32(packets - 1))
            .reordering_threshold(VarInt::from_u32(1));
        transport.ack_frequency_config(Some(frequency));
    }
    if let Some(rtt) = config.initial_rtt {
        transport.initial_rtt(StdDuration::from_nanos(rtt.as_nanos()));
    }
    if let Some(idle) = config.idle_timeout {
        let idle = IdleTimeout::try_from(StdDuration::from_nanos(idle.as_nanos()));
        transport.max_idle_timeout(idle.ok());
    }
    (transport, factory)
}

fn window(bytes: u64) -> VarInt {
    VarInt::from_u64(bytes).unwrap_or(VarInt::MAX)
}
