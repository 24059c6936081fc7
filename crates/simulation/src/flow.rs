//! An active flow between two hosts.

use experiment::outcome::FlowCounters;
use foundation::Instant;
use network::HostId;

use crate::endpoint::Endpoint;

/// An active flow.
pub(crate) struct Flow {
    pub number: u32,
    pub group: u32,
    pub pair: u32,
    /// Bytes to send, if known.
    pub size: Option<u64>,
    pub opened_at: Instant,
    /// Time at which the receiver had read `size` bytes.
    pub received_at: Option<Instant>,
    /// Number of flows that follow this one (`reconnect`).
    pub successors: u32,
    /// Index of the sender's path estimates.
    pub account: u32,
    /// The hosts of its ends.
    pub hosts: [HostId; 2],
    /// Whether its completion has been counted.
    pub counted: bool,
    pub ends: [Endpoint; 2],
    pub baseline: FlowCounters,
}
