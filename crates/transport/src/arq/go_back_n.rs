//! Go-Back-N: a window of packets, a receiver that keeps only in-order packets, and cumulative ACKs. After a loss the
//! sender retransmits the whole window (Bertsekas and Gallager, Data Networks, section 2.4.2).

use foundation::{Duration, Instant};

use super::config::ArqConfig;
use super::retransmission::{AckFacts, RetransmissionPolicy};
use super::window::{SendWindow, Slot};

/// Number of duplicate ACKs that indicate a loss (RFC 5681, section 3.2).
const DUPLICATE_THRESHOLD: u32 = 3;

/// Retransmits the whole window after a timeout and, optionally, after the third duplicate ACK.
#[derive(Clone, Copy, Debug, Default)]
pub struct GoBackN {
    fast_retransmit: bool,
    duplicates: u32,
    /// Packets below this number were sent before the last retransmission of the window; duplicate ACKs for them are
    /// ignored (RFC 6582, section 4).
    recover: u64,
}

impl GoBackN {
    fn go_back(&mut self, window: &mut SendWindow, lost: impl FnMut(&Slot)) {
        self.duplicates = 0;
        self.recover = window.next();
        window.declare_lost(|_| true, lost);
    }
}

impl RetransmissionPolicy for GoBackN {
    fn of(config: &ArqConfig) -> Self {
        Self {
            fast_retransmit: config.fast_retransmit.unwrap_or(false),
            ..Self::default()
        }
    }

    const BUFFERS_OUT_OF_ORDER: bool = false;

    fn on_timeout(&mut self, window: &mut SendWindow, _: Instant, _: Duration, lost: impl FnMut(&Slot)) {
        self.go_back(window, lost);
    }

    fn on_acknowledgement(&mut self, window: &mut SendWindow, facts: AckFacts, lost: impl FnMut(&Slot)) {
        if !self.fast_retransmit {
            return;
        }
        if !facts.duplicate {
            self.duplicates = 0;
            return;
        }
        self.duplicates += 1;
        if self.duplicates == DUPLICATE_THRESHOLD && window.base() >= self.recover {
            self.go_back(window, lost);
        }
    }
}
