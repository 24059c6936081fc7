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
        // The receiver keeps no later packet: the first missing one must not wait behind those lost before.
        window.sort_lost();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arq::frame::StreamRange;
    use crate::congestion::Snapshot;

    #[test]
    fn the_first_missing_packet_is_sent_first_after_each_timeout() {
        let (now, timeout) = (Instant::ZERO, Duration::from_millis(100));
        let mut window = SendWindow::new(0);
        let mut policy = GoBackN::default();
        for number in 0..8_u64 {
            let range = StreamRange {
                offset: number * 1000,
                length: 1000,
            };
            window.push(now, range, false, Snapshot::default());
        }
        // Each retransmission of the first packet is lost, too.
        for _ in 0..5 {
            policy.on_timeout(&mut window, now, timeout, |_| {});
            assert_eq!(window.next_lost(), Some(0));
            window.retransmit(now, 0, Snapshot::default());
        }
        window.acknowledge(1, |_| {});
        let order: Vec<u64> = std::iter::from_fn(|| {
            let sequence = window.next_lost()?;
            window.retransmit(now, sequence, Snapshot::default());
            Some(sequence)
        })
        .collect();
        assert_eq!(order, [1, 2, 3, 4, 5, 6, 7]);
    }
}
