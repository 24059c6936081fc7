//! What passes a device of one flow, with the kernel's time stamps.
//!
//! The socket is Linux's `AF_PACKET` (`packet(7)`) with a classic BPF program that lets only the flow's packets
//! through, so that a busy machine's other traffic costs nothing here.

mod filter;
#[cfg(target_os = "linux")]
mod listener;
mod packet;

pub use filter::{Filter, Protocol};
#[cfg(target_os = "linux")]
pub use listener::{Capture, REMEDY};
pub use packet::{Packet, TcpFlags, Transport};

use crate::Stamp;

/// Which way a frame went, seen from the flow's near end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the near end to the far end.
    Out,
    /// From the far end to the near end.
    In,
}

/// One frame that passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// When, by the kernel's stamp.
    pub stamp: Stamp,
    /// Which way.
    pub direction: Direction,
    /// The device's number.
    pub device: u32,
    /// What its headers say.
    pub packet: Packet,
}

/// What a capture has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames of the flow that were given out, each once.
    pub frames: u64,
    /// Frames that the kernel dropped since the buffer was full: where there are any, figures are not to be trusted.
    pub dropped: u64,
}
