//! Selective repeat: a window of packets, a receiver that keeps what comes out of order, and
//! selective ACKs. Only what is missing is sent again (Bertsekas and Gallager, Data Networks,
//! section 2.4.3).

use foundation::{Duration, Instant};

use super::discipline::{AckFacts, Discipline};
use super::window::{SendWindow, Slot};

/// So many later transmissions delivered stand for a loss (RFC 5681's three duplicates, RFC 9002's
/// kPacketThreshold, section 6.1.1).
const INITIAL_GAP_THRESHOLD: u64 = 3;

/// A path that reorders by more than this is one on which gaps say nothing.
const MAX_GAP_THRESHOLD: u64 = 300;

/// The rule: each packet has a timer of its own; with gap-driven retransmission a packet is also sent
/// again when enough packets that left after it have arrived.
///
/// Gaps are counted in the order of transmission, not of sequence numbers, so a retransmission that
/// is lost again is found in the same way (the idea of RACK, RFC 8985, and of QUIC's packet numbers).
#[derive(Clone, Copy, Debug)]
pub struct SelectiveRepeat {
    gap_retransmit: bool,
    threshold: u64,
    newest_delivered: u64,
}

impl SelectiveRepeat {
    /// The rule; with `gap_retransmit` gaps count as losses.
    #[must_use]
    pub const fn new(gap_retransmit: bool) -> Self {
        Self {
            gap_retransmit,
            threshold: INITIAL_GAP_THRESHOLD,
            newest_delivered: 0,
        }
    }
}

impl Discipline for SelectiveRepeat {
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

    fn on_acknowledgement(&mut self, window: &mut SendWindow, facts: AckFacts, lost: impl FnMut(&Slot)) {
        if !self.gap_retransmit {
            return;
        }
        if facts.spurious {
            // The path reorders, or the timer was short: be slower to believe in a loss (RFC 8985, section 7.1).
            self.threshold = (self.threshold * 2).min(MAX_GAP_THRESHOLD);
        }
        if let Some(order) = facts.delivered_order {
            self.newest_delivered = self.newest_delivered.max(order);
        }
        let (newest, threshold) = (self.newest_delivered, self.threshold);
        window.declare_lost(|slot| slot.order + threshold <= newest, lost);
    }
}
