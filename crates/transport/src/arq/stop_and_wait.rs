//! Stop-and-wait: one packet at a time; the next leaves when its ACK has come (Tanenbaum, Computer
//! Networks, section 3.3; Bertsekas and Gallager, Data Networks, section 2.4.1).

use foundation::{Duration, Instant};

use super::discipline::{AckFacts, Discipline};
use super::window::{SendWindow, Slot};

/// The rule: a window of one, sent again when its timer runs out.
#[derive(Clone, Copy, Debug, Default)]
pub struct StopAndWait;

impl Discipline for StopAndWait {
    const BUFFERS_OUT_OF_ORDER: bool = false;

    fn on_timeout(&mut self, window: &mut SendWindow, _: Instant, _: Duration, lost: impl FnMut(&Slot)) {
        window.declare_lost(|_| true, lost);
    }

    fn on_acknowledgement(&mut self, _: &mut SendWindow, _: AckFacts, _: impl FnMut(&Slot)) {}
}
