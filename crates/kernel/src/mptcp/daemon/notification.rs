//! What a path manager reports while it runs.

use std::net::IpAddr;

use serde::Serialize;

/// An event of the path manager, for its caller.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Notification {
    /// The path manager is ready.
    Ready {
        /// The kind of its path policy.
        policy: String,
        /// The addresses of the host's paths.
        paths: Vec<IpAddr>,
        /// Whether it changed `net.mptcp.pm_type`.
        set_sysctl: bool,
    },
    /// A connection opened.
    Opened {
        /// Its token.
        token: u32,
        /// The peer.
        to: IpAddr,
        /// Bytes that it will send; null if unknown.
        size: Option<u64>,
        /// The source address of its first subflow.
        from: IpAddr,
    },
    /// The path manager requested a further subflow.
    Joined {
        /// The token of the connection.
        token: u32,
        /// The subflow's source address.
        from: IpAddr,
        /// The subflow's destination address.
        to: IpAddr,
    },
    /// The path manager announced a further address of this host to the peer of a connection.
    Announced {
        /// The token of the connection.
        token: u32,
        /// The address.
        address: IpAddr,
    },
    /// A connection stopped using an address that this host lost.
    Left {
        /// The token of the connection.
        token: u32,
        /// The address of this host.
        from: IpAddr,
    },
    /// The kernel refused a request.
    Refused {
        /// The token of the connection.
        token: u32,
        /// The kernel's error.
        reason: String,
    },
    /// A connection closed.
    Closed {
        /// Its token.
        token: u32,
        /// Acknowledged bytes by address of this host, as last read.
        bytes: Vec<(IpAddr, u64)>,
        /// Received bytes by address of this host, as last read.
        received: Vec<(IpAddr, u64)>,
    },
}
