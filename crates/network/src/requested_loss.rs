//! Losses that the caller requests: of a packet inside the network, or of the next packet that satisfies a condition.

use crate::packet::Packet;

/// A condition on packets.
type Condition<B> = Box<dyn Fn(&Packet<B>) -> bool + Send + Sync>;

/// Requested losses that have not happened yet.
pub(crate) struct RequestedLosses<B> {
    /// Ids of packets inside the network.
    ids: Vec<u64>,
    /// Conditions that no packet has satisfied yet.
    conditions: Vec<Condition<B>>,
}

impl<B> RequestedLosses<B> {
    pub(crate) const fn new() -> Self {
        Self {
            ids: Vec::new(),
            conditions: Vec::new(),
        }
    }

    /// Requests the loss of a packet.
    pub(crate) fn add(&mut self, id: u64) {
        if !self.ids.contains(&id) {
            self.ids.push(id);
        }
    }

    /// Requests the loss of the next packet that satisfies a condition.
    pub(crate) fn add_next(&mut self, condition: Condition<B>) {
        self.conditions.push(condition);
    }

    /// Returns whether a condition waits for a packet.
    #[inline]
    pub(crate) const fn has_conditions(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// Compares a new packet with the conditions; it satisfies at most one.
    pub(crate) fn examine(&mut self, packet: &Packet<B>) {
        if let Some(place) = self.conditions.iter().position(|condition| condition(packet)) {
            drop(self.conditions.remove(place));
            self.add(packet.id);
        }
    }

    /// Returns whether no loss of a packet inside the network is requested.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Returns whether the loss of a packet is requested. The id stays, because a duplicate of the packet has it too.
    pub(crate) fn contains(&self, id: u64) -> bool {
        self.ids.contains(&id)
    }
}
