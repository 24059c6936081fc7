//! Undoing the answer to losses that turn out to have been none (draft-ietf-ccwg-bbr, section 5.5.11).

use foundation::Instant;

use super::{Bbr, State};

/// What the model was before the losses of the last loss round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    bounds: Option<Bounds>,
    /// The search for bandwidth that the losses have ended.
    pub ended: Option<State>,
}

#[derive(Clone, Copy, Debug)]
struct Bounds {
    bw_shortterm: u64,
    inflight_shortterm: u64,
    inflight_longterm: u64,
}

impl Bbr {
    /// The first loss of a round: what follows may have to be undone (section 5.5.11.1).
    pub(super) fn remember(&mut self) {
        self.undo = Undo {
            bounds: Some(Bounds {
                bw_shortterm: self.bw_shortterm,
                inflight_shortterm: self.inflight_shortterm,
                inflight_longterm: self.inflight_longterm,
            }),
            ended: None,
        };
    }

    /// The losses were none (section 5.5.11.2): bounds are no lower than they were, and a search that
    /// they have ended goes on, unless ProbeRTT has come between.
    pub(super) fn take_back(&mut self, now: Instant) {
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
                // The pipe has drained meanwhile: it is filled before the probe goes on.
                self.cycle_started = now;
                self.start_refill();
            }
            _ => {}
        }
    }
}
