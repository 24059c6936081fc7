//! Selective repeat: a window of packets, a receiver that buffers out-of-order packets, and selective ACKs. Only
//! missing packets are retransmitted (Bertsekas and Gallager, Data Networks, section 2.4.3).

use foundation::{Duration, Instant};

use super::config::{ArqConfig, Window};
use super::retransmission::{AckFacts, RetransmissionPolicy};
use super::window::{SendWindow, Slot};

/// Number of later transmissions delivered that indicates a loss (RFC 5681's three duplicates, RFC 9002's
/// kPacketThreshold, section 6.1.1).
const INITIAL_GAP_THRESHOLD: u64 = 3;

/// On a path that reorders by more than this, gaps do not indicate losses.
const MAX_GAP_THRESHOLD: u64 = 300;

/// Each packet has its own timer. With gap-driven retransmission a packet is also retransmitted when enough packets
/// sent after it have arrived.
///
/// Gaps are counted in the order of transmission, not of sequence numbers, so that lost retransmissions are detected
/// in the same way (the idea of RACK, RFC 8985, and of QUIC's packet numbers).
#[derive(Clone, Copy, Debug)]
pub struct SelectiveRepeat {
    gap_retransmit: bool,
    threshold: u64,
    newest_delivered: u64,
}

impl RetransmissionPolicy for SelectiveRepeat {
    fn of(config: &ArqConfig) -> Self {
        let gaps = config.window() == Window::Auto;
        Self {
            gap_retransmit: config.gap_retransmit.unwrap_or(gaps),
            threshold: INITIAL_GAP_THRESHOLD,
            newest_delivered: 0,
        }
    }

    const BUFFERS_OUT_OF_ORDER: bool = true;

    fn on_timeout(
        &mut self,
        window: &mut SendWindow,
        now: Instant,
        timeout: Duration,
        lost: impl FnMut(&Slot),
    ) {
        window.declare_lost(|slot| slot.sent_at + timeout <= now, lost);
    }

    fn gap(&self) -> u64 {
        self.threshold
    }

    fn on_acknowledgement(&mut self, window: &mut SendWindow, facts: AckFacts, lost: impl FnMut(&Slot)) {
        if !self.gap_retransmit {
            return;
        }
        if facts.spurious {
            // The path reorders, or the timeout was too short: require a larger gap (RFC 8985, section 7.1).
            self.threshold = (self.threshold * 2).min(MAX_GAP_THRESHOLD);
        }
        if let Some(order) = facts.delivered_order {
            self.newest_delivered = self.newest_delivered.max(order);
        }
        let (newest, threshold) = (self.newest_delivered, self.threshold);
        window.declare_lost(|slot| slot.order + threshold <= newest, lost);
    }
}
