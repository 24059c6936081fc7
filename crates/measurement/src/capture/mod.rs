//! Captures of one flow at a device, with the kernel's time stamps.
//!
//! The socket is Linux's `AF_PACKET` (`packet(7)`) with a classic BPF program that accepts only the flow's packets, so
//! that other traffic causes no load here.

mod filter;
mod listener;
mod packet;

pub use filter::{Filter, Protocol};
pub use listener::{Capture, REMEDY};
pub use packet::{Packet, Transport};

use crate::Stamp;

/// The direction of a frame, seen from the flow's near end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the near end to the far end.
    Out,
    /// From the far end to the near end.
    In,
}

/// One captured frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The kernel's time stamp.
    pub stamp: Stamp,
    /// Its direction.
    pub direction: Direction,
    /// The device's number.
    pub device: u32,
    /// Its headers.
    pub packet: Packet,
}

/// Counters of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Captured frames of the flow, each counted once.
    pub frames: u64,
    /// Frames that the kernel dropped because the buffer was full; if there are any, measured values are unreliable.
    pub dropped: u64,
}
