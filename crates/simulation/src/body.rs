//! What packets carry in simulation: a typed frame. No bytes exist.

use network::{Body, Packet, RouteId, UDP_IPV4_OVERHEAD};
use transport::arq::{Frame, StreamRange};

/// A frame on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedFrame {
    /// The frame as it was sent.
    pub frame: Frame<StreamRange>,
    /// Whether a bit flipped on the way; the checksum of the real frame would tell.
    pub corrupt: bool,
}

impl Body for SimulatedFrame {
    fn flip_bit(&mut self, _: u64) {
        self.corrupt = true;
    }
}

/// The packet that carries `frame` along `route`.
#[must_use]
#[inline]
pub fn packet(route: RouteId, frame: Frame<StreamRange>) -> Packet<SimulatedFrame> {
    let size = frame.length() as u32 + UDP_IPV4_OVERHEAD;
    Packet::new(
        route,
        size,
        SimulatedFrame {
            frame,
            corrupt: false,
        },
    )
}
