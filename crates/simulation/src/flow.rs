//! An active flow between two hosts.

use experiment::outcome::FlowCounters;
use experiment::schedule::FlowStart;
use foundation::Instant;
use network::HostId;

use crate::endpoint::Endpoint;

/// An active flow.
pub(crate) struct Flow {
    pub number: u32,
    pub start: FlowStart,
    pub opened_at: Instant,
    /// Time at which the receiver had read `start.size` bytes.
    pub received_at: Option<Instant>,
    /// Index of the sender's path estimates.
    pub account: u32,
    /// The hosts of its ends.
    pub hosts: [HostId; 2],
    /// Whether its completion has been counted.
    pub counted: bool,
    /// Whether its next request waits for those of other flows (`barrier`).
    pub waits: bool,
    /// Retransmission timeouts of both ends by the end of each round so far.
    pub round_timeouts: Vec<u64>,
    pub ends: [Endpoint; 2],
    /// Its counters at the start of the measured time, if that was after its opening.
    pub baseline: Option<Box<FlowCounters>>,
}
