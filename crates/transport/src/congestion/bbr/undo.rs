//! Undo of the response to spurious losses (draft-ietf-ccwg-bbr, section 5.5.11).

use foundation::Instant;

use super::{Bbr, State};

/// State before the losses of the last loss round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    bounds: Option<Bounds>,
    /// State of the search for bandwidth that the losses ended.
    pub ended: Option<State>,
}

#[derive(Clone, Copy, Debug)]
struct Bounds {
    bw_shortterm: u64,
    inflight_shortterm: u64,
    inflight_longterm: u64,
}

impl Bbr {
    /// Saves the state at the first loss of a round (section 5.5.11.1).
    pub(super) fn save_bounds(&mut self) {
        self.undo = Undo {
            bounds: Some(Bounds {
                bw_shortterm: self.bw_shortterm,
                inflight_shortterm: self.inflight_shortterm,
                inflight_longterm: self.inflight_longterm,
            }),
            ended: None,
        };
    }

    /// Handles spurious losses (section 5.5.11.2): restores the bounds, and resumes a search that the losses ended,
    /// unless ProbeRTT intervened.
    pub(super) fn undo_losses(&mut self, now: Instant) {
        let undo = std::mem::take(&mut self.undo);
        if self.timed_out {
            self.timed_out = false;
            self.window = self.window.max(self.prior_window);
        }
        let Some(bounds) = undo.bounds else { return };
        self.loss_in_round = false;
        self.full_pipe.restart(0);
        self.bw_shortterm = self.bw_shortterm.max(bounds.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(bounds.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(bounds.inflight_longterm);
        match undo.ended {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe.ever = false;
                if self.state != State::ProbeRtt {
                    self.enter_startup();
                }
            }
            Some(State::Up) if self.state.is_probe_bandwidth() && self.state != State::Up => {
                // The pipe has drained: it is refilled before the probe resumes.
                self.cycle_started = now;
                self.start_refill();
            }
            _ => {}
        }
    }
}
