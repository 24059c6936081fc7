//! Stop-and-wait: one packet at a time; the next is sent when its ACK has arrived (Tanenbaum, Computer Networks,
//! section 3.3; Bertsekas and Gallager, Data Networks, section 2.4.1).

use foundation::{Duration, Instant};

use super::config::ArqConfig;
use super::retransmission::{AckFacts, RetransmissionPolicy};
use super::window::{SendWindow, Slot};

/// A window of one packet, retransmitted after a timeout.
#[derive(Clone, Copy, Debug, Default)]
pub struct StopAndWait;

impl RetransmissionPolicy for StopAndWait {
    fn of(_: &ArqConfig) -> Self {
        Self
    }

    const BUFFERS_OUT_OF_ORDER: bool = false;

    fn on_timeout(&mut self, window: &mut SendWindow, _: Instant, _: Duration, lost: impl FnMut(&Slot)) {
        window.declare_lost(|_| true, lost);
    }

    fn on_acknowledgement(&mut self, _: &mut SendWindow, _: AckFacts, _: impl FnMut(&Slot)) {}
}
