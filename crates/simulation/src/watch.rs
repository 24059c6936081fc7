//! Observation of a simulation.

use experiment::schedule::FlowStart;
use experiment::trace::Decision;
use foundation::Instant;
use network::Observer;

use crate::body::{Parcel, Side};

/// Receives the events of a world. By default every method does nothing; `()` is compiled away.
pub trait WorldObserver: Observer<Parcel> {
    /// The world is complete; route i has `hops[i]` links.
    #[inline]
    fn started(&mut self, hops: &[u8]) {
        let _ = hops;
    }

    /// A flow starts.
    #[inline]
    fn opened(&mut self, flow: u32, start: FlowStart) {
        let _ = (flow, start);
    }

    /// Takes the mean queueing delay of a flow's data since the last call, in seconds, if recorded.
    #[inline]
    fn take_wait(&mut self, flow: u32) -> Option<f64> {
        let _ = flow;
        None
    }

    /// A retransmission timer expired.
    #[inline]
    fn timed_out(&mut self, at: Instant, flow: u32, side: Side) {
        let _ = (at, flow, side);
    }

    /// Returns whether it receives the decisions of senders.
    #[inline]
    fn watches_decisions(&self) -> bool {
        false
    }

    /// The state of a flow's sender after an event; `decision` has no time and flow.
    #[inline]
    fn decided(&mut self, at: Instant, flow: u32, decision: Decision) {
        let _ = (at, flow, decision);
    }

    /// An application read from the stream; `total` counts all bytes it has read.
    #[inline]
    fn delivered(&mut self, at: Instant, flow: u32, side: Side, total: u64) {
        let _ = (at, flow, side, total);
    }
}

/// No observation.
impl WorldObserver for () {}
