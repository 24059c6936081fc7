//! Watching a simulation.

use foundation::Instant;
use network::Observer;

use crate::body::{Parcel, Side};

/// Learns what happens in a world. Every method does nothing unless it is written; an unused watcher
/// (`()`) is compiled away.
pub trait WorldObserver: Observer<Parcel> {
    /// The world stands; route number i has `hops[i]` links.
    #[inline]
    fn began(&mut self, hops: &[u8]) {
        let _ = hops;
    }

    /// A retransmission timer ran out.
    #[inline]
    fn timed_out(&mut self, at: Instant, flow: u32, side: Side) {
        let _ = (at, flow, side);
    }

    /// An application read a piece of the stream; `total` counts all that it has read.
    #[inline]
    fn delivered(&mut self, at: Instant, flow: u32, side: Side, total: u64) {
        let _ = (at, flow, side, total);
    }
}

/// Nothing but the network's own events.
impl WorldObserver for () {}
