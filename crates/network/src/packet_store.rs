//! Storage for the packets inside a network. A body is written once when its packet is sent and read once when it is
//! delivered; links move tickets of 12 bytes, whatever the size of the body.

use std::collections::VecDeque;

use foundation::{Ecn, Instant, prefetch};

use crate::nat::ExternalAddress;
use crate::observer::{DropReason, Observer, Transmission};
use crate::packet::{Body, Connection, LinkId, Packet, PacketRef, RouteId, TcpAck};
use crate::requested_loss::RequestedLosses;

/// A handle to a stored packet with the fields that links read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ticket {
    slot: u32,
    pub(crate) size: u32,
    /// Index of the next step in the route table.
    pub(crate) step: u32,
}

// ARCHITECTURE.md gives this size.
const _: () = assert!(size_of::<Ticket>() == 12);

/// A packet, and the step in the route table that corresponds to hop 0 of its route.
#[derive(Clone, Debug)]
struct Stored<B> {
    packet: Packet<B>,
    route_start: u32,
}

impl<B> Stored<B> {
    #[inline]
    const fn hop(&self, ticket: Ticket) -> u8 {
        (ticket.step - self.route_start) as u8
    }
}

/// A packet larger than a link's MTU, which a router reports to the sender (RFC 1191; RFC 8201).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooBig<B> {
    /// The link's MTU, in bytes.
    pub mtu: u32,
    /// The packet as it arrived at the link.
    pub packet: Packet<B>,
}

/// Limit of oversized packets that await [`Network::poll_too_big`](crate::Network::poll_too_big). Further ones are
/// not reported, as routers limit the rate of their ICMP errors (RFC 1812, section 4.3.2.8).
const MAX_TOO_BIG: usize = 64;

/// Packets whose bodies fit into the caches of one processor, so that prefetching them would only take instructions.
const SMALL: usize = 10_000;

/// All packets inside a network, and the observer.
pub(crate) struct PacketStore<B, O> {
    slots: Vec<Option<Stored<B>>>,
    free: Vec<u32>,
    pub(crate) too_big: VecDeque<TooBig<B>>,
    pub(crate) requested: RequestedLosses<B>,
    pub(crate) observer: O,
}

impl<B, O> PacketStore<B, O> {
    pub(crate) const fn new(observer: O) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            too_big: VecDeque::new(),
            requested: RequestedLosses::new(),
            observer,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Stores a packet of `size` bytes at `hop` of its route, which `make` writes to its slot. An earlier request may demand its
    /// loss. `step` is the index of its next step in the route table.
    #[inline(always)]
    pub(crate) fn insert(
        &mut self,
        size: u32,
        hop: u8,
        step: u32,
        make: impl FnOnce() -> Packet<B>,
    ) -> Ticket {
        let slot = self.vacant();
        // It is empty, so that nothing is dropped here.
        self.slots[slot as usize].get_or_insert_with(|| Stored {
            packet: make(),
            route_start: step - u32::from(hop),
        });
        if self.requested.has_conditions() {
            self.examine(slot);
        }
        Ticket { slot, size, step }
    }

    /// Returns an empty slot, which the caller fills.
    #[inline]
    fn vacant(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| self.add_slot())
    }

    #[cold]
    fn add_slot(&mut self) -> u32 {
        self.slots.push(None);
        self.slots.len() as u32 - 1
    }

    /// Compares a new packet with the conditions of requested losses.
    #[cold]
    fn examine(&mut self, slot: u32) {
        if let Some(stored) = &self.slots[slot as usize] {
            self.requested.examine(&stored.packet);
        }
    }

    /// Removes a packet. Returns `Some` for every ticket that is used once.
    #[inline]
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<Packet<B>> {
        let mut stored = self.slots[ticket.slot as usize].take()?;
        self.free.push(ticket.slot);
        stored.packet.hop = stored.hop(ticket);
        Some(stored.packet)
    }
}

impl<B, O> PacketStore<B, O> {
    /// Returns the body of a packet. Panics if it has been removed.
    #[inline]
    pub(crate) fn body(&self, ticket: Ticket) -> &B {
        let stored = self.slots[ticket.slot as usize].as_ref();
        &stored.expect("an arrived packet is stored").packet.body
    }

    /// As [`body`](Self::body), to change it.
    #[inline]
    pub(crate) fn body_mut(&mut self, ticket: Ticket) -> &mut B {
        let stored = self.slots[ticket.slot as usize].as_mut();
        &mut stored.expect("an arrived packet is stored").packet.body
    }

    /// Returns whether the packets have exceeded the processor's nearest caches; slots stay when packets leave.
    #[inline]
    pub(crate) const fn is_large(&self) -> bool {
        self.slots.len() > SMALL
    }

    /// Loads a packet into the processor's cache.
    #[inline]
    pub(crate) fn prefetch(&self, ticket: Ticket) {
        prefetch(&self.slots[ticket.slot as usize]);
    }

    /// Requests the loss of a packet. Returns whether it is inside the network.
    pub(crate) fn lose(&mut self, id: u64) -> bool {
        let is_inside = self.slots.iter().flatten().any(|stored| stored.packet.id == id);
        if is_inside {
            self.requested.add(id);
        }
        is_inside
    }

    /// Returns whether the loss of a packet is requested.
    #[inline]
    pub(crate) fn is_requested(&self, ticket: Ticket) -> bool {
        if self.requested.is_empty() {
            return false;
        }
        let stored = self.slots[ticket.slot as usize].as_ref();
        stored.is_some_and(|stored| self.requested.contains(stored.packet.id))
    }

    /// Removes a packet without a copy.
    #[inline]
    pub(crate) fn release(&mut self, ticket: Ticket) {
        // The assignment of `None` would copy the bytes of a whole slot.
        drop(self.slots[ticket.slot as usize].take());
        self.free.push(ticket.slot);
    }
}

impl<B: Body, O: Observer<B>> PacketStore<B, O> {
    /// Stores a copy of a packet, with the same id.
    pub(crate) fn duplicate(&mut self, ticket: Ticket) -> Option<Ticket> {
        let copy = self.slots[ticket.slot as usize].clone()?;
        let slot = self.vacant();
        self.slots[slot as usize] = Some(copy);
        Some(Ticket { slot, ..ticket })
    }

    /// Returns the route of a packet and its flow number on that route.
    pub(crate) fn route_and_flow(&self, ticket: Ticket) -> (RouteId, u64) {
        let stored = &self.slots[ticket.slot as usize];
        stored.as_ref().map_or((RouteId(u32::MAX), 0), |stored| {
            (stored.packet.route, stored.packet.body.flow())
        })
    }

    /// Returns the ECN code point of a packet.
    pub(crate) fn ecn(&self, ticket: Ticket) -> Ecn {
        let stored = &self.slots[ticket.slot as usize];
        stored
            .as_ref()
            .map_or(Ecn::NotEct, |stored| stored.packet.body.ecn())
    }

    /// Returns the connection of a packet, if it has one.
    pub(crate) fn connection(&self, ticket: Ticket) -> Option<Connection> {
        let stored = &self.slots[ticket.slot as usize];
        stored.as_ref()?.packet.body.connection()
    }

    /// Returns the acknowledgement of a packet.
    pub(crate) fn acknowledgement(&self, ticket: Ticket) -> Option<TcpAck> {
        let stored = &self.slots[ticket.slot as usize];
        stored.as_ref()?.packet.body.acknowledgement()
    }

    /// Returns the priority of a packet.
    pub(crate) fn priority(&self, ticket: Ticket) -> u8 {
        let stored = &self.slots[ticket.slot as usize];
        stored.as_ref().map_or(0, |stored| stored.packet.body.priority())
    }

    /// Marks a packet with ECN CE. Returns whether it is ECN-capable.
    pub(crate) fn mark(&mut self, ticket: Ticket) -> bool {
        let stored = &mut self.slots[ticket.slot as usize];
        stored
            .as_mut()
            .is_some_and(|stored| stored.packet.body.mark_congestion_experienced())
    }

    /// Returns the address of a packet outside of a translator.
    pub(crate) fn external(&self, ticket: Ticket) -> Option<ExternalAddress> {
        self.slots[ticket.slot as usize].as_ref()?.packet.body.external()
    }

    pub(crate) fn translate(&mut self, ticket: Ticket, external: Option<ExternalAddress>) {
        if let Some(stored) = &mut self.slots[ticket.slot as usize] {
            stored.packet.body.translate(external);
        }
    }

    pub(crate) fn flip_bit(&mut self, ticket: Ticket, choice: u64) {
        if let Some(stored) = &mut self.slots[ticket.slot as usize] {
            stored.packet.body.flip_bit(choice);
        }
    }

    /// Passes a packet to the observer.
    #[inline]
    pub(crate) fn observe(&mut self, ticket: Ticket, notify: impl FnOnce(&mut O, PacketRef<'_, B>)) {
        if !O::ENABLED {
            return;
        }
        if let Some(stored) = &self.slots[ticket.slot as usize] {
            let packet = PacketRef {
                id: stored.packet.id,
                size: ticket.size,
                route: stored.packet.route,
                hop: stored.hop(ticket),
                body: &stored.packet.body,
            };
            notify(&mut self.observer, packet);
        }
    }

    /// Passes the times of a packet to the observer: when it joined the queue, start and end of its transmission, and arrival.
    #[inline]
    pub(crate) fn observe_schedule(&mut self, at: u64, link: LinkId, times: [u64; 4], ticket: Ticket) {
        let [joined, start, end, arrival] = times.map(Instant::from_nanos);
        let times = Transmission {
            joined,
            start,
            end,
            arrival,
        };
        self.observe(ticket, |observer, packet| {
            observer.scheduled(Instant::from_nanos(at), link, times, packet);
        });
    }

    /// Reports a packet as dropped and removes it.
    #[cold]
    pub(crate) fn drop(&mut self, at: u64, link: LinkId, reason: DropReason, ticket: Ticket) {
        let at = Instant::from_nanos(at);
        self.observe(ticket, |observer, packet| {
            observer.dropped(at, link, reason, packet);
        });
        self.remove(ticket);
    }

    /// Reports a packet as dropped by the MTU and keeps it for [`Network::poll_too_big`](crate::Network::poll_too_big).
    pub(crate) fn drop_too_big(&mut self, at: u64, link: LinkId, mtu: u32, ticket: Ticket) {
        let at = Instant::from_nanos(at);
        self.observe(ticket, |observer, packet| {
            observer.dropped(at, link, DropReason::Mtu, packet);
        });
        if let Some(packet) = self.remove(ticket)
            && self.too_big.len() < MAX_TOO_BIG
        {
            self.too_big.push_back(TooBig { mtu, packet });
        }
    }
}
