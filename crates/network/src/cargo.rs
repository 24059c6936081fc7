//! Where packets stand while links hold tickets for them. A body is written once when its packet is sent and
//! read once when it is delivered; what moves from link to link is a ticket of 16 bytes, whatever the body's size.

use std::collections::VecDeque;

use foundation::Instant;

use crate::observer::{DropReason, Observer};
use crate::packet::{Body, LinkId, Packet, PacketRef, RouteId};

/// A packet as links know it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    slot: u32,
    pub(crate) size: u32,
    /// The place in the table of routes of what comes next.
    pub(crate) step: u32,
    pub(crate) hop: u8,
}

/// What links need not know.
#[derive(Clone, Debug)]
struct Stored<B> {
    id: u64,
    route: RouteId,
    body: B,
}

/// A packet that was larger than a link's MTU: what a router tells its sender (RFC 1191; RFC 8201).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooBig<B> {
    /// The link's MTU, in bytes.
    pub mtu: u32,
    /// The packet as it stood before the link.
    pub packet: Packet<B>,
}

/// Packets that were too big and that nobody has asked for; beyond so many they are not told of, as routers
/// limit the rate of what they tell (RFC 1812, section 4.3.2.8).
const MOST_TOO_BIG: usize = 64;

/// All packets inside a network, and who watches them.
pub(crate) struct Cargo<B, O> {
    slots: Vec<Option<Stored<B>>>,
    free: Vec<u32>,
    sequence: u64,
    pub(crate) too_big: VecDeque<TooBig<B>>,
    pub(crate) observer: O,
}

impl<B, O> Cargo<B, O> {
    pub(crate) const fn new(observer: O) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            sequence: 0,
            too_big: VecDeque::new(),
            observer,
        }
    }

    /// The next sequence number, which breaks ties in time.
    #[inline]
    pub(crate) const fn sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Takes a packet in; `step` is where its way begins.
    #[inline]
    pub(crate) fn load(&mut self, packet: Packet<B>, step: u32) -> Ticket {
        let stored = Stored {
            id: packet.id,
            route: packet.route,
            body: packet.body,
        };
        let slot = self.place(stored);
        Ticket {
            slot,
            size: packet.size,
            step,
            hop: packet.hop,
        }
    }

    #[inline]
    fn place(&mut self, stored: Stored<B>) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(stored);
            return slot;
        }
        self.slots.push(Some(stored));
        self.slots.len() as u32 - 1
    }

    /// Gives a packet out. `None` never happens for a ticket that is used once.
    #[inline]
    pub(crate) fn unload(&mut self, ticket: Ticket) -> Option<Packet<B>> {
        let stored = self.slots[ticket.slot as usize].take()?;
        self.free.push(ticket.slot);
        Some(Packet {
            id: stored.id,
            size: ticket.size,
            route: stored.route,
            hop: ticket.hop,
            body: stored.body,
        })
    }
}

impl<B: Body, O: Observer<B>> Cargo<B, O> {
    /// A second packet with the same id and body.
    pub(crate) fn duplicate(&mut self, ticket: Ticket) -> Option<Ticket> {
        let copy = self.slots[ticket.slot as usize].clone()?;
        let slot = self.place(copy);
        Some(Ticket { slot, ..ticket })
    }

    /// The route of a packet, and its flow among those of the route.
    pub(crate) fn route_and_flow(&self, ticket: Ticket) -> (RouteId, u64) {
        let stored = &self.slots[ticket.slot as usize];
        stored.as_ref().map_or((RouteId(u32::MAX), 0), |stored| {
            (stored.route, stored.body.flow())
        })
    }

    /// Marks a packet as having met congestion, if its ends understand that.
    pub(crate) fn mark(&mut self, ticket: Ticket) -> bool {
        let stored = &mut self.slots[ticket.slot as usize];
        stored
            .as_mut()
            .is_some_and(|stored| stored.body.mark_congestion_experienced())
    }

    pub(crate) fn flip_bit(&mut self, ticket: Ticket, choice: u64) {
        if let Some(stored) = &mut self.slots[ticket.slot as usize] {
            stored.body.flip_bit(choice);
        }
    }

    /// Shows a packet to the observer.
    #[inline]
    pub(crate) fn show(&mut self, ticket: Ticket, tell: impl FnOnce(&mut O, PacketRef<'_, B>)) {
        if !O::WATCHES {
            return;
        }
        if let Some(stored) = &self.slots[ticket.slot as usize] {
            let packet = PacketRef {
                id: stored.id,
                size: ticket.size,
                route: stored.route,
                hop: ticket.hop,
                body: &stored.body,
            };
            tell(&mut self.observer, packet);
        }
    }

    /// Shows a packet to the observer as dropped, and forgets it.
    #[cold]
    pub(crate) fn drop(&mut self, at: u64, link: LinkId, reason: DropReason, ticket: Ticket) {
        let at = Instant::from_nanos(at);
        self.show(ticket, |observer, packet| {
            observer.dropped(at, link, reason, packet);
        });
        self.unload(ticket);
    }

    /// Shows a packet to the observer as dropped for its size, and keeps it for whoever tells its sender.
    pub(crate) fn refuse(&mut self, at: u64, link: LinkId, mtu: u32, ticket: Ticket) {
        let at = Instant::from_nanos(at);
        self.show(ticket, |observer, packet| {
            observer.dropped(at, link, DropReason::Mtu, packet);
        });
        if let Some(packet) = self.unload(ticket)
            && self.too_big.len() < MOST_TOO_BIG
        {
            self.too_big.push_back(TooBig { mtu, packet });
        }
    }
}
