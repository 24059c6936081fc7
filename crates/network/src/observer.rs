//! Watching packets on their way. A network without an observer pays nothing for the possibility.

use std::collections::VecDeque;

use foundation::Instant;

use crate::packet::{LinkId, Packet, PacketRef};

/// Why a link dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DropReason {
    /// The loss model chose it.
    Loss,
    /// The queue was full, or its discipline chose it.
    Queue,
    /// It is larger than the link's MTU.
    Mtu,
}

impl DropReason {
    /// The word for it in traces and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Queue => "queue",
            Self::Mtu => "mtu",
        }
    }
}

/// Learns what happens to packets inside a network. Every method does nothing unless it is written.
///
/// Calls come in order of time. An observer is a type parameter of the network, so that an unused one
/// (`()`) is compiled away.
pub trait Observer<B> {
    /// Whether it is called at all.
    const WATCHES: bool = true;

    /// The packet reached the near end of a link (before any decision of that link).
    #[inline]
    fn entered(&mut self, at: Instant, link: LinkId, packet: PacketRef<'_, B>) {
        let _ = (at, link, packet);
    }

    /// The link dropped the packet.
    #[inline]
    fn dropped(&mut self, at: Instant, link: LinkId, reason: DropReason, packet: PacketRef<'_, B>) {
        let _ = (at, link, reason, packet);
    }

    /// The link made a second copy of the packet.
    #[inline]
    fn duplicated(&mut self, at: Instant, link: LinkId, packet: PacketRef<'_, B>) {
        let _ = (at, link, packet);
    }

    /// The link flipped a bit of the packet, which is shown as it is now.
    #[inline]
    fn corrupted(&mut self, at: Instant, link: LinkId, packet: PacketRef<'_, B>) {
        let _ = (at, link, packet);
    }

    /// The link marked the packet as having met congestion; it is shown as it is now.
    #[inline]
    fn marked(&mut self, at: Instant, link: LinkId, packet: PacketRef<'_, B>) {
        let _ = (at, link, packet);
    }

    /// The packet reached the far end of a link.
    #[inline]
    fn left(&mut self, at: Instant, link: LinkId, packet: PacketRef<'_, B>) {
        let _ = (at, link, packet);
    }
}

/// Nobody watches.
impl<B> Observer<B> for () {
    const WATCHES: bool = false;
}

/// One dropped packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drop<B> {
    /// When it was dropped.
    pub at: Instant,
    /// By which link.
    pub link: LinkId,
    /// Why.
    pub reason: DropReason,
    /// What was dropped, as it would have gone on.
    pub packet: Packet<B>,
}

/// Keeps every drop until it is polled.
#[derive(Clone, Debug)]
pub struct DropLog<B> {
    drops: VecDeque<Drop<B>>,
}

impl<B> DropLog<B> {
    /// The earliest drop that has not been polled yet.
    pub fn poll_drop(&mut self) -> Option<Drop<B>> {
        self.drops.pop_front()
    }
}

impl<B> Default for DropLog<B> {
    fn default() -> Self {
        Self {
            drops: VecDeque::new(),
        }
    }
}

impl<B: Clone> Observer<B> for DropLog<B> {
    fn dropped(&mut self, at: Instant, link: LinkId, reason: DropReason, packet: PacketRef<'_, B>) {
        self.drops.push_back(Drop {
            at,
            link,
            reason,
            packet: packet.to_packet(),
        });
    }
}
