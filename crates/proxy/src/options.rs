//! Options of a TCP relay.

use std::net::SocketAddr;
use std::sync::Arc;

use foundation::{Duration, Streams};
use network::PathSpec;
use transport::tcp::TcpConfig;

use crate::negotiation::Mode;

/// Idle time before keep-alive probes unless the settings have another one. A reset that the path loses would otherwise
/// leave the other end open forever.
const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// Options of a [`Proxy`](crate::Proxy).
#[derive(Clone, Debug)]
pub struct ProxyOptions {
    /// The links; forward is from the clients to the targets.
    pub path: PathSpec,
    /// Whether each connection has a path of its own instead of a share of one.
    pub separate: bool,
    /// TCP between the ends of the path.
    pub tcp: Arc<TcpConfig>,
    /// Random streams of the path and of TCP.
    pub streams: Streams,
}

impl ProxyOptions {
    /// Returns options for one shared path. Nagle's algorithm applies in the operating system's connections, so it is off
    /// unless set; keep-alive probes start after 60 s unless set.
    #[must_use]
    pub fn new(path: PathSpec, tcp: TcpConfig, streams: Streams) -> Self {
        let tcp = TcpConfig {
            nagle: tcp.nagle.or(Some(false)),
            keep_alive: tcp.keep_alive.or(Some(KEEP_ALIVE)),
            ..tcp
        };
        Self {
            path,
            separate: false,
            tcp: Arc::new(tcp),
            streams,
        }
    }
}

/// A listening address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Where clients connect to. Port 0 takes any free port.
    pub listen: SocketAddr,
    /// Where their connections lead.
    pub mode: Mode,
}

/// A listening address for UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpListener {
    /// Where clients send to. Port 0 takes any free port.
    pub listen: SocketAddr,
    /// Where their datagrams go.
    pub to: SocketAddr,
}

/// Options of a [`Relay`](crate::Relay).
#[derive(Clone, Debug)]
pub struct RelayOptions {
    /// Listening addresses with their targets.
    pub listeners: Vec<Listener>,
    /// Listening addresses for UDP, which uses the same path.
    pub udp: Vec<UdpListener>,
    /// The path and TCP.
    pub proxy: ProxyOptions,
}
