//! Retransmission policies: the part in which ARQ protocols differ.
//!
//! A new protocol is one file with a [`RetransmissionPolicy`] and one line in `protocols!`
//! in `mod.rs`.

use foundation::{Duration, Instant};

use super::config::ArqConfig;
use super::window::{SendWindow, Slot};

/// Properties of a processed ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFacts {
    /// It acknowledged nothing new while packets were outstanding, and a data frame triggered it.
    pub duplicate: bool,
    /// The number of the transmission that triggered it, if known.
    pub delivered_order: Option<u64>,
    /// It answers an earlier transmission of a packet that was retransmitted since: the retransmission was spurious
    /// (RFC 3522).
    pub spurious: bool,
}

/// A retransmission policy.
pub trait RetransmissionPolicy {
    /// Returns the policy of these settings.
    fn of(config: &ArqConfig) -> Self;

    /// Whether the receiver buffers out-of-order packets.
    const BUFFERS_OUT_OF_ORDER: bool;

    /// Handles the expiry of the oldest packet's timer after `timeout`: declares the packets lost that this protocol
    /// retransmits then.
    fn on_timeout(
        &mut self,
        window: &mut SendWindow,
        now: Instant,
        timeout: Duration,
        lost: impl FnMut(&Slot),
    );

    /// Number of later transmissions delivered that indicates a loss; 0 if no number does.
    fn gap(&self) -> u64 {
        0
    }

    /// Handles an ACK after the window was updated: declares the packets lost that this protocol retransmits then.
    fn on_acknowledgement(&mut self, window: &mut SendWindow, facts: AckFacts, lost: impl FnMut(&Slot));
}
